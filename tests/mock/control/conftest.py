"""A stage in this process, before a sound service in it; or before one of the SDK in a process."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contract_tests.bench import Bench
from contract_tests.contract import load_contract
from orchestrator_mock.stage import Defaults, Stage
from tests.conform.broken_services.in_process import CONTRACT, BenchInProcess
from tests.conform.broken_services.sound import Service

REFERENCE = Path(__file__).parents[2] / "conform/reference/contract.yaml"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with BenchInProcess(load_contract(CONTRACT), tmp_path, Service) as bench:
        yield await _before(bench)


@pytest.fixture
async def sdk_stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with Bench(load_contract(REFERENCE), tmp_path) as bench:
        yield await _before(bench)


async def _before(bench: Bench) -> Stage:
    await bench.renew()
    return Stage(bench.mock, Defaults(bench.contract.service, bench.contract.step_type))
