"""A list of failures that a team knows of, so that a run fails only for what is new.

    known_failures:
      - case: LC-07/frozen
        reason: The library that we wait for has no timeout.
        issue: https://tracker.example/42
      - rule: LC-22
        reason: Concurrency comes with the next release.

An entry that holds no longer fails the run too: else the list would only ever grow.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from contract_tests.files import read_file
from contract_tests.rules import RULES
from contract_tests.scenarios import SCENARIOS, Scenario, Ways
from contract_tests.verdicts import Outcome, Report, Verdict
from lucius_orchestrator.domain.aggregate import ReplyVia

Text = Annotated[str, Field(min_length=1)]


class BaselineUnusable(Exception):
    """The file cannot be read, or does not say what is known to fail; the text says what to do."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class KnownFailure(_Part):
    """Of one case, or of all cases of a rule."""

    case: Text | None = None
    rule: Text | None = None
    reason: Text
    """Why it is not mended yet."""
    issue: Text | None = None
    """Where that is tracked."""

    @model_validator(mode="after")
    def _names_something(self) -> "KnownFailure":
        if (self.case is None) == (self.rule is None):
            raise ValueError("give either `case` or `rule`")
        return self

    @property
    def name(self) -> str:
        return self.case or self.rule or ""

    def covers(self, outcome: Outcome) -> bool:
        return self.name in (outcome.case_id, outcome.rule_id)


class Baseline(_Part):
    known_failures: tuple[KnownFailure, ...]

    @model_validator(mode="after")
    def _names_each_once(self) -> "Baseline":
        names = Counter(entry.name for entry in self.known_failures)
        twice = [name for name, times in names.items() if times > 1]
        if twice:
            raise ValueError(f"{twice[0]} is in it more than once")
        return self


def load_baseline(path: Path) -> Baseline:
    """`BaselineUnusable`."""
    return read_file(path, Baseline, BaselineUnusable, "known_failures:")


def apply(report: Report, baseline: Baseline) -> Report:
    """Failures that the baseline names are known; entries that hold no longer are surprises."""
    entries = baseline.known_failures
    outcomes = tuple(_known(outcome, entries) for outcome in report.outcomes)
    found = [text for entry in entries if (text := _surprise(entry, report))]
    return replace(
        report, outcomes=outcomes, surprises=tuple(dict.fromkeys((*report.surprises, *found)))
    )


def _known(outcome: Outcome, entries: Sequence[KnownFailure]) -> Outcome:
    is_known = outcome.verdict is Verdict.FAIL and any(e.covers(outcome) for e in entries)
    return replace(outcome, is_known=True) if is_known else outcome


def _surprise(entry: KnownFailure, report: Report) -> str | None:
    if not _exists(entry):
        kind = "case" if entry.case else "rule"
        return f"the baseline names {entry.name}, but there is no such {kind}: remove its entry"
    if _passes(entry, report):
        return f"{entry.name} is in the baseline, but it passes now: remove its entry"
    return None


def _passes(entry: KnownFailure, report: Report) -> bool:
    """A case that was skipped or could not be judged says nothing, and neither does a part of a
    rule's cases."""
    if entry.rule and report.is_partial:
        return False
    verdicts = {outcome.verdict for outcome in report.outcomes if entry.covers(outcome)}
    return verdicts == {Verdict.PASS}


def _exists(entry: KnownFailure) -> bool:
    if entry.rule:
        return entry.rule in {rule.id for rule in RULES}
    return any(entry.case in _cases_of(scenario) for scenario in SCENARIOS)


def _cases_of(scenario: Scenario) -> list[str]:
    """For whatever service: one case may be there for some of them only."""
    name = f"{scenario.rule_id}/{scenario.name}"
    return [f"{name}-{way}" for way in ReplyVia] if scenario.ways is Ways.EACH else [name]
