import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings

from contract_tests.reports.html import html_text
from contract_tests.rules import RULES, Level
from contract_tests.verdicts import Moment, Report
from tests.conform.reports.samples import (
    NASTY,
    TIMELINE,
    failed,
    fault,
    passed,
    report,
    reports,
    skipped,
)
from tests.runner.tiers import by_tier

_VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """What a browser would make of it, as long as every element is closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.said: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        facts = dict(attrs)
        assert len(facts) == len(attrs), f"an attribute of {tag} is there twice"
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name in ("href", "src") and value]
        assert not any(name.startswith("on") for name in facts)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.said.append(data)


def _drawn(*moments: Moment) -> str:
    """The words beside the drawing of a case with these moments."""
    outcome = replace(failed("LC-04"), timeline=moments)
    text = html_text(report(outcome))
    (section,) = re.findall(r'<section class="rule fail".*?</section>', text, re.DOTALL)
    (drawing,) = re.findall(r'<ol class="sequence">.*?</ol>', section, re.DOTALL)
    return Page(drawing).text


@settings(max_examples=by_tier(20, 100))
@given(reports())
def test_a_page_is_well_formed_whatever_the_service_says(found: Report) -> None:
    text = html_text(found)
    page = Page(text)
    assert "script" not in page.names
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", text)
    assert len(page.ids) == len(set(page.ids))


def test_a_page_needs_no_other_file() -> None:
    page = Page(html_text(report(failed("LC-04"))))
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert not page.names & {"script", "img", "iframe", "object"}


def test_every_rule_is_linked_to_its_section() -> None:
    page = Page(html_text(report(level=Level.FULL)))
    ids = {each.id for each in RULES}
    assert {link[1:] for link in page.links if link.startswith("#")} == ids
    assert ids <= set(page.ids)


@pytest.mark.parametrize(
    ("found", "title"),
    [
        (report(), "Conformant"),
        (report(failed("LC-04")), "Not conformant"),
        (report(skipped("LC-10")), "Incomplete"),
        (report(is_partial=True), "Incomplete"),
        (report(fault("LC-04")), "Not judged"),
        (report(surprises=("remove it",)), "Not conformant"),
    ],
)
def test_the_verdict_is_the_title(found: Report, title: str) -> None:
    text = html_text(found)
    (heading,) = re.findall(r"<h1.*?</h1>", text)
    assert Page(heading).text == title
    assert found.headline in Page(text).text


def test_a_page_says_what_was_judged() -> None:
    text = Page(html_text(report())).text
    for fact in ("upper", "core", "2026-03-04 05:06 UTC", "1 min 1 s", "0.1.0", "contract.yaml"):
        assert fact in text
    assert "/home/somebody" not in text


def test_a_failure_is_told_with_its_cause_and_the_command_that_repeats_it() -> None:
    text = Page(html_text(report(failed("LC-04", "after-restart")))).text
    assert "the work ran twice" in text
    assert "Likely cause Nothing is remembered." in text
    assert "lucius conform run upper/contract.yaml --only LC-04/after-restart" in text
    assert "first line last line" in text


def test_failures_come_before_what_was_kept() -> None:
    text = html_text(report(failed("LC-20")))
    assert text.index('id="LC-20"') < text.index('id="LC-01"')


def test_cases_that_passed_are_drawn_too_but_closed() -> None:
    text = html_text(report(passed("LC-01")))
    (case,) = re.findall(r'<details class="case pass" id="LC-01-sample">.*?</ol>', text, re.DOTALL)
    assert "<svg" in case
    assert "<details open" not in text


def test_whatever_a_service_says_is_text() -> None:
    outcome = replace(failed("LC-04", reason=NASTY), log=NASTY, cause=NASTY)
    page = Page(html_text(report(outcome, service=NASTY, surprises=(NASTY,))))
    assert "<script>alert('x')</script> & \"q\"" in page.text
    assert "script" not in page.names


def test_every_moment_is_in_the_table() -> None:
    text = html_text(report(failed("LC-04")))
    for moment in TIMELINE:
        assert f"<td>{moment.at:.3f}</td>" in text


def test_renewals_that_follow_each_other_are_one_line_of_a_drawing() -> None:
    renewals = [Moment(float(n), "service", "renewed attempt 1", "aaaaaa") for n in range(10)]
    text = _drawn(*renewals, Moment(11, "service", "completed attempt 1", "aaaaaa"))
    assert text.count("renewed") == 1
    assert "10 times, until 9.000" in text
    assert "completed" in text


def test_a_drawing_of_a_long_timeline_has_its_beginning_and_its_end() -> None:
    moments = [Moment(n / 10, "bus", f"delivered attempt {n}") for n in range(200)]
    text = _drawn(*moments)
    assert text.count("delivered") == 60
    assert "attempt 0 " in text
    assert "140 lines more" in text
    assert text.endswith("attempt 199")


def test_a_pause_is_told() -> None:
    assert "12.5 s later" in _drawn(Moment(0, "bus", "expired"), Moment(12.5, "bus", "expired"))
