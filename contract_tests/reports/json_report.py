"""The report that programs read, and that every other report can be made of.

Its form has a version of its own. It is read back with care: whatever follows from the cases is
stated for the reader's sake and must follow from them.
"""

import json
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from contract_tests.reports.publishing import published
from contract_tests.reports.standing import Mark, Standing, by_rule, standing, tally
from contract_tests.rules import RULES, Level, UnknownRule, rule
from contract_tests.verdicts import (
    ExitCode,
    Moment,
    Outcome,
    Report,
    Verdict,
    rules_by_verdict,
)
from lucius_contract.canonical import pointer_to

SCHEMA: Literal["lucius-conformance/1"] = "lucius-conformance/1"
_DERIVED = ("verdict", "exit_code", "headline", "counts")
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]


class ReportUnusable(Exception):
    """It is no report of this version, or it contradicts itself; the text says where."""


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

    form: Annotated[Literal["lucius-conformance/1"], Field(alias="schema")]
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
    exit_code: Literal[0, 1, 3, 5]
    """Of the command: 0 conformant, 1 not conformant, 3 the environment failed, 5 incomplete."""
    counts: CountsPart
    surprises: tuple[str, ...]
    """Entries of the baseline that hold no longer."""
    rules: tuple[RulePart, ...]
    cases: tuple[CasePart, ...]


def json_text(report: Report) -> str:
    told = _document(published(report)).model_dump(mode="json", by_alias=True)
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def read_report(text: str | bytes) -> Report:
    """What `json_text` was made of, as it was published. `ReportUnusable`."""
    stated = _parsed(text)
    report = _report(stated)
    _check_cases(report)
    _check_scope(report)
    _check_derived(stated, _document(report))
    return report


def schema_text() -> str:
    """The JSON Schema that is shipped beside this module."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:lucius:conformance-report:1",
        **ReportPart.model_json_schema(mode="serialization"),
        "title": "LUCIUS conformance report",
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _document(report: Report) -> ReportPart:
    counts = tally(report)
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
        exit_code=_exit_code(report.exit_code),
        counts=CountsPart(
            passed=counts[Mark.PASS],
            failed=counts[Mark.FAIL],
            known=counts[Mark.KNOWN],
            skipped=counts[Mark.SKIPPED],
            faults=counts[Mark.FAULT],
        ),
        surprises=report.surprises,
        rules=_rules(report),
        cases=tuple(_case(outcome) for outcome in report.outcomes),
    )


def _exit_code(code: ExitCode) -> Literal[0, 1, 3, 5]:
    known: dict[ExitCode, Literal[0, 1, 3, 5]] = {
        ExitCode.CONFORMANT: 0,
        ExitCode.NOT_CONFORMANT: 1,
        ExitCode.HARNESS: 3,
        ExitCode.INCOMPLETE: 5,
    }
    return known[code]


def _rules(report: Report) -> tuple[RulePart, ...]:
    verdicts = rules_by_verdict(report.outcomes)
    found = [(rule(rule_id), verdicts[rule_id]) for rule_id in by_rule(report.outcomes)]
    return tuple(
        RulePart(
            id=each.id,
            level=each.level,
            statement=each.statement,
            clause=each.clause,
            verdict=verdict,
        )
        for each, verdict in found
    )


def _case(outcome: Outcome) -> CasePart:
    told = asdict(outcome)
    told |= {"id": told.pop("case_id"), "rule": told.pop("rule_id")}
    return CasePart(**told)
