"""A broker with a clock that stands still, and small messages for it."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from servicebus_emulator.broker import (
    Abandon,
    Broker,
    Complete,
    DeadLetter,
    Defer,
    Delivery,
    Outcome,
    Peeked,
    QueueSettings,
    Record,
    Source,
    SubscriptionSettings,
    TopicSettings,
)
from servicebus_emulator.rules import CorrelationFilter, Facts, Rule

START = 1_741_000_000_000
LOCK = 60_000
OUTCOMES: dict[str, Outcome] = {
    "complete": Complete(),
    "abandon": Abandon(),
    "defer": Defer(),
    "dead-letter": DeadLetter("Unreadable", "no JSON"),
}


@dataclass(frozen=True)
class Note:
    """A message that is its id and its properties."""

    message_id: str | None = None
    properties: Mapping[str, object] = field(default_factory=dict)
    session_id: str | None = None
    partition_key: str | None = None
    ttl: int | None = None
    scheduled_at: int | None = None
    size: int = 100

    @property
    def facts(self) -> Facts:
        return Facts(self.properties, message_id=self.message_id, session_id=self.session_id)

    def with_properties(self, changes: Mapping[str, object], /) -> Self:
        return replace(self, properties={**self.properties, **changes})


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now

    def advance(self, milliseconds: int) -> None:
        self.now += milliseconds


class World:
    def __init__(self) -> None:
        self.clock = Clock()
        self.records: list[Record] = []
        self._numbers = itertools.count(1)
        self.broker = self.another(self.records.append)

    def another(self, record: Callable[[Record], None] | None = None) -> Broker:
        """A broker that shares the time, and has nothing."""
        return Broker(self.clock, self.token, record)

    def token(self) -> bytes:
        return next(self._numbers).to_bytes(16, "big")

    def queue(self, name: str = "q", **settings: object) -> Source:
        self.broker.create_queue(name, QueueSettings(**settings))  # type: ignore[arg-type]
        return self.broker.source(name)

    def topic(self, name: str = "t", **settings: object) -> None:
        self.broker.create_topic(name, TopicSettings(**settings))  # type: ignore[arg-type]

    def subscription(self, name: str, *rules: Rule, topic: str = "t", **settings: object) -> Source:
        chosen = SubscriptionSettings(**settings)  # type: ignore[arg-type]
        self.broker.create_subscription(topic, name, chosen, rules or None)
        return self.broker.source(f"{topic}/Subscriptions/{name}")

    def send(self, *messages: Note, to: str = "q") -> None:
        self.broker.send(to, messages)

    def dead(self, source: Source) -> Source:
        return self.broker.source(f"{source.path}/$DeadLetterQueue")

    def pass_time(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.broker.tick()


def notes(count: int, first: int = 1) -> list[Note]:
    return [Note(f"m{number}") for number in range(first, first + count)]


def of_service(service: str) -> Rule:
    return Rule("service", CorrelationFilter({"service": service}))


def ids(messages: Iterable[Delivery | Peeked]) -> list[str | None]:
    return [one.message.message_id for one in messages]


def take_one(source: Source) -> Delivery:
    (delivery,) = source.take(1)
    return delivery


def reason(message: Delivery | Peeked) -> object:
    return message.message.facts.properties.get("DeadLetterReason")
