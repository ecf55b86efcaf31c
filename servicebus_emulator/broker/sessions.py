"""Sessions: messages that share an id, taken in order by the one receiver that holds the lock."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from servicebus_emulator.broker.deadlines import NEVER, Deadlines
from servicebus_emulator.broker.entries import Entry, Line
from servicebus_emulator.broker.errors import (
    EntityNotFound,
    MessageTooLarge,
    SessionLockLost,
    SessionUnavailable,
)
from servicebus_emulator.broker.records import SessionStateSet
from servicebus_emulator.broker.settings import ReadableSettings
from servicebus_emulator.broker.waiting import Call, Waiters
from servicebus_emulator.broker.wiring import Wiring


class Keeper(Protocol):
    """The store whose messages these are."""

    path: str
    max_message_bytes: int
    settings: ReadableSettings

    def now(self) -> int:
        """The time. `EntityNotFound` when the store is no more."""

    def can_take(self) -> bool: ...

    def announce(self, when: int) -> None: ...

    def fail(self, entry: Entry, moment: int) -> None:
        """End its lock; the delivery counts."""

    def give_back(self, entry: Entry, moment: int) -> None:
        """End its lock, as if it had not been delivered."""


class Session(Line):
    """`entries` are all its messages, ready or not."""

    __slots__ = ("entries", "key", "lock", "session_id", "state", "updated_at")

    def __init__(self, session_id: str, wiring: Wiring, can_take: Callable[[], bool]) -> None:
        super().__init__(wiring.bell, can_take)
        self.session_id = session_id
        self.key = session_key(session_id)
        self.entries: dict[int, Entry] = {}
        self.state: bytes | None = None
        self.updated_at = 0
        self.lock: SessionLock | None = None


class Sessions:
    """The sessions of one store. One without messages, state and lock is forgotten."""

    def __init__(self, keeper: Keeper, wiring: Wiring) -> None:
        self._keeper = keeper
        self._wiring = wiring
        self._sessions: dict[str, Session] = {}
        self._available: OrderedDict[str, Session] = OrderedDict()
        self._locks: Deadlines[SessionLock] = Deadlines(_is_locked_until)
        self.acceptors = Waiters(
            wiring.bell, lambda: bool(self._available) and self._keeper.can_take()
        )

    def of(self, session_id: str) -> Session:
        key = session_key(session_id)
        session = self._sessions.get(key)
        if session is None:
            session = Session(session_id, self._wiring, self._keeper.can_take)
            self._sessions[key] = session
        return session

    def find(self, session_id: str) -> Session | None:
        return self._sessions.get(session_key(session_id))

    def all(self) -> list[Session]:
        return list(self._sessions.values())

    def accept(self, session_id: str | None, now: int) -> "SessionLock | None":
        """Without an id it is the one that has been available for longest."""
        if session_id is None:
            session = next(iter(self._available.values()), None)
            if session is None:
                return None
        else:
            session = self.of(session_id)
            if session.lock is not None:
                raise SessionUnavailable(f"session {session_id} is held by another receiver")
        lock = session.lock = SessionLock(self, session, session_id, self._wiring.serial())
        self._available.pop(session.key, None)
        self.acceptors.taken += 1
        self.extend(lock, now)
        return lock

    def rest(self, session: Session) -> None:
        """Have it among those that can be accepted, or not; called after its messages change."""
        if session.lock is not None:
            return
        if session.is_ready:
            self._available[session.key] = session
            self.acceptors.ring()
            return
        self._available.pop(session.key, None)
        if not session.entries and session.state is None:
            self._sessions.pop(session.key, None)

    def is_held(self, lock: "SessionLock") -> bool:
        self._wiring.agenda.now()
        return lock.session.lock is lock

    def check(self, lock: "SessionLock") -> int:
        """The time, if the lock is held."""
        now = self._keeper.now()
        self.line_of(lock)
        return now

    def line_of(self, lock: "SessionLock") -> Session:
        """Where the holder takes from. `SessionLockLost`, also for a lock from elsewhere."""
        session = lock.session
        if session.lock is not lock or self._sessions.get(session.key) is not session:
            raise SessionLockLost(f"session {lock.session_id} is not held any more")
        return session

    def extend(self, lock: "SessionLock", now: int) -> int:
        lock.locked_until = until = now + self._keeper.settings.lock_duration
        self._locks.add(until, lock.serial, lock)
        self._keeper.announce(until)
        return until

    def release(self, lock: "SessionLock", now: int) -> None:
        for entry in _in_order(lock.session):
            self._keeper.give_back(entry, now)
        self._free(lock.session)
        self._wiring.bell.ring()

    def expire(self, moment: int) -> None:
        while (lock := self._locks.pop(moment)) is not None:
            for entry in _in_order(lock.session):
                self._keeper.fail(entry, moment)
            self._free(lock.session)
            if lock.on_lost is not None:
                self._wiring.bell.add(lock.on_lost)

    def next_due(self) -> int:
        return self._locks.first()

    def set_state(self, session: Session, state: bytes | None, now: int) -> None:
        if state is not None and len(state) > self._keeper.max_message_bytes:
            raise MessageTooLarge(
                f"the state has {len(state)} bytes, and {self._keeper.max_message_bytes}"
                " are the most"
            )
        session.state, session.updated_at = state, now
        record = self._wiring.record
        if record is not None:
            record(SessionStateSet(self._keeper.path, session.session_id, state, now))

    def restore_state(self, session_id: str, state: bytes | None, updated_at: int) -> None:
        session = self.of(session_id)
        session.state, session.updated_at = state, updated_at
        self.rest(session)

    def names(self, updated_after: int, skip: int, top: int) -> list[str]:
        """Those whose state was set later than that; with the end of time, those with messages."""
        wanted = self._with_messages() if updated_after >= _END else self._set_after(updated_after)
        return sorted(wanted)[skip : skip + top]

    def forget(self, waiter: Call) -> None:
        self.acceptors.discard(waiter)
        for session in self._sessions.values():
            session.waiters.discard(waiter)

    def wake(self) -> None:
        self.acceptors.ring()
        for session in self._sessions.values():
            session.waiters.ring()

    def close(self) -> None:
        """The store is deleted."""
        for session in self._sessions.values():
            session.lock = None
            session.waiters.clear()
        self._sessions.clear()
        self._available.clear()
        self._locks.clear()
        self.acceptors.clear()

    def _with_messages(self) -> list[str]:
        return [one.session_id for one in self._sessions.values() if one.entries]

    def _set_after(self, moment: int) -> list[str]:
        stated = (one for one in self._sessions.values() if one.state is not None)
        return [one.session_id for one in stated if one.updated_at > moment]

    def _free(self, session: Session) -> None:
        session.lock = None
        session.waiters.clear()
        self.rest(session)


class SessionLock:
    """A session that one receiver holds until `locked_until`.

    It is the lock on each message taken from the session too. When it runs out these come again,
    and the delivery counts; `release` gives them back as if they had not been delivered. After
    either, every verb but `release` is `SessionLockLost`. `on_lost` is called when it runs out.
    """

    def __init__(
        self, sessions: Sessions, session: Session, session_id: str | None, serial: int
    ) -> None:
        self.session_id = session.session_id if session_id is None else session_id
        self.locked_until = NEVER
        self.on_lost: Callable[[], None] | None = None
        self.session = session
        self.serial = serial
        self._sessions = sessions

    @property
    def is_held(self) -> bool:
        return self._sessions.is_held(self)

    def renew(self) -> int:
        """Hold the session for another lock duration; until when."""
        return self._sessions.extend(self, self._sessions.check(self))

    def get_state(self) -> bytes | None:
        """What was kept with the session, by this receiver or an earlier one."""
        self._sessions.check(self)
        return self.session.state

    def set_state(self, state: bytes | None) -> None:
        """Keep it with the session, messages or not, until it is set to None."""
        self._sessions.set_state(self.session, state, self._sessions.check(self))

    def release(self) -> None:
        """Nothing when it is not held."""
        try:
            now = self._sessions.check(self)
        except (EntityNotFound, SessionLockLost):
            return
        self._sessions.release(self, now)


_END = 253_402_300_800_000  # the end of the year 9999: how clients ask for all sessions


def session_key(session_id: str) -> str:
    """Session ids that differ in letter case alone are one session."""
    return session_id.lower()


def _in_order(session: Session) -> list[Entry]:
    return sorted(session.held.values(), key=lambda entry: entry.number)


def _is_locked_until(lock: SessionLock, when: int) -> bool:
    return lock.session.lock is lock and lock.locked_until == when
