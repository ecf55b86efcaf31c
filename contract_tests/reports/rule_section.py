"""The part of the page that tells of one rule: what it asks for, why, and what each case showed."""

import inspect
from collections.abc import Sequence
from itertools import chain

from contract_tests.reports.drawing import drawing
from contract_tests.reports.icons import colour, icon
from contract_tests.reports.markup import Markup, joined, tag
from contract_tests.reports.standing import Mark, mark, worst, worst_first
from contract_tests.rules import Rule, rule
from contract_tests.scenarios import SCENARIOS
from contract_tests.verdicts import Moment, Outcome, counted


def rule_section(rule_id: str, outcomes: Sequence[Outcome]) -> Markup:
    found, end = rule(rule_id), worst(outcomes)
    return tag(
        "section",
        _header(found, end),
        tag("p", *_with_code(found.why), class_="why"),
        *(_case(outcome) for outcome in worst_first(outcomes)),
        class_=f"rule {colour(end)}",
        id=found.id,
    )


def _header(found: Rule, end: Mark) -> Markup:
    where = f"Service contract, “{found.clause}” · level {found.level}"
    return tag(
        "header",
        tag("h3", icon(end), found.id, class_="id"),
        tag("span", end, class_="chip"),
        tag("span", where, class_="clause"),
        tag("p", *_with_code(found.statement), class_="statement"),
    )


def _with_code(text: str) -> list[str]:
    """What stands between backticks is code."""
    parts = text.split("`")
    return [tag("code", part) if number % 2 else part for number, part in enumerate(parts)]


def _case(outcome: Outcome) -> Markup:
    """What passed is closed: it is there for who wants to compare."""
    end = mark(outcome)
    name = [icon(end), tag("code", outcome.case_id), _length(outcome)]
    about = {"class_": f"case {colour(end)}", "id": outcome.case_id.replace("/", "-")}
    inside = [_advice(outcome), *_evidence(outcome)] if end is not Mark.SKIPPED else []
    if end is Mark.PASS:
        return tag("details", tag("summary", *name), *inside, **about)
    reason = tag("p", outcome.reason, class_="reason") if outcome.reason else None
    return tag("article", tag("h4", *name), reason, *inside, **about)


def _length(outcome: Outcome) -> Markup | None:
    if not outcome.timeline:
        return None
    return tag("span", f"{outcome.seconds:.1f} s", class_="seconds")


def _advice(outcome: Outcome) -> Markup:
    command = tag("pre", tag("code", outcome.repeat)) if outcome.repeat else ""
    facts = {
        "Judged by": joined(*_with_code(_scenario_text(outcome.case_id))),
        "Likely cause": joined(*_with_code(outcome.cause)),
        "Repeat it": command,
    }
    told = [(tag("dt", name), tag("dd", value)) for name, value in facts.items() if value]
    return tag("dl", *chain.from_iterable(told), class_="advice")


def _scenario_text(case_id: str) -> str:
    """The case is called like its scenario, some with the way to reply at the end."""
    for scenario in SCENARIOS:
        name = f"{scenario.rule_id}/{scenario.name}"
        if case_id == name or case_id.startswith(f"{name}-"):
            return " ".join((inspect.getdoc(scenario.run) or "").split())
    return ""


def _evidence(outcome: Outcome) -> list[Markup]:
    found = [drawing(outcome.timeline)]
    if outcome.timeline:
        title = f"Every moment: {counted(len(outcome.timeline), 'line')}"
        found.append(_folded(title, _table(outcome.timeline)))
    if outcome.log:
        found.append(_folded("End of the service's log", tag("pre", outcome.log, class_="log")))
    return found


def _folded(title: str, inside: Markup) -> Markup:
    return tag("details", tag("summary", title), inside, class_="more")


def _table(moments: Sequence[Moment]) -> Markup:
    heads = tag("tr", *(tag("th", name) for name in ("s", "who", "job", "what")))
    rows = (
        tag("tr", *(tag("td", cell) for cell in (f"{m.at:.3f}", m.who, m.job, m.text)))
        for m in moments
    )
    return tag("div", tag("table", tag("thead", heads), tag("tbody", joined(*rows))), class_="wide")
