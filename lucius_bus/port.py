"""The bus: topics with subscriptions, in the terms of Azure Service Bus.

A message published to a topic is copied to every subscription whose filter matches its properties;
where none matches it is gone. A receiver holds a message under a lock (peek-lock). It is settled
once: completed (gone), abandoned (available again), or dead-lettered (moved to the subscription's
dead-letter queue). A lock that runs out makes the message available again; each delivery counts,
and one that was delivered as often as the subscription allows is dead-lettered by the bus. Nothing
is promised about order, and a message may come more than once: correctness never needs either.

    BusError
    ├── BusUnavailable     unreachable or throttling: try again later; it may have been published
    ├── PublishRefused     no later try can succeed: too large, no such topic, not allowed
    ├── LockLost           the message is not held any more: leave it, it comes again
    └── Misused            the topology does not allow it: mend the call or the topology
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

Properties = Mapping[str, str | int]
_NO_PROPERTIES: Properties = {}  # shared: properties are only read


class BusError(Exception):
    """Base of all errors of a bus."""


class BusUnavailable(BusError):
    """The bus cannot be reached, or asks to slow down."""


class PublishRefused(BusError):
    """The bus will never take the message."""


class Misused(BusError):
    """No such subscription, or not one that is used in this way."""


class LockLost(BusError):
    """The lock ran out, or the message was settled before."""


class BusMessage(NamedTuple):
    """What is published. `expires_at`: after this nobody needs it any more."""

    message_id: str
    body: bytes
    properties: Properties = _NO_PROPERTIES
    partition_key: str | None = None
    session_id: str | None = None
    expires_at: datetime | None = None


class Delivery(NamedTuple):
    """A message that a receiver holds. `token` is how the bus knows the lock again."""

    message: BusMessage
    topic: str
    subscription: str
    delivery_count: int
    locked_until: datetime
    token: object


class Unpublished(NamedTuple):
    """A message of a batch that was not published."""

    message: BusMessage
    error: BusError


class Bus(Protocol):
    async def publish(self, topic: str, messages: Sequence[BusMessage]) -> list[Unpublished]:
        """Publish a batch, in order; the answer names those that did not go out, each with
        `PublishRefused` or `BusUnavailable`. Messages that do not fit into one transfer are split
        into several, so part of a batch may go out."""

    async def receive(
        self, topic: str, subscription: str, limit: int, wait: timedelta
    ) -> list[Delivery]:
        """Up to `limit` messages, each locked for the receiver; as soon as there is one, or empty
        after `wait`. `BusUnavailable`, `Misused`."""

    async def complete(self, delivery: Delivery) -> None:
        """It is done with. `LockLost`."""

    async def abandon(self, delivery: Delivery) -> None:
        """Make it available again at once. `LockLost`."""

    async def dead_letter(self, delivery: Delivery, reason: str, description: str) -> None:
        """It can never be handled: keep it aside, with why. `LockLost`."""

    async def renew(self, delivery: Delivery) -> Delivery:
        """Hold it for another lock duration. `LockLost`."""

    async def check(self) -> None:
        """Whether the bus can be reached. `BusUnavailable`."""

    async def close(self) -> None:
        """Give back what is held; closing twice is nothing."""
