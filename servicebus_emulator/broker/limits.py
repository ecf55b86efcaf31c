"""What names, settings and messages may be."""

import re
from collections.abc import Sequence

from servicebus_emulator.broker.content import Content
from servicebus_emulator.broker.errors import InvalidArgument, MessageTooLarge
from servicebus_emulator.broker.settings import (
    STATUSES,
    QueueSettings,
    Settings,
    SubscriptionSettings,
)

_LONGEST_ID = 128  # UTF-16 units
_LONGEST_NAME = 260
_LONGEST_PART = 50
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/~-]*[A-Za-z0-9._~-])?")
_PART = re.compile(r"[A-Za-z0-9$](?:[A-Za-z0-9._~-]*[A-Za-z0-9._~-])?")
_LONGEST_LOCK = 300_000
_LONGEST_WINDOW = 7 * 24 * 3_600_000
_MOST_DELIVERIES = 2000


def check_messages(messages: Sequence[Content], max_bytes: int) -> None:
    for message in messages:
        if message.size > max_bytes:
            raise MessageTooLarge(
                f"the message has {message.size} bytes, and {max_bytes} are the most"
            )
        session_id, partition_key = message.session_id, message.partition_key
        for text in (message.message_id, session_id, partition_key):
            if text is not None and len(text) * 2 > _LONGEST_ID:
                _check_length(text)
        if session_id is not None and partition_key is not None and partition_key != session_id:
            raise InvalidArgument("the partition key of a message with a session is its session id")


def check_name(name: str) -> None:
    """Of a queue or a topic."""
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise InvalidArgument(
            f"{name!r} is no name: letters, digits, '.', '-', '_', '~' and '/' inside, at most"
            f" {_LONGEST_NAME} characters"
        )


def check_part(name: str) -> None:
    """Of a subscription or a rule."""
    if len(name) > _LONGEST_PART or not _PART.fullmatch(name):
        raise InvalidArgument(
            f"{name!r} is no name: letters, digits, '.', '-', '_' and '~', at most"
            f" {_LONGEST_PART} characters"
        )


def check_settings(settings: Settings, path: str) -> None:
    _within("default_ttl", settings.default_ttl, None)
    _within("auto_delete_on_idle", settings.auto_delete_on_idle, None)
    if settings.status not in STATUSES:
        raise InvalidArgument(f"the status is one of {', '.join(STATUSES)}: {settings.status!r}")
    if not isinstance(settings, SubscriptionSettings):
        _within("duplicate_window", settings.duplicate_window, _LONGEST_WINDOW)
        _within("max_size_bytes", settings.max_size_bytes, None)
        _within("max_message_bytes", settings.max_message_bytes, None)
    if isinstance(settings, QueueSettings | SubscriptionSettings):
        _within("lock_duration", settings.lock_duration, _LONGEST_LOCK)
        _within("max_delivery_count", settings.max_delivery_count, _MOST_DELIVERIES)
        _check_forwarding(settings, path)


def _check_forwarding(settings: QueueSettings | SubscriptionSettings, path: str) -> None:
    targets = (settings.forward_to, settings.forward_dead_letters_to)
    if any(target is not None and target.lower() == path.lower() for target in targets):
        raise InvalidArgument(f"{path} cannot forward to itself")
    if settings.forward_to is not None and settings.requires_session:
        raise InvalidArgument(f"{path} requires sessions and so cannot forward")


def _within(name: str, value: int | None, most: int | None) -> None:
    if value is None:
        return
    if value < 1 or (most is not None and value > most):
        limit = "at least 1" if most is None else f"from 1 to {most}"
        raise InvalidArgument(f"{name} is {limit}: {value}")


def _check_length(text: str) -> None:
    if len(text.encode("utf-16-le", "surrogatepass")) > 2 * _LONGEST_ID:
        raise InvalidArgument(f"an id is longer than {_LONGEST_ID} characters: {text[:20]}...")
