from dataclasses import replace
from xml.etree.ElementTree import Element, fromstring

from hypothesis import given

from contract_tests.reports.junit import junit_text
from contract_tests.rules import Level
from contract_tests.verdicts import Report
from tests.conform.reports.samples import NASTY, failed, fault, report, reports, skipped


def _suite(found: Report) -> Element:
    (suite,) = fromstring(junit_text(found).encode())  # noqa: S314 - it is our own
    return suite


def _case(suite: Element, name: str) -> Element:
    (found,) = [each for each in suite.iter("testcase") if each.get("name") == name]
    return found


@given(reports())
def test_it_is_xml_whatever_the_service_says(found: Report) -> None:
    assert len(_suite(found).findall("testcase")) == len(found.outcomes) + len(found.surprises)


def test_every_end_has_its_element() -> None:
    known = replace(failed("LC-05"), is_known=True)
    suite = _suite(
        report(failed("LC-04"), known, fault("LC-07"), skipped("LC-26"), level=Level.FULL)
    )
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == [
        "26",
        "1",
        "1",
        "2",
    ]
    assert _case(suite, "LC-04/sample").find("failure") is not None
    assert _case(suite, "LC-07/sample").find("error") is not None
    assert len(_case(suite, "LC-01/sample")) == 0
    excused = _case(suite, "LC-05/sample").find("skipped")
    assert excused is not None
    assert excused.get("message") == "known failure: the work ran twice"


def test_a_failure_tells_what_is_needed_to_mend_it() -> None:
    failure = _case(_suite(report(failed("LC-04"))), "LC-04/sample").find("failure")
    assert failure is not None
    assert failure.get("message") == "the work ran twice"
    text = failure.text or ""
    assert "LC-04: A duplicate of a directive" in text
    assert "Likely cause: Nothing is remembered." in text
    assert "lucius conform run upper/contract.yaml --only LC-04/sample" in text
    assert "2.817  service  86a307  RESULT attempt 1 SUCCEEDED" in text


def test_a_baseline_out_of_date_is_a_failed_test() -> None:
    suite = _suite(report(surprises=("LC-07 passes now: remove its entry",)))
    assert suite.get("failures") == "1"
    assert _case(suite, "LC-07 passes now: remove its entry").find("failure") is not None


def test_control_characters_are_replaced_and_lines_stay_lines() -> None:
    outcome = replace(failed("LC-04", reason=NASTY), log="one\r\ntwo\x1b[0m\x07")
    case = _case(_suite(report(outcome)), "LC-04/sample")
    assert case.findtext("system-out") == "one\ntwo\N{REPLACEMENT CHARACTER}"
    failure = case.find("failure")
    assert failure is not None
    assert "<script>" in (failure.get("message") or "")
    assert "red" in (failure.get("message") or "")
