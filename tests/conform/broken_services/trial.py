"""The suite, run on the service with one of its flaws."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from contract_tests.contract import LoadedContract, load_contract
from contract_tests.runner import run
from contract_tests.verdicts import Outcome, Verdict
from tests.conform.broken_services.flaws import Flaw
from tests.conform.broken_services.in_process import CONTRACT, PATIENCE, judged

_NOT_SERVING = "an undisturbed run"
"""How a failure begins that any rule would have told: the service does not work at all."""


def each(flaws: Sequence[Flaw]) -> Callable[[Callable[..., Any]], Any]:
    """Parametrise a test by `flaw`. `make test` has one flaw of each rule: the first of those that
    need no process."""
    firsts = {flaw.rule_id: flaw for flaw in reversed(flaws) if flaw.said}
    return pytest.mark.parametrize(
        "flaw",
        [
            pytest.param(
                flaw,
                id=f"{flaw.rule_id}-{flaw.name}",
                marks=() if flaw is firsts.get(flaw.rule_id) else pytest.mark.check,
            )
            for flaw in flaws
        ],
    )


def contract_of(flaw: Flaw) -> LoadedContract:
    """Of the service that has it."""
    sound = load_contract(CONTRACT)
    environment = {**sound.contract.environment, "FLAW": flaw.name}
    contract = sound.contract.model_copy(update={"environment": environment})
    return sound.model_copy(update={"contract": contract})


async def check_found(flaw: Flaw) -> None:
    """Its rule is found broken, and the team is told all it needs to find the mistake."""
    outcomes = await _in_process(flaw) if flaw.said else await _as_a_process(flaw)
    assert [outcome for outcome in outcomes if outcome.verdict is Verdict.FAULT] == []
    failures = [outcome for outcome in outcomes if outcome.verdict is Verdict.FAIL]
    assert failures, f"{flaw.mistake} {flaw.rule_id} does not notice."
    for failure in failures:
        _check_told(failure, flaw)


async def _as_a_process(flaw: Flaw) -> Sequence[Outcome]:
    report = await run(contract_of(flaw), only=flaw.only, patience=PATIENCE)
    return report.outcomes


async def _in_process(flaw: Flaw) -> Sequence[Outcome]:
    """Every one of its scenarios has to say what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = await judged(flaw.service, flaw.only, Path(folder))
    assert all(flaw.said in outcome.reason for outcome in outcomes), [
        (outcome.case_id, outcome.verdict, outcome.reason) for outcome in outcomes
    ]
    return outcomes


def _check_told(failure: Outcome, flaw: Flaw) -> None:
    assert failure.rule_id == flaw.rule_id
    assert failure.reason
    assert not failure.reason.startswith(_NOT_SERVING)
    assert failure.cause
    assert failure.timeline
    assert failure.repeat.endswith(f"--only {failure.case_id}")
