"""The form of the report that programs read.

Whatever follows from the cases is stated too, for the reader's sake.
"""

from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from contract_tests.reports.standing import Mark, Standing, by_rule, standing, tally
from contract_tests.rules import Level, rule
from contract_tests.verdicts import ExitCode, Moment, Outcome, Report, Verdict, rules_by_verdict

SCHEMA: Literal["lucius-conformance/1"] = "lucius-conformance/1"
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, use_attribute_docstrings=True)


class MomentPart(_Part):
    at: Annotated[float, Field(allow_inf_nan=False)]
    """Seconds since the case began."""
    who: str
    """harness, bus or service."""
    text: str
    job: str
    """The end of the job's id."""


class CasePart(_Part):
    id: str
    rule: str
    verdict: Verdict
    is_known: bool
    """It failed as the baseline says it would."""
    seconds: Seconds
    reason: str
    """Why it did not pass; empty if it did."""
    cause: str
    """What is probably wrong with the service."""
    repeat: str
    """The command that judges this case alone."""
    timeline: tuple[MomentPart, ...]
    log: str
    """The end of what the service wrote to its log, unless it passed."""


class RulePart(_Part):
    id: str
    level: Level
    statement: str
    clause: str
    verdict: Verdict
    """The worst of its cases; skipped only if none could be judged."""


class CountsPart(_Part):
    """Of cases."""

    passed: Count
    failed: Count
    """Without those that the baseline knows of."""
    known: Count
    skipped: Count
    faults: Count
    """Could not be judged, because the harness or its environment failed."""


class ReportPart(_Part):
    """How a service was judged. Fields may be added; none changes its meaning or disappears within
    a version of the schema."""

    form: Literal["lucius-conformance/1"] = Field(alias="schema")
    tool_version: str
    service: str
    contract: str
    """Folder and file name of the service's contract.yaml."""
    level: Level
    started_at: AwareDatetime
    seconds: Seconds
    is_partial: bool
    """Only some of the rules of the level were asked for."""
    verdict: Standing
    headline: str
    exit_code: ExitCode
    """Of the command: 0 conformant, 1 not conformant, 3 the environment failed, 5 incomplete."""
    counts: CountsPart
    surprises: tuple[str, ...]
    """Entries of the baseline that hold no longer."""
    rules: tuple[RulePart, ...]
    cases: tuple[CasePart, ...]


def document_of(report: Report) -> ReportPart:
    return ReportPart(
        schema=SCHEMA,
        tool_version=report.version,
        service=report.service,
        contract=report.contract,
        level=report.level,
        started_at=report.started_at,
        seconds=report.seconds,
        is_partial=report.is_partial,
        verdict=standing(report),
        headline=report.headline,
        exit_code=report.exit_code,
        counts=_counts(report),
        surprises=report.surprises,
        rules=_rules(report),
        cases=tuple(_case(outcome) for outcome in report.outcomes),
    )


def report_of(document: ReportPart) -> Report:
    """Only what is not derived is taken from the document."""
    return Report(
        service=document.service,
        contract=document.contract,
        level=document.level,
        started_at=document.started_at,
        seconds=document.seconds,
        outcomes=tuple(_outcome(case) for case in document.cases),
        version=document.tool_version,
        is_partial=document.is_partial,
        surprises=document.surprises,
    )


def _counts(report: Report) -> CountsPart:
    counts = tally(report)
    return CountsPart(
        passed=counts[Mark.PASS],
        failed=counts[Mark.FAIL],
        known=counts[Mark.KNOWN],
        skipped=counts[Mark.SKIPPED],
        faults=counts[Mark.FAULT],
    )


def _rules(report: Report) -> tuple[RulePart, ...]:
    verdicts = rules_by_verdict(report.outcomes)
    return tuple(_rule(rule_id, verdicts[rule_id]) for rule_id in by_rule(report.outcomes))


def _rule(rule_id: str, verdict: Verdict) -> RulePart:
    found = rule(rule_id)
    return RulePart(
        id=found.id,
        level=found.level,
        statement=found.statement,
        clause=found.clause,
        verdict=verdict,
    )


def _case(outcome: Outcome) -> CasePart:
    told = asdict(outcome)
    return CasePart(id=told.pop("case_id"), rule=told.pop("rule_id"), **told)


def _outcome(case: CasePart) -> Outcome:
    told = case.model_dump(exclude={"id", "rule", "timeline"})
    moments = tuple(Moment(**moment.model_dump()) for moment in case.timeline)
    return Outcome(case_id=case.id, rule_id=case.rule, timeline=moments, **told)
