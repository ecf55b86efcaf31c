"""What is enqueued, and what a holder gets to publish."""

import json
import os
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from lucius_outbox.errors import InvalidMessage

JsonValue = Mapping[str, "JsonValue"] | Sequence["JsonValue"] | str | int | float | bool | None

# In bytes of UTF-8; PostgreSQL refuses index entries of more than 2704.
MAX_LENGTH = {
    "namespace": 128,
    "topic": 256,
    "tenant_id": 256,
    "dedupe_key": 1024,
    "ordering_key": 512,
    "queue": 1024,
}
_NUL = "\\u0000"
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class JsonText(str):
    """A payload that its producer has written as JSON already; it is not looked into."""

    __slots__ = ()


class Message(NamedTuple):
    """Something to be published after the transaction that enqueues it has committed.

    `dedupe_key` makes repeated enqueues of one event one row, per namespace and topic; with a
    `tenant_id` it begins with `tenant_id/`. Messages with the same `ordering_key` (per namespace
    and topic) are published one after the other. `not_before` delays the first attempt. Messages
    with the same `queue` (per namespace) can be claimed apart from those of other queues; a message
    with a queue has no ordering key.
    """

    namespace: str
    topic: str
    payload: JsonValue
    tenant_id: str | None = None
    dedupe_key: str | None = None
    ordering_key: str | None = None
    not_before: datetime | None = None
    queue: str | None = None


class Outcome(StrEnum):
    ENQUEUED = "enqueued"
    ALREADY_ENQUEUED = "already enqueued"


class Receipt(NamedTuple):
    """What became of one message; `id` is its row's, or None when another row was there before."""

    outcome: Outcome
    id: str | None


class Claimed(NamedTuple):
    """A row that a worker holds until `locked_until`. `claim_no` numbers the claims of a worker:
    it tells this claim of the row from an earlier one by the same worker."""

    id: str
    namespace: str
    topic: str
    tenant_id: str | None
    dedupe_key: str | None
    ordering_key: str | None
    payload: Any
    attempts: int
    reclaims: int
    claim_no: int
    reclaimed: bool
    locked_until: datetime
    created_at: datetime


class Failure(NamedTuple):
    """A claimed message that could not be published; `permanent`: no later try can succeed."""

    claimed: Claimed
    error: str
    permanent: bool = False


class Dead(NamedTuple):
    """A message that will not be tried again by itself."""

    id: str
    namespace: str
    topic: str
    tenant_id: str | None
    dedupe_key: str | None
    ordering_key: str | None
    payload: Any
    attempts: int
    reclaims: int
    last_error: str | None
    created_at: datetime


class NewRow(NamedTuple):
    """A checked message with its id, as a store writes it."""

    id: str
    namespace: str
    topic: str
    tenant_id: str | None
    dedupe_key: str | None
    ordering_key: str | None
    payload: str
    not_before: datetime | None
    queue: str | None


def new_rows(messages: Sequence[Message]) -> list[NewRow]:
    """Every message checked, before any of them is written."""
    bodies = [checked(message) for message in messages]
    return [
        NewRow(
            new_id, namespace, topic, tenant_id, dedupe_key, ordering_key, body, not_before, queue
        )
        for new_id, body, (
            namespace,
            topic,
            _,
            tenant_id,
            dedupe_key,
            ordering_key,
            not_before,
            queue,
        ) in zip(new_ids(len(messages)), bodies, messages, strict=True)
    ]


def receipts(rows: Sequence[NewRow], refused: Collection[str]) -> list[Receipt]:
    """`refused` are the ids that were not written, since their dedupe keys were there before."""
    return [
        Receipt(Outcome.ALREADY_ENQUEUED, None)
        if row.id in refused
        else Receipt(Outcome.ENQUEUED, row.id)
        for row in rows
    ]


def new_ids(count: int) -> list[str]:
    """UUIDs of version 7: new rows lie side by side in the primary key's index."""
    milliseconds = time.time_ns() // 1_000_000
    entropy = os.urandom(10 * count)
    head = f"{milliseconds:012x}"
    prefix = f"{head[:8]}-{head[8:]}-7"
    return [
        _with_dashes(prefix, entropy[start : start + 10].hex())
        for start in range(0, 10 * count, 10)
    ]


def _with_dashes(prefix: str, random: str) -> str:
    variant = "89ab"[int(random[3], 16) & 3]
    return f"{prefix}{random[:3]}-{variant}{random[4:7]}-{random[7:19]}"


def checked(message: Message) -> str:
    """The payload as JSON text; InvalidMessage if anything about the message is wrong."""
    namespace, topic, payload, tenant_id, dedupe_key, ordering_key, not_before, queue = message
    _check_text("namespace", namespace)
    _check_text("topic", topic)
    if tenant_id is not None:
        _check_text("tenant_id", tenant_id)
    if dedupe_key is not None:
        _check_text("dedupe_key", dedupe_key)
        if tenant_id is not None:
            _check_tenant(tenant_id, dedupe_key)
    if ordering_key is not None:
        _check_text("ordering_key", ordering_key)
    if not_before is not None and not_before.utcoffset() is None:
        raise InvalidMessage("not_before", "needs a time zone")
    if queue is not None:
        _check_text("queue", queue)
        if ordering_key is not None:
            raise InvalidMessage("queue", "is not for a message with an ordering key")
    return _json(payload)


def _check_text(field: str, value: str) -> None:
    limit = MAX_LENGTH[field]
    if isinstance(value, str) and value.isascii() and 0 < len(value) <= limit and "\0" not in value:
        return  # nearly every value, and cheap to recognise
    if not isinstance(value, str) or not value:
        raise InvalidMessage(field, f"must be text with at least one character, not {value!r}")
    if "\0" in value:
        raise InvalidMessage(field, "holds a NUL character, which PostgreSQL cannot store")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidMessage(field, "holds half of a surrogate pair") from error
    if size > limit:
        raise InvalidMessage(field, f"has {size} bytes; at most {limit} are allowed")


def _check_tenant(tenant_id: str, dedupe_key: str) -> None:
    if not dedupe_key.startswith(tenant_id + "/"):
        raise InvalidMessage(
            "dedupe_key", f"must begin with the tenant's id and a slash ({tenant_id}/...)"
        )


def _json(payload: JsonValue) -> str:
    if type(payload) is JsonText:
        return str(payload)
    try:
        text = _encoder.encode(payload)
        if not text.isascii():
            text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidMessage("payload", f"is not JSON: {error}") from error
    if _NUL in text and _holds_nul(json.loads(text)):
        raise InvalidMessage("payload", "holds a NUL character, which PostgreSQL cannot store")
    return text


def _holds_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, list):
        return any(map(_holds_nul, value))
    if isinstance(value, dict):
        return any("\0" in key or _holds_nul(member) for key, member in value.items())
    return False
