"""A queue as a list that is searched from the start: slow, and plain enough to be believed."""

from collections.abc import Iterator
from dataclasses import dataclass

LOCK = 1000
WINDOW = 1500
MOST = 3


@dataclass
class Thing:
    """A message. `place` is one of ready, locked, deferred, scheduled."""

    name: str
    number: int
    enqueued_at: int
    expires_at: float
    session: str | None
    place: str = "ready"
    count: int = 0
    is_deferred: bool = False
    until: int = 0
    ttl: int | None = None
    token: bytes = b""


class Model:
    """One queue that keeps what expired among its dead letters and drops duplicates."""

    def __init__(self, now: int, *, has_sessions: bool) -> None:
        self.now = now
        self.has_sessions = has_sessions
        self.things: list[Thing] = []
        self.dead: list[tuple[str, str, int]] = []
        self.settled: list[str] = []
        self.held: dict[str, int] = {}  # sessions, and until when
        self.seen: dict[str, int] = {}
        self.last = 0

    def send(self, name: str, session: str | None, ttl: int | None, delay: int | None) -> bool:
        """Whether it is no duplicate."""
        if self.seen.get(name, self.now) > self.now:
            return False
        self.seen[name] = self.now + WINDOW
        if delay is not None and delay > 0:
            thing = self._add(name, session, ttl)
            thing.place, thing.until = "scheduled", self.now + delay
            thing.expires_at = float("inf")
        else:
            self._add(name, session, ttl)
        return True

    def take(self, limit: int, session: str | None) -> list[Thing]:
        taken = [one for one in self.things if one.place == "ready" and one.session == session]
        until = self.held[session] if session is not None else self.now + LOCK
        for thing in taken[:limit]:
            thing.place, thing.until = "locked", until
        return taken[:limit]

    def fail(self, thing: Thing, moment: int) -> None:
        thing.count += 1
        if thing.count >= MOST:
            self._bury(thing, "MaxDeliveryCountExceeded")
        else:
            self.give_back(thing, moment)

    def give_back(self, thing: Thing, moment: int) -> None:
        if thing.is_deferred:
            thing.place = "deferred"
        elif thing.expires_at <= moment:
            self._bury(thing, "TTLExpiredException")
        else:
            thing.place = "ready"

    def defer(self, thing: Thing) -> None:
        thing.count += 1
        thing.place, thing.is_deferred = "deferred", True

    def kill(self, thing: Thing) -> None:
        self._bury(thing, "Unreadable")

    def complete(self, thing: Thing) -> None:
        self.things.remove(thing)
        self.settled.append(thing.name)

    def expire_deferred(self, thing: Thing) -> None:
        self._bury(thing, "TTLExpiredException")

    def free(self, session: str, moment: int, *, is_lost: bool) -> None:
        del self.held[session]
        for thing in self.locked(session):
            if is_lost:
                self.fail(thing, moment)
            else:
                self.give_back(thing, moment)

    def extend(self, session: str) -> None:
        self.held[session] = self.now + LOCK
        for thing in self.locked(session):
            thing.until = self.now + LOCK

    def locked(self, session: str | None) -> list[Thing]:
        return [one for one in self.things if one.place == "locked" and one.session == session]

    def at(self, place: str) -> list[Thing]:
        return [one for one in self.things if one.place == place]

    def advance(self, milliseconds: int) -> None:
        until = self.now + milliseconds
        while (event := min(self._events(), default=None)) is not None and event[0] <= until:
            self._happen(*event)
        self.now = until

    def _events(self) -> Iterator[tuple[int, int, int, str]]:
        """Time, kind, number, session: at the same time locks end before messages expire."""
        for one in self.things:
            if one.place == "locked" and one.session is None:
                yield one.until, 0, one.number, ""
            elif one.place == "ready" and one.expires_at < float("inf"):
                yield int(one.expires_at), 2, one.number, ""
            elif one.place == "scheduled":
                yield one.until, 3, one.number, ""
        for order, (session, until) in enumerate(self.held.items()):
            yield until, 1, order, session

    def _happen(self, moment: int, kind: int, number: int, session: str) -> None:
        if kind == 1:
            self.free(session, moment, is_lost=True)
            return
        (thing,) = [one for one in self.things if one.number == number]
        if kind == 0:
            self.fail(thing, moment)
        elif kind == 2:
            self._bury(thing, "TTLExpiredException")
        else:
            self.things.remove(thing)
            self.now = moment
            self._add(thing.name, thing.session, thing.ttl)

    def _add(self, name: str, session: str | None, ttl: int | None) -> Thing:
        self.last += 1
        expires_at = float("inf") if ttl is None else self.now + ttl
        thing = Thing(name, self.last, self.now, expires_at, session, ttl=ttl)
        self.things.append(thing)
        return thing

    def _bury(self, thing: Thing, reason: str) -> None:
        self.things.remove(thing)
        self.dead.append((thing.name, reason, thing.count))
