"""Messages of the port as messages of the client, and back."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from azure.servicebus import ServiceBusMessage, ServiceBusReceivedMessage
from azure.servicebus.amqp import AmqpMessageBodyType

from lucius_bus.port import BusMessage, Delivery, Properties

_LONGEST_TTL = 2**32 - 2  # milliseconds; the largest number of all means that there is no limit
_MILLISECOND = timedelta(milliseconds=1)


def outgoing(message: BusMessage, now: datetime) -> ServiceBusMessage:
    """`ValueError` where the client knows that the bus would refuse it."""
    made = ServiceBusMessage(
        message.body,
        application_properties=_sent(message.properties),
        message_id=message.message_id,
        session_id=message.session_id,
        partition_key=message.partition_key,
    )
    header = made.raw_amqp_message.header
    if message.expires_at is not None and header is not None:
        # The client's own setter rounds down to seconds.
        header.time_to_live = _ttl(message.expires_at - now)
    return made


def delivery_of(message: ServiceBusReceivedMessage, topic: str, subscription: str) -> Delivery:
    """The client counts the deliveries that failed; the port counts this one too."""
    locked_until = message.locked_until_utc
    if locked_until is None:
        raise ValueError(f"message {message.message_id} came without a lock")
    failures = message.delivery_count or 0
    received = incoming(message)
    return Delivery(received, topic, subscription, failures + 1, locked_until, message)


def incoming(message: ServiceBusReceivedMessage) -> BusMessage:
    return BusMessage(
        str(message.message_id or ""),
        _body(message),
        _properties(message.application_properties or {}),
        message.partition_key,
        message.session_id,
        message.expires_at_utc,
    )


def _sent(properties: Properties) -> dict[str | bytes, Any] | None:
    """The client takes every int for one of 32 bits unless it is told."""
    return {name: _typed(value) for name, value in properties.items()} or None


def _typed(value: str | int) -> object:
    if isinstance(value, int) and not -(2**31) <= value < 2**31:
        return {"TYPE": "LONG", "VALUE": value}
    return value


def _ttl(left: timedelta) -> int:
    """A message that has expired is still sent, for what a subscription does with such messages
    is its own affair; no time at all would mean that it never expires."""
    return min(max(left // _MILLISECOND, 1), _LONGEST_TTL)


def _body(message: ServiceBusReceivedMessage) -> bytes:
    body = message.body
    if message.body_type is AmqpMessageBodyType.DATA:
        return body if isinstance(body, bytes) else b"".join(body)
    return body if isinstance(body, bytes) else str(body).encode()


def _properties(found: Mapping[str | bytes, object]) -> dict[str, str | int]:
    """The client leaves names and texts as bytes. What is neither text nor number was not sent by
    this port, and is shown as text."""
    return {
        _text(name): value if isinstance(value, int) else _text(value)
        for name, value in found.items()
    }


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
