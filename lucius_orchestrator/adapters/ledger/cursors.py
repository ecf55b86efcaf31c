"""Cursors of pages: opaque to clients, checked when they come back."""

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import Any

import pydantic_core

from lucius_orchestrator.ports.ledger import InvalidCursor


def encode_job(job_id: str) -> str:
    return _encode(["job", job_id])


def decode_job(cursor: str | None) -> str | None:
    """The id of the last job of the page before."""
    if cursor is None:
        return None
    (job_id,) = _decode("job", cursor, str)
    return str(job_id)


def encode_letter(first_at: datetime, letter_id: str) -> str:
    return _encode(["letter", first_at.isoformat(), letter_id])


def decode_letter(cursor: str | None) -> tuple[datetime, str] | None:
    """Time and id of the last dead letter of the page before."""
    if cursor is None:
        return None
    first_at, letter_id = _decode("letter", cursor, str, str)
    try:
        moment = datetime.fromisoformat(first_at)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC), letter_id
    except (ValueError, OverflowError) as error:
        raise InvalidCursor("not a cursor of this list") from error
    raise InvalidCursor("not a cursor of this list")


def _encode(parts: list[str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def _decode(kind: str, cursor: str, *types: type) -> list[Any]:
    try:
        # This parser ends at a depth of its own; that of the standard library at the stack's.
        parts = pydantic_core.from_json(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error) as error:
        raise InvalidCursor("not a cursor of this list") from error
    if not isinstance(parts, list) or len(parts) != 1 + len(types) or parts[0] != kind:
        raise InvalidCursor("not a cursor of this list")
    if not all(isinstance(part, kind) for part, kind in zip(parts[1:], types, strict=True)):
        raise InvalidCursor("not a cursor of this list")
    if any(isinstance(part, str) and not _is_text(part) for part in parts):
        raise InvalidCursor("not a cursor of this list")
    return parts[1:]


def _is_text(part: str) -> bool:
    """Half of a surrogate pair is none, and no database takes it; nor does PostgreSQL a NUL."""
    return "\0" not in part and not any("\ud800" <= character <= "\udfff" for character in part)
