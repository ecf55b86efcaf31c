"""Where messages are received: a queue, a subscription, or the dead letters beside one."""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from servicebus_emulator.broker.deliveries import (
    STATE_DEFERRED,
    STATE_SCHEDULED,
    Abandon,
    Complete,
    Counts,
    DeadLetter,
    Defer,
    Delivery,
    Outcome,
    Peeked,
)
from servicebus_emulator.broker.entries import DEFERRED, LOCKED, Entry, Line
from servicebus_emulator.broker.errors import (
    EntityDisabled,
    LockLost,
    MessageNotFound,
    NotAllowed,
)
from servicebus_emulator.broker.observing import Happening
from servicebus_emulator.broker.peeking import entries_from, peeked
from servicebus_emulator.broker.sessions import SessionLock, Sessions
from servicebus_emulator.broker.settings import ReadableSettings
from servicebus_emulator.broker.store import Store
from servicebus_emulator.broker.waiting import Call
from servicebus_emulator.broker.wiring import Wiring

if TYPE_CHECKING:
    from servicebus_emulator.broker.dead_letters import DeadLetters


class Source(Store):
    """Every verb is `EntityNotFound` when the entity was deleted; `is_deleted` tells before, and
    who asked with `await_deletion` is called."""

    def __init__(
        self,
        path: str,
        settings: ReadableSettings,
        wiring: Wiring,
        max_message_bytes: int,
        dead: "DeadLetters | None",
    ) -> None:
        super().__init__(path, settings, wiring, max_message_bytes, dead)
        self._mourners: dict[Call, None] = {}

    def take(
        self, limit: int, *, keep: bool = True, session: SessionLock | None = None
    ) -> list[Delivery]:
        """Up to `limit` messages, the first first: locked, or gone for good without `keep`. Where
        sessions are required one must be given. `NotAllowed`, `SessionLockLost`,
        `EntityDisabled`."""
        now = self.now()
        line = self._line_of(session)
        self._check_enabled()
        self.accessed_at = now
        if not keep:
            return self._hand_over(line, limit)
        until = now + self.settings.lock_duration if session is None else session.locked_until
        return self._deliver(line, limit, until)

    def settle(self, token: bytes, outcome: Outcome) -> None:
        """`LockLost` unless the lock is held; `NotAllowed` to dead-letter a dead letter, which
        stays locked."""
        now = self.now()
        entry = self._locked.get(token)
        if entry is None:
            raise LockLost("the message is not held any more: its lock ran out, or it was settled")
        if type(outcome) is Complete:
            self._unlock(entry)
            self.remove(entry)
            self._seen(Happening.COMPLETED, entry)
        elif isinstance(outcome, Abandon):
            self.fail(entry, now, outcome.properties)
            self._seen(Happening.ABANDONED, entry)
        elif isinstance(outcome, Defer):
            self.defer(entry, outcome.properties)
            self._seen(Happening.DEFERRED, entry)
        elif isinstance(outcome, DeadLetter):
            self._dead_letter(entry, outcome, now)
        self._wiring.bell.ring()

    def release(self, token: bytes) -> None:
        """Make it available again as if it had not been delivered. Nothing when it is not held."""
        if self.is_deleted:
            return
        now = self.now()
        entry = self._locked.get(token)
        if entry is not None:
            self.give_back(entry, now)
            self._wiring.bell.ring()

    def renew(self, token: bytes) -> int:
        """Hold it for another lock duration; until when. `LockLost`; `NotAllowed` for a message
        of a session."""
        now = self.now()
        entry = self._locked.get(token)
        if entry is None:
            raise LockLost("the message is not held any more: its lock ran out, or it was settled")
        if entry.line is not self.line:
            raise NotAllowed("a message of a session is held as long as the session: renew that")
        self._lock(entry, now + self.settings.lock_duration)
        self._seen(Happening.RENEWED, entry)
        return entry.locked_until

    def hold(self, duration: int) -> list[bytes]:
        """Keep whatever is held now, outside sessions, held for this long, in milliseconds; the
        tokens. For tests of receivers that are too late for their own locks."""
        until = self.now() + duration
        tokens = [token for token, entry in self._locked.items() if entry.line is self.line]
        for token in tokens:
            self._lock(self._locked[token], until)
        return tokens

    def peek(
        self, from_sequence_number: int, limit: int, session_id: str | None = None
    ) -> list[Peeked]:
        """What lies here from that number on, in the order of the numbers: what is locked,
        deferred or scheduled too."""
        self.accessed_at = self.now()
        entries = self.entries if session_id is None else self._entries_of(session_id)
        found = entries_from(entries, from_sequence_number, self.last_number)
        return [peeked(entry) for entry in islice(found, max(limit, 0))]

    def take_deferred(
        self,
        sequence_numbers: Sequence[int],
        *,
        keep: bool = True,
        session: SessionLock | None = None,
    ) -> list[Delivery]:
        """All of them or none. `MessageNotFound` also for one that expired meanwhile: it goes the
        way of what expires."""
        now = self.now()
        line = self._line_of(session)
        self._check_enabled()
        self.accessed_at = now
        entries = [self._deferred(number, line) for number in dict.fromkeys(sequence_numbers)]
        expired = [entry for entry in entries if entry.expires_at <= now]
        for entry in expired:
            self.expire(entry, now)
        if expired:
            self._wiring.bell.ring()
            raise MessageNotFound(f"{[entry.number for entry in expired]} expired in {self.path}")
        if not keep:
            return [self._give_away(entry) for entry in entries]
        until = now + self.settings.lock_duration if session is None else session.locked_until
        return [self._hold(entry, until) for entry in entries]

    def await_message(self, waiter: Call, session: SessionLock | None = None) -> None:
        """Be called, once, when a message can be taken, in the order of asking. Take first: what
        is there already calls nobody. When the session is lost nobody is called."""
        self.now()
        self._line_of(session).waiters.add(waiter)

    def await_session(self, waiter: Call) -> None:
        """As `await_message`, for a session that can be accepted."""
        self.now()
        self._sessions().acceptors.add(waiter)

    def await_deletion(self, waiter: Call) -> None:
        """Be called when the entity was deleted."""
        self.now()
        self._mourners[waiter] = None

    def forget(self, waiter: Call) -> None:
        """It is not called any more, whatever it waited for."""
        self._mourners.pop(waiter, None)
        self.line.waiters.discard(waiter)
        if self.by_session is not None:
            self.by_session.forget(waiter)

    def accept_session(self, session_id: str | None) -> SessionLock | None:
        """Hold the session, with messages or not; without an id, one that has messages that can
        be taken, or None. `SessionUnavailable`, `NotAllowed`, `EntityDisabled`."""
        now = self.now()
        sessions = self._sessions()
        self._check_enabled()
        self.accessed_at = now
        return sessions.accept(session_id, now)

    def sessions(self, updated_after: int, skip: int, top: int) -> list[str]:
        """Ids, sorted: of those whose state was set after that time, or, with the end of the year
        9999, of those that have messages."""
        self.now()
        return self._sessions().names(updated_after, skip, top)

    def counts(self) -> Counts:
        aside = self.aside
        deferred, scheduled = aside[STATE_DEFERRED], aside[STATE_SCHEDULED]
        active = len(self.entries) - deferred - scheduled
        dead = 0 if self.dead is None else len(self.dead.entries)
        return Counts(active, dead, scheduled, deferred, 0, self.used_bytes())

    def used_bytes(self) -> int:
        """With those of its dead letters."""
        return self.size_bytes if self.dead is None else self.size_bytes + self.dead.size_bytes

    def delete(self) -> None:
        super().delete()
        for waiter in self._mourners:
            self._wiring.bell.add(waiter)
        self._mourners.clear()
        if self.dead is not None:
            self.dead.delete()

    def wake(self) -> None:
        """The settings changed: those who wait may be able to take."""
        self.line.waiters.ring()
        if self.by_session is not None:
            self.by_session.wake()

    def _deliver(self, line: Line, limit: int, until: int) -> list[Delivery]:
        """Inlines `_hold`: this is the hottest loop of receivers."""
        locked, tokens, pop = self._locked, self._wiring.tokens, line.pop
        held = None if line is self.line else line.held
        add, observed = self._locks.add, self._wiring.observe is not None
        deliveries: list[Delivery] = []
        for _ in range(limit):
            entry = pop()
            if entry is None:
                break
            entry.place = LOCKED
            entry.token = token = tokens()
            entry.locked_until = until
            locked[token] = entry
            if held is None:
                add(until, entry.number, entry)
            else:
                held[token] = entry
            if observed:
                self._seen(Happening.DELIVERED, entry)
            deliveries.append(
                Delivery(
                    entry.message,
                    token,
                    entry.number,
                    entry.enqueued_at,
                    entry.count,
                    until,
                    entry.dead_letter_source,
                    entry.state,
                )
            )
        if deliveries:
            line.waiters.taken += 1
            if until < self.announced:
                self.announce(until)
        return deliveries

    def _hand_over(self, line: Line, limit: int) -> list[Delivery]:
        deliveries: list[Delivery] = []
        while len(deliveries) < limit and (entry := line.pop()) is not None:
            entry.place = LOCKED  # it is out of the line
            deliveries.append(self._give_away(entry))
        line.waiters.taken += len(deliveries)
        return deliveries

    def _give_away(self, entry: Entry) -> Delivery:
        self.remove(entry)
        self._seen(Happening.DELIVERED, entry)
        return _delivery(entry, self._wiring.tokens(), None)

    def _hold(self, entry: Entry, until: int) -> Delivery:
        token = self._wiring.tokens()
        entry.place, entry.token = LOCKED, token
        self._locked[token] = entry
        if entry.line is self.line:
            self._lock(entry, until)
        else:
            entry.line.held[token] = entry
        self._seen(Happening.DELIVERED, entry)
        return _delivery(entry, token, until)

    def _lock(self, entry: Entry, until: int) -> None:
        entry.locked_until = until
        self._locks.add(until, entry.number, entry)
        self.announce(until)

    def _dead_letter(self, entry: Entry, outcome: DeadLetter, now: int) -> None:
        if self.dead is None:
            raise NotAllowed(f"the message in {self.path} is a dead letter already")
        self._unlock(entry)
        self.bury(entry, now, outcome.reason, outcome.description, outcome.properties)

    def _line_of(self, session: SessionLock | None) -> Line:
        """Where a receiver takes from, if it may."""
        if session is not None:
            return self._sessions().line_of(session)
        if self.requires_session:
            raise NotAllowed(f"{self.path} is received by session: accept one")
        return self.line

    def _check_enabled(self) -> None:
        if not self.can_take():
            raise EntityDisabled(f"{self.path} is {self.settings.status}")

    def _sessions(self) -> Sessions:
        if self.by_session is None:
            raise NotAllowed(f"{self.path} has no sessions")
        return self.by_session

    def _entries_of(self, session_id: str) -> dict[int, Entry]:
        session = None if self.by_session is None else self.by_session.find(session_id)
        return {} if session is None else session.entries

    def _deferred(self, number: int, line: Line) -> Entry:
        entry = self.entries.get(number)
        if entry is None or entry.place != DEFERRED or entry.line is not line:
            raise MessageNotFound(f"no deferred message in {self.path} has the number {number}")
        return entry


def _delivery(entry: Entry, token: bytes, until: int | None) -> Delivery:
    return Delivery(
        entry.message,
        token,
        entry.number,
        entry.enqueued_at,
        entry.count,
        until,
        entry.dead_letter_source,
        entry.state,
    )
