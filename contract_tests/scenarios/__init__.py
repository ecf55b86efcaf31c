"""How each rule is judged: every scenario is one plausible way to find it broken."""

from collections.abc import Iterator

from contract_tests.contract import Contract
from contract_tests.rules import Level
from contract_tests.scenarios import (
    capacity,
    failing,
    lasting,
    reading,
    repeating,
    replying,
    storing,
)
from contract_tests.scenarios.scenario import Case, Scenario, Ways, cases_of

SCENARIOS: tuple[Scenario, ...] = tuple(
    sorted(
        (
            *replying.SCENARIOS,
            *repeating.SCENARIOS,
            *storing.SCENARIOS,
            *reading.SCENARIOS,
            *failing.SCENARIOS,
            *lasting.SCENARIOS,
            *capacity.SCENARIOS,
        ),
        key=lambda scenario: scenario.rule_id,
    )
)


def all_cases(contract: Contract, level: Level) -> Iterator[Case]:
    """In the order of the rules."""
    for scenario in SCENARIOS:
        for case in cases_of(scenario, contract):
            if level is Level.FULL or case.rule.level is Level.CORE:
                yield case


__all__ = ["SCENARIOS", "Case", "Scenario", "Ways", "all_cases", "cases_of"]
