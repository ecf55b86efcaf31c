"""JUnit XML, which every CI system can show."""

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from contract_tests.reports.publishing import legible, legible_line, published
from contract_tests.reports.standing import Mark, mark, standing, tally
from contract_tests.rules import rule
from contract_tests.verdicts import Moment, Outcome, Report

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'


def junit_text(report: Report) -> str:
    """One test suite. An entry of the baseline that holds no longer is a failed test too, since it
    fails the run; a known failure is a skipped one, since it does not."""
    report = published(report)
    counts = tally(report)
    suite = Element(
        "testsuite",
        name=legible_line(f"lucius conformance of {report.service}, level {report.level}"),
        tests=str(len(report.outcomes) + len(report.surprises)),
        failures=str(counts[Mark.FAIL] + len(report.surprises)),
        errors=str(counts[Mark.FAULT]),
        skipped=str(counts[Mark.SKIPPED] + counts[Mark.KNOWN]),
        time=f"{report.seconds:.3f}",
        timestamp=report.started_at.isoformat(timespec="seconds"),
    )
    _add_properties(suite, report)
    for outcome in report.outcomes:
        _add_case(suite, outcome)
    for surprise in report.surprises:
        _add_surprise(suite, surprise)
    root = Element("testsuites")
    root.append(suite)
    indent(root)
    return f"{_DECLARATION}\n{tostring(root, encoding='unicode')}\n"


def _add_properties(suite: Element, report: Report) -> None:
    facts = {
        "verdict": standing(report),
        "headline": report.headline,
        "level": report.level,
        "contract": report.contract,
        "version": report.version,
        "is_partial": str(report.is_partial).lower(),
    }
    found = SubElement(suite, "properties")
    for name, value in facts.items():
        SubElement(found, "property", name=name, value=legible_line(value))


def _add_case(suite: Element, outcome: Outcome) -> None:
    case = SubElement(
        suite,
        "testcase",
        classname=legible_line(outcome.rule_id),
        name=legible_line(outcome.case_id),
        time=f"{outcome.seconds:.3f}",
    )
    match mark(outcome):
        case Mark.FAIL:
            _add_end(case, "failure", outcome.reason, _told(outcome))
        case Mark.FAULT:
            _add_end(case, "error", outcome.reason, _told(outcome))
        case Mark.KNOWN:
            _add_end(case, "skipped", f"known failure: {outcome.reason}")
        case Mark.SKIPPED:
            _add_end(case, "skipped", outcome.reason)
    if outcome.log:
        SubElement(case, "system-out").text = legible(outcome.log)


def _add_surprise(suite: Element, surprise: str) -> None:
    case = SubElement(suite, "testcase", classname="baseline", name=legible_line(surprise))
    _add_end(case, "failure", surprise)


def _add_end(case: Element, name: str, message: str, told: str = "") -> None:
    end = SubElement(case, name, message=legible_line(message))
    if name != "skipped":
        end.set("type", case.get("classname", ""))
    end.text = legible(told) or None


def _told(outcome: Outcome) -> str:
    broken = rule(outcome.rule_id)
    parts = [
        outcome.reason,
        f"Rule {broken.id}: {broken.statement}",
        f"Clause: {broken.clause}",
        f"Likely cause: {outcome.cause}" if outcome.cause else "",
        f"Repeat it: {outcome.repeat}" if outcome.repeat else "",
        "\n".join(map(_line, outcome.timeline)),
    ]
    return "\n\n".join(part for part in parts if part)


def _line(moment: Moment) -> str:
    return f"{moment.at:9.3f}  {moment.who:<8} {moment.job:<6}  {legible_line(moment.text)}"
