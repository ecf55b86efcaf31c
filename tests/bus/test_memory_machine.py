"""Random histories of one subscription, compared step by step with a model."""

import asyncio
import itertools
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from lucius_bus.memory import Counts, MemoryBus
from lucius_bus.port import Delivery, LockLost
from lucius_bus.topology import SubscriptionSettings, dead_letters_of
from tests.bus.backends import AT_ONCE, VERBS, Clock, message

T = TypeVar("T")
TOPIC, NAME = "lane", "ocr"
LOCK = timedelta(seconds=60)
DELIVERIES = 3


@dataclass(eq=False)
class Row:
    """What must be true of one message."""

    number: int
    expires_at: datetime | None
    state: str = "active"
    deliveries: int = 0
    until: datetime | None = None

    def give_back(self, now: datetime) -> None:
        if self.deliveries == DELIVERIES:
            self.state = "dead"
        else:
            self.state = "active"
        self.until = None
        self.look_at(now)

    def look_at(self, now: datetime) -> None:
        if self.state == "held" and self.until is not None and self.until <= now:
            self.give_back(now)
        if self.state == "active" and self.expires_at is not None and self.expires_at <= now:
            self.state = "dead"


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = Clock()
        self.bus = MemoryBus(self.clock)
        self.bus.create_topic(TOPIC)
        self.bus.create_subscription(
            TOPIC,
            SubscriptionSettings(
                NAME,
                lock_duration=LOCK,
                max_delivery_count=DELIVERIES,
                dead_letter_on_expiry=True,
            ),
        )
        self.rows: list[Row] = []
        self.deliveries: list[tuple[Row, int, Delivery]] = []

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    @rule(lives=st.sampled_from([None, 30, 90]))
    def publish(self, lives: int | None) -> None:
        ends = None if lives is None else self.clock.now + timedelta(seconds=lives)
        row = Row(len(self.rows), ends)
        self.rows.append(row)
        assert self.run(self.bus.publish(TOPIC, [message(row.number, expires_at=ends)])) == []

    @rule(limit=st.integers(1, 3))
    def receive(self, limit: int) -> None:
        active = (row for row in self.rows if row.state == "active")
        expected = list(itertools.islice(active, limit))
        received = self.run(self.bus.receive(TOPIC, NAME, limit, AT_ONCE))
        for row, delivery in zip(expected, received, strict=True):
            row.state, row.until = "held", self.clock.now + LOCK
            row.deliveries += 1
            assert delivery.message.message_id == f"m{row.number}"
            assert delivery.delivery_count == row.deliveries
            assert delivery.locked_until == row.until
            self.deliveries.append((row, row.deliveries, delivery))

    @precondition(lambda self: self.deliveries)
    @rule(data=st.data(), verb=st.sampled_from(sorted(VERBS)))
    def settle(self, data: st.DataObject, verb: str) -> None:
        """Any delivery of the past: only that which is held may be settled."""
        row, number, delivery = data.draw(st.sampled_from(self.deliveries))
        if row.state != "held" or row.deliveries != number:
            with pytest.raises(LockLost):
                self.apply(verb, delivery)
            return
        self.apply(verb, delivery)
        match verb:
            case "abandon":
                row.give_back(self.clock.now)
            case "renew":
                row.until = self.clock.now + LOCK
            case _:
                row.state = {"complete": "gone", "dead_letter": "dead"}[verb]

    def apply(self, verb: str, delivery: Delivery) -> None:
        async def work() -> None:
            await VERBS[verb](self.bus, delivery)

        self.run(work())

    @rule(seconds=st.sampled_from([1, 29, 60]), ticks=st.booleans())
    def pass_time(self, seconds: int, ticks: bool) -> None:
        self.clock.advance(seconds=seconds)
        if ticks:
            self.bus.tick()
        for row in self.rows:
            row.look_at(self.clock.now)

    @rule()
    def count(self) -> None:
        """A rule, not an invariant: counting makes the bus look at the time."""
        states = [row.state for row in self.rows]
        counted = Counts(states.count("active"), states.count("held"), states.count("dead"))
        assert self.bus.counts(TOPIC, NAME) == counted

    def teardown(self) -> None:
        self.count()
        dead = self.run(self.bus.receive(TOPIC, dead_letters_of(NAME), 1000, AT_ONCE))
        expected = [f"m{row.number}" for row in self.rows if row.state == "dead"]
        assert sorted(one.message.message_id for one in dead) == sorted(expected)
        self.runner.close()


TestMachine = Machine.TestCase
