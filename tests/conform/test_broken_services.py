"""The suite passes a service that shares no code with the SDK, and has a flaw for every rule."""

import pytest

from contract_tests.contract import load_contract
from contract_tests.rules import RULES, Level
from contract_tests.runner import run
from contract_tests.scenarios import all_cases
from contract_tests.verdicts import ExitCode, Verdict
from tests.conform.broken_services.flaws import FLAWS
from tests.conform.broken_services.in_process import CONTRACT

_ENOUGH = 40


@pytest.mark.check
async def test_a_sound_service_passes_every_case() -> None:
    loaded = load_contract(CONTRACT)
    report = await run(loaded, level=Level.FULL)
    assert [(o.case_id, o.reason) for o in report.outcomes if o.verdict is not Verdict.PASS] == []
    cases = [case.id for case in all_cases(loaded.contract, Level.FULL)]
    assert [outcome.case_id for outcome in report.outcomes] == cases
    assert report.exit_code is ExitCode.CONFORMANT


def test_every_rule_has_a_flaw() -> None:
    assert {flaw.rule_id for flaw in FLAWS} == {rule.id for rule in RULES}
    assert len(FLAWS) >= _ENOUGH


def test_flaws_have_names_of_their_own_and_say_what_the_mistake_is() -> None:
    assert len({flaw.name for flaw in FLAWS}) == len(FLAWS)
    assert all(flaw.service.__dict__["__doc__"] for flaw in FLAWS)
