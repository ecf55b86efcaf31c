import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given

import contract_tests.reports
from contract_tests.reports.json_report import (
    ReportUnusable,
    json_text,
    read_report,
    schema_text,
)
from contract_tests.reports.publishing import published
from contract_tests.rules import Level
from contract_tests.verdicts import Report
from tests.conform.reports.samples import failed, report, reports, skipped

_SCHEMA = Path(contract_tests.reports.__path__[0]) / "conformance-report.schema.json"
Document = dict[str, Any]


def _changed(found: Report, change: Callable[[Document], object]) -> str:
    document = json.loads(json_text(found))
    change(document)
    return json.dumps(document)


@given(reports())
def test_what_is_written_is_read_back(found: Report) -> None:
    text = json_text(found)
    assert read_report(text.encode()) == published(found)


@given(reports())
def test_a_document_is_valid_under_the_shipped_schema(found: Report) -> None:
    jsonschema.validate(json.loads(json_text(found)), json.loads(_SCHEMA.read_text()))


def test_the_shipped_schema_is_that_of_the_code() -> None:
    assert _SCHEMA.read_text(encoding="utf-8") == schema_text(), (
        "write contract_tests.reports.json_report.schema_text() to it"
    )


def test_a_document_says_what_was_found() -> None:
    found = json.loads(json_text(report(failed("LC-04"), skipped("LC-26"), level=Level.FULL)))
    assert found["schema"] == "lucius-conformance/1"
    assert found["verdict"] == "not conformant"
    assert found["exit_code"] == 1
    assert found["counts"] == {"passed": 24, "failed": 1, "known": 0, "skipped": 1, "faults": 0}
    (rule,) = [each for each in found["rules"] if each["id"] == "LC-04"]
    assert rule["verdict"] == "fail"
    assert rule["clause"]
    (case,) = [each for each in found["cases"] if each["rule"] == "LC-04"]
    assert case["repeat"] == "lucius conform run upper/contract.yaml --only LC-04/sample"
    assert case["timeline"][0]["who"] == "harness"


def test_a_document_names_no_folder_of_the_machine() -> None:
    outcome = failed("LC-10", reason="not in /tmp/lucius-conform-ab12/1/workspace/x")
    text = json_text(report(outcome, seconds=1 / 3))
    assert "/home/somebody" not in text
    assert "/tmp/" not in text  # noqa: S108 - a text that is looked for
    assert '"contract": "upper/contract.yaml"' in text
    assert '"seconds": 0.333' in text


def test_a_path_that_only_ends_like_the_contract_folder_is_left_alone() -> None:
    outcome = failed("LC-10", reason="see /mnt/home/somebody/services/upper-two/x")
    (found,) = published(report(outcome)).failures
    assert found.reason == "see /mnt/home/somebody/services/upper-two/x"


def _another_version(document: Document) -> None:
    document["schema"] = "lucius-conformance/2"


def _another_exit_code(document: Document) -> None:
    document["exit_code"] = 0


def _another_verdict(document: Document) -> None:
    document["verdict"] = "conformant"


def _another_headline(document: Document) -> None:
    document["headline"] = "upper is conformant at level core"


def _another_count(document: Document) -> None:
    document["counts"]["failed"] = 0


def _a_rule_that_is_said_to_pass(document: Document) -> None:
    document["rules"][3]["verdict"] = "pass"


def _a_rule_less(document: Document) -> None:
    document["rules"].pop()


def _no_case_of_a_rule(document: Document) -> None:
    document["cases"] = [each for each in document["cases"] if each["rule"] != "LC-12"]


def _a_case_twice(document: Document) -> None:
    document["cases"].append(document["cases"][0])


def _a_case_of_no_rule(document: Document) -> None:
    document["cases"][0] |= {"id": "LC-99/sample", "rule": "LC-99"}


def _a_case_of_another_rule(document: Document) -> None:
    document["cases"][0]["id"] = "LC-02/other"


def _a_rule_above_the_level(document: Document) -> None:
    document["cases"].append(document["cases"][0] | {"id": "LC-26/sample", "rule": "LC-26"})


def _a_known_failure_that_passed(document: Document) -> None:
    document["cases"][0]["is_known"] = True


def _no_time_zone(document: Document) -> None:
    document["started_at"] = "2026-03-04T05:06:07"


def _a_field_less(document: Document) -> None:
    del document["cases"][0]["timeline"]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_another_version, "lucius-conformance/2"),
        (_another_exit_code, "exit_code"),
        (_another_verdict, "verdict"),
        (_another_headline, "headline"),
        (_another_count, "counts"),
        (_a_rule_that_is_said_to_pass, "LC-04"),
        (_a_rule_less, "rules"),
        (_no_case_of_a_rule, "LC-12 is missing"),
        (_a_case_twice, "more than once"),
        (_a_case_of_no_rule, "LC-99"),
        (_a_case_of_another_rule, "LC-02/other"),
        (_a_rule_above_the_level, "LC-26"),
        (_a_known_failure_that_passed, "did not fail"),
        (_no_time_zone, "/started_at"),
        (_a_field_less, "/cases/0/timeline"),
    ],
)
def test_a_damaged_document_is_refused(damage: Callable[[Document], None], told: str) -> None:
    with pytest.raises(ReportUnusable, match=told):
        read_report(_changed(report(failed("LC-04")), damage))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": 1}', b"\xff"])
def test_what_is_no_report_is_refused(text: str | bytes) -> None:
    with pytest.raises(ReportUnusable):
        read_report(text)


def test_fields_that_are_not_known_are_tolerated() -> None:
    found = report()
    text = _changed(found, lambda document: document.update(added_later=True))
    assert read_report(text) == published(found)
