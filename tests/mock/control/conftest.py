"""A service of the SDK in a process, before a stage in this one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contract_tests.bench import Bench
from contract_tests.contract import load_contract
from orchestrator_mock.stage import Defaults, Stage

REFERENCE = Path(__file__).parents[2] / "conform/reference/contract.yaml"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    loaded = load_contract(REFERENCE)
    async with Bench(loaded, tmp_path) as bench:
        await bench.renew()
        yield Stage(bench.mock, Defaults(loaded.contract.service, loaded.contract.step_type))
