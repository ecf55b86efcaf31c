"""What happens to messages between being sent and being gone, for whoever watches."""

from enum import StrEnum
from typing import NamedTuple

from servicebus_emulator.broker.content import Content


class Happening(StrEnum):
    DELIVERED = "delivered"
    RENEWED = "renewed"
    COMPLETED = "completed"
    ABANDONED = "abandoned"
    DEFERRED = "deferred"
    DEAD_LETTERED = "dead-lettered"
    LOCK_LOST = "lock lost"
    """Nobody settled it in time: it can be delivered again."""
    EXPIRED = "expired"
    """Its time to live was over before somebody settled it."""


class Observation(NamedTuple):
    """`delivery_count` is how often it was delivered and given back, as of now; `reason` is why it
    became a dead letter."""

    what: Happening
    path: str
    sequence_number: int
    message: Content
    delivery_count: int
    reason: str | None = None
