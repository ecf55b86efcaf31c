"""A test for every case of every rule, on the service that is to be judged."""

from typing import Any

import pytest

from contract_tests.contract import LoadedContract
from contract_tests.reports.terminal import failure_text
from contract_tests.scenarios import Case
from contract_tests.verdicts import HarnessFault, Verdict


def test_rule(lucius_case: tuple[LoadedContract, Case], lucius_benches: Any) -> None:
    outcome = lucius_benches.judge(*lucius_case)
    if outcome.verdict is Verdict.SKIPPED:
        pytest.skip(outcome.reason)
    if outcome.verdict is Verdict.FAULT:
        raise HarnessFault(outcome.reason)
    if outcome.verdict is Verdict.FAIL:
        pytest.fail(failure_text(outcome), pytrace=False)
