"""Messages seen where they lie."""

from collections.abc import Iterator, Mapping

from servicebus_emulator.broker.deliveries import Peeked
from servicebus_emulator.broker.entries import LOCKED, Entry
from servicebus_emulator.broker.sessions import Session


def entries_from(entries: Mapping[int, Entry], first: int, last: int) -> Iterator[Entry]:
    """Those with this number or a later one: by asking for each number where they are dense, so
    that pages of a long shelf do not each begin at its start."""
    if last - first < len(entries):
        numbers = range(max(first, 0), last + 1)
        return (entry for number in numbers if (entry := entries.get(number)) is not None)
    return (entry for entry in entries.values() if entry.number >= first)


def peeked(entry: Entry) -> Peeked:
    return Peeked(
        entry.message,
        entry.number,
        entry.enqueued_at,
        entry.count,
        _locked_until(entry),
        entry.dead_letter_source,
        entry.state,
    )


def _locked_until(entry: Entry) -> int | None:
    if entry.place != LOCKED:
        return None
    if isinstance(entry.line, Session):
        return None if entry.line.lock is None else entry.line.lock.locked_until
    return entry.locked_until
