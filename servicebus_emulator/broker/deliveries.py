"""What receivers get, and what they answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from servicebus_emulator.broker.content import Content

STATE_ACTIVE = 0
STATE_DEFERRED = 1
STATE_SCHEDULED = 2


class Delivery(NamedTuple):
    """A message that a receiver holds, or has for good when `locked_until` is None.

    `delivery_count` is how often it was delivered before and given back: 0 the first time.
    """

    message: Content
    token: bytes
    sequence_number: int
    enqueued_at: int
    delivery_count: int
    locked_until: int | None
    dead_letter_source: str | None
    state: int


class Peeked(NamedTuple):
    """A message as it lies there. `locked_until` is None while nobody holds it."""

    message: Content
    sequence_number: int
    enqueued_at: int
    delivery_count: int
    locked_until: int | None
    dead_letter_source: str | None
    state: int


@dataclass(frozen=True, slots=True)
class Complete:
    """It is done with."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Make it available again; the delivery counts."""

    properties: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Defer:
    """Set it aside until somebody asks for its sequence number."""

    properties: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """It cannot be handled: move it to the dead letters, with why."""

    reason: str | None = None
    description: str | None = None
    properties: Mapping[str, object] = field(default_factory=dict)


Outcome = Complete | Abandon | Defer | DeadLetter


class Counts(NamedTuple):
    """As the administration shows them: what is locked counts as active, `dead` are the dead
    letters beside the entity, and the bytes are those of all of them."""

    active: int
    dead: int
    scheduled: int
    deferred: int
    transfer: int
    size_bytes: int
