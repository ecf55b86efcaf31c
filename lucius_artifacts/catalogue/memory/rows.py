"""The rows, and how to take back what a transaction did to them."""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lucius_artifacts.errors import Unavailable
from lucius_artifacts.model import AuditRecord, Blob, Claim, Doomed, Hold, Run, Upload, Version
from lucius_outbox.message import Message

Key = TypeVar("Key", bound=Hashable)
Row = TypeVar("Row")
_ABSENT: Any = object()


@dataclass(slots=True)
class Rows:
    """What the catalogues of several processes would share. `turn` is whose transaction it is."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    uploads: dict[str, Upload] = field(default_factory=dict)
    blobs: dict[str, Blob] = field(default_factory=dict)
    object_keys: dict[str, str] = field(default_factory=dict)
    """By digest, of blobs that are not DELETED."""
    claims: dict[tuple[str, str], Claim] = field(default_factory=dict)
    versions: dict[tuple[str, str, int], Version] = field(default_factory=dict)
    holds: dict[tuple[str, str], Hold] = field(default_factory=dict)
    doomed: dict[str, Doomed] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    audit: dict[int, AuditRecord] = field(default_factory=dict)
    messages: dict[Hashable, Message] = field(default_factory=dict)


class Journal:
    """Writes in place, and remembers what was there before: a transaction costs what it writes,
    however many rows there are."""

    def __init__(self) -> None:
        self._failure: Unavailable | None = None
        self._before: list[tuple[dict[Any, Any], Hashable, Any]] = []

    def put(self, table: dict[Key, Row], key: Key, row: Row) -> None:
        self._before.append((table, key, table.get(key, _ABSENT)))
        table[key] = row

    def drop(self, table: dict[Key, Row], key: Key) -> None:
        self._before.append((table, key, table.pop(key, _ABSENT)))

    def failed(self, problem: str) -> Unavailable:
        """To be raised, and again at the end if the caller goes on as if nothing were."""
        self._failure = Unavailable(problem)
        return self._failure

    def require_sound(self) -> None:
        if self._failure is not None:
            raise self._failure

    def undo(self) -> None:
        for table, key, row in reversed(self._before):
            if row is _ABSENT:
                table.pop(key, None)
            else:
                table[key] = row
