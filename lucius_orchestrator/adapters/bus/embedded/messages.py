"""Messages of the port as messages of the emulator, and back."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from lucius_bus.port import BusMessage, Delivery
from servicebus_emulator.broker import Delivery as Handed
from servicebus_emulator.broker import Source
from servicebus_emulator.messages import Message

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_LONGEST_TTL = 2**32 - 2  # milliseconds


class Lock(NamedTuple):
    """The token of a delivery."""

    source: Source
    token: bytes


class Place(NamedTuple):
    """Where a delivery came from, in the words of the port."""

    topic: str
    subscription: str
    source: Source


def moment(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


def outgoing(message: BusMessage, now: int) -> Message:
    """`ValueError` or `AmqpError` where it cannot be encoded. One that has expired is sent all the
    same: what becomes of it is the subscription's affair."""
    message_id, body, properties, partition_key, session_id, expires_at = message
    ttl = None
    if expires_at is not None:
        left = (expires_at - _EPOCH) // _MILLISECOND - now
        ttl = min(max(left, 0), _LONGEST_TTL)
    return Message.build(
        body,
        message_id=message_id,
        session_id=session_id,
        partition_key=partition_key,
        ttl=ttl,
        properties=properties,
    )


def delivery_of(handed: Handed, place: Place) -> Delivery:
    """The broker counts the deliveries that failed; the port counts this one too."""
    message = handed.message
    assert isinstance(message, Message)
    assert handed.locked_until is not None
    received = BusMessage(
        message.message_id or "",
        message.body,
        _properties(message.facts.properties),
        message.partition_key,
        message.session_id,
        None if message.ttl is None else moment(handed.enqueued_at + message.ttl),
    )
    return Delivery(
        received,
        place.topic,
        place.subscription,
        handed.delivery_count + 1,
        moment(handed.locked_until),
        Lock(place.source, handed.token),
    )


def _properties(found: Mapping[str, object]) -> dict[str, str | int]:
    """What is neither text nor number was not sent by this port, and is shown as text."""
    return {
        name: value if isinstance(value, str | int) else str(value) for name, value in found.items()
    }
