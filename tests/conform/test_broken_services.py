"""The suite passes a service that shares no code with the SDK, and has a flaw for every rule."""

from pathlib import Path

import pytest

from contract_tests.contract import load_contract
from contract_tests.rules import RULES, Level
from contract_tests.runner import run
from contract_tests.scenarios import all_cases
from contract_tests.verdicts import ExitCode, Verdict
from tests.conform.broken_services.flaws import FLAWS
from tests.conform.broken_services.in_process import CONTRACT, judged
from tests.conform.broken_services.sound import Service
from tests.runner.deadlines import time_limit

_ENOUGH = 40
_CASES = [case.id for case in all_cases(load_contract(CONTRACT).contract, Level.FULL)]
_NEEDS_A_PROCESS = "LC-07/frozen"
_ARE_PROCESSES = {
    "dies-of-sigterm",
    "dies-of-the-malformed",
    "ignores-sigterm",
    "leaves-at-once",
    "reports-after-the-lease",
}


@time_limit(400)
@pytest.mark.full
async def test_a_sound_service_passes_every_case() -> None:
    report = await run(load_contract(CONTRACT), level=Level.FULL)
    assert [(o.case_id, o.reason) for o in report.outcomes if o.verdict is not Verdict.PASS] == []
    assert [outcome.case_id for outcome in report.outcomes] == _CASES
    assert report.exit_code is ExitCode.CONFORMANT


@pytest.mark.check
@pytest.mark.parametrize("case_id", [each for each in _CASES if each != _NEEDS_A_PROCESS])
async def test_a_sound_service_passes_in_the_process_of_its_judge(
    case_id: str, tmp_path: Path
) -> None:
    (outcome,) = await judged(Service, [case_id], tmp_path)
    assert (outcome.case_id, outcome.verdict, outcome.reason) == (case_id, Verdict.PASS, "")


def test_every_rule_has_a_flaw() -> None:
    assert {flaw.rule_id for flaw in FLAWS} == {rule.id for rule in RULES}
    assert len(FLAWS) >= _ENOUGH


def test_flaws_are_judged_in_process_but_for_what_a_process_alone_can_show() -> None:
    assert {flaw.name for flaw in FLAWS if not flaw.said} == _ARE_PROCESSES


def test_flaws_have_names_of_their_own_and_say_what_the_mistake_is() -> None:
    assert len({flaw.name for flaw in FLAWS}) == len(FLAWS)
    assert all(flaw.service.__dict__["__doc__"] for flaw in FLAWS)
