"""A fresh service keeps the whole contract."""

from pathlib import Path

import pytest

from contract_tests.contract import load_contract
from contract_tests.rules import Level
from contract_tests.runner import run
from contract_tests.verdicts import ExitCode
from tests.runner.deadlines import time_limit
from tests.skeleton.projects import fresh

pytestmark = [pytest.mark.check, time_limit(400)]


async def test_a_fresh_service_is_conformant_at_level_full(tmp_path: Path) -> None:
    report = await run(load_contract(fresh(tmp_path)))
    told = [f"{each.case_id} {each.verdict} {each.reason}" for each in report.outcomes]
    assert (report.level, report.exit_code) == (Level.FULL, ExitCode.CONFORMANT), "\n".join(told)
