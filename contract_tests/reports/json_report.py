"""The report that programs read, and that every other report can be made of.

It is read back with care: a report that was published is a claim, and one that contradicts itself
is none.
"""

import json
from collections import Counter

from pydantic import ValidationError

from contract_tests.reports.document import SCHEMA, ReportPart, document_of, report_of
from contract_tests.reports.publishing import published
from contract_tests.rules import RULES, Level, UnknownRule, rule
from contract_tests.verdicts import Outcome, Report, Verdict
from lucius_contract.canonical import pointer_to, read_json
from lucius_contract.errors import ContractError

_DERIVED = ("verdict", "exit_code", "headline", "counts")


class ReportUnusable(Exception):
    """It is no report of this version, or it contradicts itself; the text says where."""


def json_text(report: Report) -> str:
    told = document_of(published(report)).model_dump(mode="json", by_alias=True)
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def read_report(text: str | bytes) -> Report:
    """What `json_text` was made of, as it was published. `ReportUnusable`."""
    stated = _parsed(text)
    report = report_of(stated)
    _check_cases(report)
    _check_scope(report)
    _check_derived(stated, document_of(report))
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


def _parsed(text: str | bytes) -> ReportPart:
    try:
        found = read_json(text)
    except ContractError as error:
        raise ReportUnusable(f"it is not JSON: {error.problems[0].message}") from error
    form = found.get("schema") if isinstance(found, dict) else None
    if form != SCHEMA:
        raise ReportUnusable(f"its schema is {form!r}; {SCHEMA!r} can be read")
    try:
        return ReportPart.model_validate_json(text)
    except ValidationError as error:
        raise ReportUnusable(_told(error)) from error


def _told(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{pointer_to(each['loc']) or 'it'}: {each['msg']}" for each in found[:5])


def _check_cases(report: Report) -> None:
    for outcome in report.outcomes:
        _check_case(outcome)
    ids = Counter(outcome.case_id for outcome in report.outcomes)
    twice = [case_id for case_id, times in ids.items() if times > 1]
    if twice:
        raise ReportUnusable(f"{twice[0]} is in it more than once")


def _check_case(outcome: Outcome) -> None:
    try:
        rule(outcome.rule_id)
    except UnknownRule as error:
        raise ReportUnusable(str(error)) from error
    if not outcome.case_id.startswith(f"{outcome.rule_id}/"):
        raise ReportUnusable(f"{outcome.case_id} is no case of {outcome.rule_id}")
    if outcome.is_known and outcome.verdict is not Verdict.FAIL:
        raise ReportUnusable(f"{outcome.case_id} is a known failure, but it did not fail")


def _check_scope(report: Report) -> None:
    """A run of a level judges or skips each of its rules."""
    judged = {outcome.rule_id for outcome in report.outcomes}
    asked = {each.id for each in RULES if report.level is Level.FULL or each.level is Level.CORE}
    if judged - asked:
        raise ReportUnusable(f"{min(judged - asked)} is no rule of level {report.level}")
    if asked - judged and not report.is_partial:
        raise ReportUnusable(f"it is said to be complete, but {min(asked - judged)} is missing")


def _check_derived(stated: ReportPart, found: ReportPart) -> None:
    for name in _DERIVED:
        said, is_so = getattr(stated, name), getattr(found, name)
        if said != is_so:
            raise ReportUnusable(f"its {name} is {said!r}, but its cases say {is_so!r}")
    verdicts = {each.id: each.verdict for each in found.rules}
    for each in stated.rules:
        if verdicts.get(each.id) is not each.verdict:
            raise ReportUnusable(f"{each.id} is said to be {each.verdict}, not so by its cases")
    if len(stated.rules) != len(verdicts):
        raise ReportUnusable("its rules are not those of its cases")
