"""What a scenario is, and the cases that it becomes for a service."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from contract_tests.bench import Bench
from contract_tests.contract import Contract
from contract_tests.rules import Need, Rule, rule
from lucius_orchestrator.domain.aggregate import ReplyVia

Run = Callable[[Bench, ReplyVia], Awaitable[None]]


class Ways(Enum):
    """With which ways to reply a scenario is played."""

    ONE = auto()
    """The first that the service declares."""
    EACH = auto()
    HTTP = auto()
    BUS = auto()


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to find a rule broken."""

    rule_id: str
    name: str
    run: Run
    ways: Ways = Ways.ONE
    needs: tuple[Need, ...] = ()


class Case(NamedTuple):
    """`lacks` is what the service declares not to have, and without which it cannot be judged."""

    id: str
    scenario: Scenario
    via: ReplyVia
    lacks: Need | None = None

    @property
    def rule(self) -> Rule:
        return rule(self.scenario.rule_id)


def cases_of(scenario: Scenario, contract: Contract) -> Iterator[Case]:
    name = f"{scenario.rule_id}/{scenario.name}"
    lacks = next((need for need in _needs(scenario) if not _has(contract, need)), None)
    if scenario.ways is Ways.EACH:
        for way in contract.reply_via:
            yield Case(f"{name}-{way}", scenario, way, lacks)
    elif scenario.ways is Ways.ONE:
        yield Case(name, scenario, contract.reply_via[0], lacks)
    else:
        way = ReplyVia.HTTP if scenario.ways is Ways.HTTP else ReplyVia.BUS
        if way in contract.reply_via or lacks is not None:
            yield Case(name, scenario, way, lacks)


def _needs(scenario: Scenario) -> tuple[Need, ...]:
    return (*rule(scenario.rule_id).needs, *scenario.needs)


def _has(contract: Contract, need: Need) -> bool:
    return {
        Need.HTTP_REPLIES: ReplyVia.HTTP in contract.reply_via,
        Need.HEARTBEATS: contract.heartbeats,
        Need.ARTIFACTS: contract.artifacts,
        Need.TWO_AT_ONCE: contract.concurrency > 1,
        Need.SECOND_INSTANCE: contract.shares_store,
        Need.TWO_STORES: contract.shares_store or contract.has_own_store,
    }[need]
