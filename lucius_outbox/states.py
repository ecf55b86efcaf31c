"""The states of an outbox row, as data; the two other vocabularies are derived from them."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    PENDING = "pending"
    PROCESSING = "processing"
    DELIVERED = "delivered"
    DEAD = "dead"


LIVE = frozenset({Status.PENDING, Status.PROCESSING})
TERMINAL = frozenset({Status.DELIVERED, Status.DEAD})


class Trigger(StrEnum):
    CLAIM = "claim"
    ACK = "ack"
    NACK = "nack"
    RELEASE = "release"
    EXTEND = "extend"
    SWEEP = "sweep_dead"
    REPLAY = "replay"


class Transition(NamedTuple):
    source: Status
    trigger: Trigger
    target: Status
    condition: str


TRANSITIONS: tuple[Transition, ...] = (
    Transition(
        Status.PENDING,
        Trigger.CLAIM,
        Status.PROCESSING,
        "due, attempts left, and no earlier row of its ordering key is live; counts an attempt",
    ),
    Transition(
        Status.PROCESSING,
        Trigger.CLAIM,
        Status.PROCESSING,
        "the lease has expired and reclaims are left; counts a reclaim",
    ),
    Transition(Status.PROCESSING, Trigger.ACK, Status.DELIVERED, "by the holder"),
    Transition(
        Status.PROCESSING, Trigger.NACK, Status.PENDING, "by the holder, attempts left; due later"
    ),
    Transition(
        Status.PROCESSING,
        Trigger.NACK,
        Status.DEAD,
        "by the holder, no attempts left or a permanent failure",
    ),
    Transition(
        Status.PROCESSING,
        Trigger.RELEASE,
        Status.PENDING,
        "by the holder; the attempt is given back",
    ),
    Transition(Status.PROCESSING, Trigger.EXTEND, Status.PROCESSING, "by the holder"),
    Transition(Status.PENDING, Trigger.SWEEP, Status.DEAD, "no attempts left"),
    Transition(
        Status.PROCESSING, Trigger.SWEEP, Status.DEAD, "the lease has expired, no reclaims left"
    ),
    Transition(
        Status.DEAD,
        Trigger.REPLAY,
        Status.PENDING,
        "by hand, audited, unless the namespace forbids it; counters begin anew",
    ),
)


class LedgerName(StrEnum):
    """What the ledger calls the states."""

    PENDING = "PENDING"
    SENT = "SENT"
    FAILED_FINAL = "FAILED_FINAL"


class DeliveryName(StrEnum):
    """What the description of the critical state machines calls them."""

    PENDING = "pending"
    DELIVERING = "delivering"
    DELIVERED = "delivered"
    RETRY_WAIT = "retry_wait"
    DEAD_LETTER = "dead_letter"


LEDGER_NAME: dict[Status, LedgerName] = {
    Status.PENDING: LedgerName.PENDING,
    Status.PROCESSING: LedgerName.PENDING,
    Status.DELIVERED: LedgerName.SENT,
    Status.DEAD: LedgerName.FAILED_FINAL,
}

_DELIVERY_NAME: dict[Status, DeliveryName] = {
    Status.PENDING: DeliveryName.PENDING,
    Status.PROCESSING: DeliveryName.DELIVERING,
    Status.DELIVERED: DeliveryName.DELIVERED,
    Status.DEAD: DeliveryName.DEAD_LETTER,
}


def delivery_name(
    status: Status, attempts: int, next_attempt_at: datetime, now: datetime
) -> DeliveryName:
    """A pending row that has failed waits for its next attempt until that is due."""
    if status is Status.PENDING and attempts > 0 and now < next_attempt_at:
        return DeliveryName.RETRY_WAIT
    return _DELIVERY_NAME[status]
