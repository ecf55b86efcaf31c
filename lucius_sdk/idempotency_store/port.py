"""What a store must do: compare-and-set of one record for each step."""

from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from lucius_sdk.idempotency_store.errors import (
    Conflict,
    RecordUnreadable,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
)
from lucius_sdk.idempotency_store.records import Record, StepKey

__all__ = [
    "Conflict",
    "DedupStore",
    "RecordUnreadable",
    "StoreError",
    "StoreUnavailable",
    "StoreUnusable",
    "Stored",
    "microseconds",
    "next_version",
    "system_now",
]


class Stored(NamedTuple):
    """`version` is the store's name of this very write; it never returns for the same step."""

    record: Record
    version: str


class DedupStore(Protocol):
    """Used from one event loop. No error of a driver leaves it.

    A verb that returns has happened for good: a kill right after it loses nothing that the backend
    can keep. After `StoreUnavailable` from `write`, or a cancelled `write`, nobody knows whether it
    happened or still will.
    """

    async def read(self, key: StepKey) -> Stored | None:
        """What the last write left. `RecordUnreadable` if it is no record."""

    async def write(self, key: StepKey, record: Record, expected: str | None) -> str:
        """Store the record if the stored version is the expected one, None for no record at all;
        else `Conflict`. One atomic step, also between processes. Returns the new version."""

    async def lapsed_results(self, before: datetime, limit: int) -> list[StepKey]:
        """Steps with a result that is COMPLETED, whose `until` is before that moment; the oldest
        first. It is a hint: read the record and decide."""

    async def check(self) -> None:
        """Return if the store can be used now, else raise."""

    async def close(self) -> None:
        """Finish what was asked for. Afterwards every verb is `StoreUnavailable`; closing again is
        nothing."""


def next_version(expected: str | None, now: datetime) -> str:
    """When the record was created, and how often it was changed since. So a step whose record was
    purged and is written anew never has a version that it had before."""
    if expected is None:
        return f"{microseconds(now)}.0"
    created, changes = expected.split(".")
    return f"{created}.{int(changes) + 1}"


def microseconds(moment: datetime) -> int:
    """Since 1970: exact, and it sorts as the moments do."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def system_now() -> datetime:
    return datetime.now(UTC)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
