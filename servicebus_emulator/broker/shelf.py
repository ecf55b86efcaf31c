"""Numbered messages under one path, and those among them that wait for their time."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from servicebus_emulator.broker.content import Content
from servicebus_emulator.broker.deadlines import NEVER, Deadlines
from servicebus_emulator.broker.deliveries import (
    STATE_ACTIVE,
    STATE_DEFERRED,
    STATE_SCHEDULED,
)
from servicebus_emulator.broker.entries import DEFERRED, GONE, READY, SCHEDULED, Entry, Line
from servicebus_emulator.broker.errors import MessageNotFound
from servicebus_emulator.broker.records import (
    Changed,
    Enqueued,
    MessageRecord,
    NumbersUsed,
    Removed,
)
from servicebus_emulator.broker.wiring import Wiring

_PLACES = {STATE_ACTIVE: READY, STATE_DEFERRED: DEFERRED, STATE_SCHEDULED: SCHEDULED}


class Shelf(ABC):
    """`entries` are in the order of their numbers: numbers rise, and none is used twice."""

    def __init__(self, path: str, wiring: Wiring) -> None:
        self.path = path
        self.entries: dict[int, Entry] = {}
        self.last_number = 0
        self.size_bytes = 0
        self.aside = [0, 0, 0]  # by state: how many are deferred, how many scheduled
        self.line = Line(wiring.bell, self.can_take)
        self.announced = NEVER
        self.serial = wiring.serial()
        self._wiring = wiring
        self._scheduled: Deadlines[Entry] = Deadlines(_is_scheduled)

    @abstractmethod
    def arrive(
        self, message: Content, moment: int, hops: int = 0, origin: str | None = None
    ) -> None:
        """Take in a message that is active from now on. `origin`: where it was a dead letter."""

    def can_take(self) -> bool:
        return False

    def reserve(self) -> int:
        """Use up a number for a message that does not come to lie here."""
        self.last_number += 1
        if self._wiring.record is not None:
            self._wiring.record(NumbersUsed(self.path, self.last_number))
        return self.last_number

    def schedule(self, message: Content, when: int, now: int) -> int:
        """Keep it until then, when it arrives as a message of that time."""
        self.last_number += 1
        entry = Entry(message, self.last_number, now, NEVER, self.line, 0)
        entry.state, entry.place = STATE_SCHEDULED, SCHEDULED
        self.entries[entry.number] = entry
        self._settle_in(entry)
        self.announce(when)
        if self._wiring.record is not None:
            self._wiring.record(self._enqueued(entry))
        return entry.number

    def cancel(self, numbers: Sequence[int]) -> None:
        """All of them or none. `MessageNotFound`."""
        wanted = {number: self.entries.get(number) for number in numbers}
        found = [one for one in wanted.values() if one is not None and one.place == SCHEDULED]
        if len(found) < len(wanted):
            missing = sorted(wanted.keys() - {entry.number for entry in found})
            raise MessageNotFound(f"nothing is scheduled in {self.path} under {missing}")
        for entry in found:
            self.remove(entry)

    def remove(self, entry: Entry) -> None:
        was_ready = entry.place == READY
        entry.place = GONE
        del self.entries[entry.number]
        self.size_bytes -= entry.message.size
        if entry.state:
            self.aside[entry.state] -= 1
        if was_ready:
            entry.line.lose()
        if self._wiring.record is not None:
            self._wiring.record(Removed(self.path, entry.number))
        if entry.line is not self.line:
            self._left(entry)

    def announce(self, when: int) -> None:
        if when < self.announced:
            self._wiring.agenda.announce(self, when)

    def advance(self, moment: int) -> None:
        while (entry := self._scheduled.pop(moment)) is not None:
            self.remove(entry)
            self.arrive(entry.message, moment)

    def next_due(self) -> int:
        return self._scheduled.first()

    def delete(self) -> None:
        self.entries.clear()
        self._scheduled.clear()

    def apply(self, record: MessageRecord) -> None:
        """Repeat a change. Afterwards `settle_in` finds everything its place."""
        match record:
            case Enqueued():
                self._apply_enqueued(record)
            case Removed():
                self.entries.pop(record.sequence_number, None)
            case Changed():
                self._apply_changed(record)
            case NumbersUsed():
                self.last_number = max(self.last_number, record.last)

    def settle_in(self) -> None:
        for entry in self.entries.values():
            entry.place = _PLACES[entry.state]
            self._settle_in(entry)
        self.announce(self.next_due())

    def records(self) -> Iterator[MessageRecord]:
        """What gives the same shelf."""
        if self.last_number:
            yield NumbersUsed(self.path, self.last_number)
        for entry in self.entries.values():
            yield self._enqueued(entry)

    def _settle_in(self, entry: Entry) -> None:
        self.size_bytes += entry.message.size
        if entry.state:
            self.aside[entry.state] += 1
        if entry.place == SCHEDULED:
            self._scheduled.add(scheduled_at(entry.message), entry.number, entry)

    def _left(self, entry: Entry) -> None:  # noqa: B027 - most shelves have nothing to do
        """An entry that was in another line than the shelf's own is gone."""

    def _apply_enqueued(self, record: Enqueued) -> None:
        expires_at = NEVER if record.expires_at is None else record.expires_at
        number = record.sequence_number
        entry = Entry(record.message, number, record.enqueued_at, expires_at, self.line, 0)
        entry.count = record.delivery_count
        entry.state = record.state
        entry.dead_letter_source = record.dead_letter_source
        self.entries[number] = entry
        self.last_number = max(self.last_number, number)

    def _apply_changed(self, record: Changed) -> None:
        entry = self.entries[record.sequence_number]
        entry.state = record.state
        entry.count = record.delivery_count
        if record.message is not None:
            entry.message = record.message

    def _enqueued(self, entry: Entry) -> Enqueued:
        return Enqueued(
            self.path,
            entry.number,
            entry.message,
            entry.enqueued_at,
            None if entry.expires_at == NEVER else entry.expires_at,
            entry.count,
            entry.state,
            entry.message.scheduled_at if entry.state == STATE_SCHEDULED else None,
            entry.dead_letter_source,
        )


def scheduled_at(message: Content) -> int:
    return message.scheduled_at or 0


def _is_scheduled(entry: Entry, when: int) -> bool:  # noqa: ARG001 - its time never changes
    return entry.place == SCHEDULED
