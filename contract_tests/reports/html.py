"""One page for people: what was judged, what came of it, and for every case who did what when.

It needs no other file and no script.
"""

from collections.abc import Iterator
from datetime import UTC
from importlib.resources import files
from urllib.parse import quote

from contract_tests.reports.icons import colour, icon
from contract_tests.reports.markup import Markup, joined, tag
from contract_tests.reports.publishing import legible_line, published
from contract_tests.reports.rule_section import rule_section
from contract_tests.reports.standing import Mark, Standing, by_rule, standing, tally, worst
from contract_tests.rules import RULES, Level, Rule
from contract_tests.verdicts import Outcome, Report, counted

Judged = dict[str, list[Outcome]]
_TITLES = {
    Standing.CONFORMANT: "Conformant",
    Standing.NOT_CONFORMANT: "Not conformant",
    Standing.INCOMPLETE: "Incomplete",
    Standing.FAULT: "Not judged",
}
_GROUPS = {
    Mark.FAIL: "Broken",
    Mark.FAULT: "Not judged: the harness or its environment failed",
    Mark.KNOWN: "Known failures",
    Mark.SKIPPED: "Skipped",
    Mark.PASS: "Kept",
}
_WORDS = {
    Mark.FAIL: "failed",
    Mark.FAULT: "not judged",
    Mark.KNOWN: "known to fail",
    Mark.PASS: "passed",
    Mark.SKIPPED: "skipped",
}
_TAB_ICON = '<svg xmlns="http://www.w3.org/2000/svg"><circle cx="8" cy="8" r="7" fill="{}"/></svg>'
_TAB_COLOURS = {"pass": "#1a7f4b", "fail": "#c9303e", "part": "#b07d00", "fault": "#6e7681"}


def html_text(report: Report) -> str:
    report = published(report)
    judged = by_rule(report.outcomes)
    body = tag(
        "body",
        tag("main", _verdict(report), *_notes(report), _grid(report, judged), *_groups(judged)),
        tag("footer", f"LUCIUS conformance harness {report.version}"),
    )
    return f"<!DOCTYPE html>\n{tag('html', _head(report), body, lang='en')}\n"


def _head(report: Report) -> Markup:
    style = files("contract_tests.reports").joinpath("page.css").read_text(encoding="utf-8")
    tab_icon = _TAB_ICON.format(_TAB_COLOURS[colour(standing(report))])
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", legible_line(report.headline)),
        tag("link", rel="icon", href=f"data:image/svg+xml,{quote(tab_icon)}"),
        tag("style", Markup(style)),
    )


def _verdict(report: Report) -> Markup:
    found = standing(report)
    return tag(
        "header",
        tag("p", "LUCIUS conformance", class_="eyebrow"),
        tag("h1", icon(found), _TITLES[found], class_=colour(found)),
        tag("p", report.headline, class_="headline"),
        _bar(report),
        _facts(report),
        class_=f"verdict {colour(found)}",
    )


def _bar(report: Report) -> Markup:
    """The cases, in proportion."""
    counts = {end: number for end, number in tally(report).items() if number}
    parts = (tag("i", class_=colour(e), style=f"flex-grow:{n}") for e, n in counts.items())
    words = (
        tag("span", tag("b", str(number)), f" {_WORDS[end]}", class_=colour(end))
        for end, number in counts.items()
    )
    bar = tag("div", *parts, class_="bar", aria_hidden="true")
    return joined(bar, tag("p", *words, class_="counts"))


def _facts(report: Report) -> Markup:
    facts = {
        "Service": report.service,
        "Level": report.level,
        "Judged": report.started_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Took": _length(report.seconds),
        "Harness": report.version,
        "Contract": report.contract,
    }
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items())
    return tag("dl", *pairs, class_="facts")


def _length(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _notes(report: Report) -> Iterator[Markup]:
    if report.is_partial:
        yield _note("Only some of the rules of this level were asked for, so this proves nothing.")
    if report.surprises:
        items = (tag("li", surprise) for surprise in report.surprises)
        title = f"{counted(len(report.surprises), 'entry', 'entries')} of the baseline out of date"
        yield _note(tag("b", title), tag("ul", *items))


def _note(*inside: str) -> Markup:
    return tag("aside", *inside, class_="note")


def _grid(report: Report, judged: Judged) -> Markup:
    tiles = (_tile(each, judged) for each in _rules_of(report.level))
    return tag("nav", tag("h2", "Rules"), tag("div", *tiles, class_="grid"), aria_label="Rules")


def _rules_of(level: Level) -> list[Rule]:
    return [each for each in RULES if level is Level.FULL or each.level is Level.CORE]


def _tile(found: Rule, judged: Judged) -> Markup:
    outcomes = judged.get(found.id)
    if outcomes is None:
        return tag("span", found.id, class_="tile", title=f"not asked for: {found.statement}")
    end = worst(outcomes)
    return tag(
        "a",
        icon(end),
        found.id,
        class_=f"tile {colour(end)}",
        href=f"#{found.id}",
        title=f"{end}: {found.statement}",
    )


def _groups(judged: Judged) -> Iterator[Markup]:
    """What needs somebody's attention comes first."""
    ends = {rule_id: worst(outcomes) for rule_id, outcomes in judged.items()}
    for end, title in _GROUPS.items():
        chosen = [rule_id for rule_id, found in ends.items() if found is end]
        if chosen:
            number = tag("span", counted(len(chosen), "rule"), class_="number")
            yield tag("h2", title, " ", number)
            yield from (rule_section(rule_id, judged[rule_id]) for rule_id in chosen)
