"""What a reader looks for first: how the service stands, and how each rule and case ended."""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from contract_tests.verdicts import ExitCode, Outcome, Report, Verdict


class Standing(StrEnum):
    """Of the service, as far as this run can say."""

    CONFORMANT = "conformant"
    NOT_CONFORMANT = "not conformant"
    INCOMPLETE = "incomplete"
    FAULT = "harness fault"


class Mark(StrEnum):
    """A verdict, told apart from a failure that the baseline knows of; the worst is first."""

    FAIL = "fail"
    FAULT = "harness fault"
    KNOWN = "known failure"
    PASS = "pass"  # noqa: S105 - no password
    SKIPPED = "skipped"


_STANDINGS = {
    ExitCode.CONFORMANT: Standing.CONFORMANT,
    ExitCode.NOT_CONFORMANT: Standing.NOT_CONFORMANT,
    ExitCode.HARNESS: Standing.FAULT,
    ExitCode.INCOMPLETE: Standing.INCOMPLETE,
}
_MARKS = {
    Verdict.PASS: Mark.PASS,
    Verdict.FAIL: Mark.FAIL,
    Verdict.SKIPPED: Mark.SKIPPED,
    Verdict.FAULT: Mark.FAULT,
}


def standing(report: Report) -> Standing:
    return _STANDINGS[report.exit_code]


def mark(outcome: Outcome) -> Mark:
    is_excused = outcome.is_known and outcome.verdict is Verdict.FAIL
    return Mark.KNOWN if is_excused else _MARKS[outcome.verdict]


def worst(outcomes: Iterable[Outcome]) -> Mark:
    """A rule is skipped only if none of its cases could be judged."""
    return min(map(mark, outcomes), key=list(Mark).index, default=Mark.SKIPPED)


def worst_first(outcomes: Iterable[Outcome]) -> list[Outcome]:
    return sorted(outcomes, key=lambda each: list(Mark).index(mark(each)))


def by_rule(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """In the order of the rules' ids."""
    found: dict[str, list[Outcome]] = {}
    for outcome in sorted(outcomes, key=lambda each: each.rule_id):
        found.setdefault(outcome.rule_id, []).append(outcome)
    return found


def tally(report: Report) -> dict[Mark, int]:
    """How many cases ended in each way."""
    marks = [mark(outcome) for outcome in report.outcomes]
    return {each: marks.count(each) for each in Mark}
