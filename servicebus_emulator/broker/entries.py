"""A message in a store, and the line in which messages wait to be taken."""

import heapq
from collections import deque
from collections.abc import Callable

from servicebus_emulator.broker.content import Content
from servicebus_emulator.broker.deliveries import STATE_ACTIVE
from servicebus_emulator.broker.waiting import Bell, Waiters

READY, LOCKED, DEFERRED, SCHEDULED, GONE = range(5)
_FEW = 64


class Entry:
    """One message in one store.

    `place` says where it is now: it is in exactly one. `state` is what receivers are shown, and
    where it goes back to: a deferred message that is locked is in LOCKED and deferred. `hops`: how
    often it was forwarded.
    """

    __slots__ = (
        "count",
        "dead_letter_source",
        "enqueued_at",
        "expires_at",
        "hops",
        "line",
        "locked_until",
        "message",
        "number",
        "place",
        "state",
        "token",
    )

    def __init__(
        self,
        message: Content,
        number: int,
        enqueued_at: int,
        expires_at: int,
        line: "Line",
        hops: int,
    ) -> None:
        self.message = message
        self.number = number
        self.enqueued_at = enqueued_at
        self.expires_at = expires_at
        self.line = line
        self.hops = hops
        self.count = 0
        self.state = STATE_ACTIVE
        self.place = READY
        self.token: bytes | None = None
        self.locked_until = 0
        self.dead_letter_source: str | None = None


class Line:
    """What is ready, in the order of the numbers.

    What was taken before all the rest came before it, so that what is given back goes first. An
    entry that leaves the line other than by being taken stays in it as a stale one.
    """

    __slots__ = ("_returned", "_stale", "held", "new", "waiters")

    def __init__(self, bell: Bell, can_take: Callable[[], bool]) -> None:
        self.new: deque[Entry] = deque()
        self._returned: list[tuple[int, Entry]] = []
        self._stale = 0
        self.held: dict[bytes, Entry] = {}
        self.waiters = Waiters(bell, lambda: self.is_ready and can_take())

    @property
    def is_ready(self) -> bool:
        return len(self.new) + len(self._returned) > self._stale

    def give_back(self, entry: Entry) -> None:
        heapq.heappush(self._returned, (entry.number, entry))

    def pop(self) -> Entry | None:
        while self._returned:
            entry = heapq.heappop(self._returned)[1]
            if entry.place == READY:
                return entry
            self._stale -= 1
        while self.new:
            entry = self.new.popleft()
            if entry.place == READY:
                return entry
            self._stale -= 1
        return None

    def lose(self) -> None:
        """One of those in the line is gone."""
        self._stale += 1
        if self._stale > _FEW and self._stale * 2 > len(self.new) + len(self._returned):
            self._tidy()

    def _tidy(self) -> None:
        self.new = deque(entry for entry in self.new if entry.place == READY)
        self._returned = [pair for pair in self._returned if pair[1].place == READY]
        heapq.heapify(self._returned)
        self._stale = 0
