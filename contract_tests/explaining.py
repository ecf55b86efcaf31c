"""A rule as a person reads it who has never seen this project."""

import inspect
import textwrap
from collections.abc import Iterator

from contract_tests.rules import Rule
from contract_tests.scenarios import SCENARIOS
from contract_tests.scenarios.scenario import Scenario, Ways
from contract_tests.words import words_in

_WIDTH = 88
_WAYS = {
    Ways.ONE: "",
    Ways.EACH: " Once for each way to reply that the service declares.",
    Ways.HTTP: " With replies over HTTP.",
    Ways.BUS: " With replies over the bus.",
}


def explained(rule: Rule) -> str:
    parts = [
        f"{rule.id}  (level {rule.level}; the service contract, {rule.clause})",
        "",
        *_wrapped(rule.statement),
        "",
        "Why it matters",
        *_wrapped(rule.why, indent="  "),
        "",
        "How the harness finds out",
    ]
    for scenario in scenarios_of(rule):
        parts += [f"  {rule.id}/{scenario.name}", *_wrapped(scenario_text(scenario), indent="    ")]
    if rule.needs:
        needs = ", ".join(rule.needs)
        parts += ["", *_wrapped(f"It is skipped for a service that declares to have no {needs}.")]
    parts += ["", "When it fails, look here first", *_wrapped(rule.causes, indent="  ")]
    parts += ["", "To try it", f"  lucius conform run contract.yaml --only {rule.id}"]
    return "\n".join([*parts, *_glossary(rule)])


def scenarios_of(rule: Rule) -> list[Scenario]:
    return [scenario for scenario in SCENARIOS if scenario.rule_id == rule.id]


def scenario_text(scenario: Scenario) -> str:
    text = inspect.getdoc(scenario.run) or ""
    return " ".join(text.split()) + _WAYS[scenario.ways]


def _glossary(rule: Rule) -> Iterator[str]:
    told = " ".join(scenario_text(scenario) for scenario in scenarios_of(rule))
    found = words_in(f"{rule.statement} {rule.why} {told}")
    if found:
        yield from ("", "Words")
    for word in found:
        yield from _wrapped(f"{word.word}: {word.meaning}", indent="  ", following="    ")


def _wrapped(text: str, indent: str = "", following: str | None = None) -> list[str]:
    following = indent if following is None else following
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=following)
