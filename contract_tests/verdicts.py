"""What the harness found out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum

from contract_tests.rules import Level


class Verdict(StrEnum):
    """A skip is never a pass, and neither is a fault of the harness."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    SKIPPED = "skipped"
    FAULT = "harness fault"


class ExitCode(IntEnum):
    CONFORMANT = 0
    NOT_CONFORMANT = 1
    USAGE = 2
    HARNESS = 3
    INCOMPLETE = 5


class RuleBroken(Exception):
    """The service does not do what the rule says; `cause` is what is probably wrong with it."""

    def __init__(self, reason: str, cause: str | None = None) -> None:
        super().__init__(reason)
        self.cause = cause


class HarnessFault(Exception):
    """The rule could not be judged: the environment failed, not the service."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of a timeline: seconds since the case began, who acted, and what happened."""

    at: float
    who: str
    text: str
    job: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one case, which is a scenario with a way to reply."""

    case_id: str
    rule_id: str
    verdict: Verdict
    seconds: float = 0.0
    reason: str = ""
    cause: str = ""
    repeat: str = ""
    timeline: tuple[Moment, ...] = ()
    log: str = ""
    is_known: bool = False
    """It failed as the baseline says it would."""


@dataclass(frozen=True, slots=True)
class Report:
    """Of one run. `is_partial`: only some of the rules of the level were asked for. `surprises`
    are entries of the baseline that hold no longer."""

    service: str
    contract: str
    level: Level
    started_at: datetime
    seconds: float
    outcomes: tuple[Outcome, ...]
    version: str
    is_partial: bool = False
    surprises: tuple[str, ...] = field(default=())

    def of(self, verdict: Verdict) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.verdict is verdict]

    @property
    def failures(self) -> list[Outcome]:
        """Those that the baseline does not know of."""
        return [outcome for outcome in self.of(Verdict.FAIL) if not outcome.is_known]

    @property
    def exit_code(self) -> ExitCode:
        if self.failures or self.surprises:
            return ExitCode.NOT_CONFORMANT
        if self.of(Verdict.FAULT):
            return ExitCode.HARNESS
        if self.is_partial or Verdict.SKIPPED in rules_by_verdict(self.outcomes).values():
            return ExitCode.INCOMPLETE
        return ExitCode.CONFORMANT

    @property
    def headline(self) -> str:
        known = sum(outcome.is_known for outcome in self.outcomes)
        if self.exit_code is ExitCode.CONFORMANT:
            with_known = f", with {counted(known, 'known failure')}" if known else ""
            return f"{self.service} is conformant at level {self.level}{with_known}"
        if self.exit_code is ExitCode.NOT_CONFORMANT:
            return f"{self.service} is not conformant: {self._broken()}"
        if self.exit_code is ExitCode.HARNESS:
            return f"{self.service} could not be judged: the harness or its environment failed"
        return f"{self.service} was judged in part only; that is no proof of conformance"

    def _broken(self) -> str:
        rules = sorted({outcome.rule_id for outcome in self.failures})
        said = [f"{', '.join(rules)} broken"] if rules else []
        if self.surprises:
            said.append(f"{counted(len(self.surprises), 'entry', 'entries')} of the baseline stale")
        return "; ".join(said)


def counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def rules_by_verdict(outcomes: Sequence[Outcome]) -> dict[str, Verdict]:
    """Each rule with the worst that became of its cases; one is skipped if none could be judged."""
    order = (Verdict.FAIL, Verdict.FAULT, Verdict.PASS, Verdict.SKIPPED)
    found: dict[str, Verdict] = {}
    for outcome in outcomes:
        worst = found.get(outcome.rule_id, Verdict.SKIPPED)
        found[outcome.rule_id] = min(worst, outcome.verdict, key=order.index)
    return found
