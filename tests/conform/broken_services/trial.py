"""The suite, run on the service with one of its flaws."""

from pathlib import Path

from contract_tests.contract import LoadedContract, load_contract
from contract_tests.runner import run
from contract_tests.verdicts import Outcome, Verdict
from tests.conform.broken_services.flaws import Flaw

CONTRACT = Path(__file__).with_name("contract.yaml")
PATIENCE = 8.0
_NOT_SERVING = "an undisturbed run"
"""How a failure begins that any rule would have told: the service does not work at all."""


def contract_of(flaw: Flaw) -> LoadedContract:
    """Of the service that has it."""
    sound = load_contract(CONTRACT)
    environment = {**sound.contract.environment, "FLAW": flaw.name}
    contract = sound.contract.model_copy(update={"environment": environment})
    return sound.model_copy(update={"contract": contract})


async def check_found(flaw: Flaw) -> None:
    """Its rule is found broken, and the team is told all it needs to find the mistake."""
    report = await run(contract_of(flaw), only=flaw.only, patience=PATIENCE)
    assert report.of(Verdict.FAULT) == []
    failures = report.of(Verdict.FAIL)
    assert failures, f"{flaw.mistake} {flaw.rule_id} does not notice."
    for failure in failures:
        _check_told(failure, flaw)


def _check_told(failure: Outcome, flaw: Flaw) -> None:
    assert failure.rule_id == flaw.rule_id
    assert failure.reason
    assert not failure.reason.startswith(_NOT_SERVING)
    assert failure.cause
    assert failure.timeline
    assert failure.repeat.endswith(f"--only {failure.case_id}")
