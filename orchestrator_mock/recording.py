"""Everything that passed between the mock and a service, in order, with times."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
_GLANCE = 0.25


class What(StrEnum):
    """The first nine are seen on the bus, the next four said by the service."""

    PUBLISHED = "published"
    DELIVERED = "delivered"
    RENEWED = "renewed"
    COMPLETED = "completed"
    ABANDONED = "abandoned"
    DEAD_LETTERED = "dead-lettered"
    DEFERRED = "deferred"
    LOCK_LOST = "lock lost"
    EXPIRED = "expired"
    ACK = "ACK"
    HEARTBEAT = "HEARTBEAT"
    RESULT = "RESULT"
    UNREADABLE = "unreadable reply"
    READ = "read"
    """The service has asked for a ref; it may be held."""
    READ_ENDED = "read ended"
    FAULT = "fault"
    NOTE = "note"
    """What somebody did who is neither the service nor the bus: a kill, a start."""


SETTLED = frozenset({What.COMPLETED, What.DEAD_LETTERED, What.EXPIRED})
"""The bus will not deliver it again."""
_UNLOCKED = SETTLED | {What.ABANDONED, What.DEFERRED, What.LOCK_LOST}
REPLIES = frozenset({What.ACK, What.HEARTBEAT, What.RESULT})


class Entry(NamedTuple):
    """`at` is seconds since the recording began. `via` is `http`, or the lane of a reply topic as
    `bus 7`. `answer` is what a reply was answered: a verdict, an error code, or what a fault did
    instead. `headers` are those of a request, or the properties of a message; never credentials."""

    number: int
    at: float
    what: What
    job_id: str = ""
    attempt_no: int = 0
    message_id: str = ""
    detail: str = ""
    via: str = ""
    status: int | None = None
    answer: str = ""
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, Any] = {}

    def shown(self) -> str:
        """One line for people."""
        said = [self.what, f"attempt {self.attempt_no}" if self.attempt_no else ""]
        if self.what is What.RESULT and self.body is not None:
            error = self.body.get("error")
            code = error.get("code") if isinstance(error, Mapping) else None
            said += [str(self.body.get("status", "")), str(code or "")]
        said += [self.detail, f"over {self.via}" if self.via else ""]
        if self.answer:
            said.append(f"→ {self.status} {self.answer}" if self.status else f"→ {self.answer}")
        return " ".join(part for part in said if part)


class Backlog(NamedTuple):
    """Jobs by how far the service is with them. A job is `locked` while its message is, and
    `acknowledged` from its ACK to its RESULT; it is `finished` when there is one. Of several copies
    of a directive, the one that something was last seen of counts."""

    sent: int
    locked: int
    acknowledged: int
    finished: int


class Recording:
    """Grows while it is looked at. Who waits is woken by whatever is added. `watch` gets each entry
    when all is known of it."""

    watch: Callable[[Entry], None] | None = None

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._entries: list[Entry] = []
        self._added = asyncio.Event()

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def since(self, number: int) -> list[Entry]:
        """Entries are numbered from 0."""
        return self._entries[number:]

    def now(self) -> float:
        return self._clock() - self._began

    def add(self, what: What, **facts: Any) -> Entry:
        entry = Entry(len(self._entries), self.now(), what, **facts)
        self._entries.append(entry)
        self.wake()
        if self.watch is not None and not (what in REPLIES and entry.via == "http"):
            self.watch(entry)
        return entry

    def amend(self, entry: Entry, **facts: Any) -> Entry:
        """Say more of an entry: how a reply was answered is known later than that it came."""
        changed = self._entries[entry.number] = self._entries[entry.number]._replace(**facts)
        self.wake()
        if self.watch is not None:
            self.watch(changed)
        return changed

    def wake(self) -> None:
        """Something changed that somebody may be waiting for."""
        self._added.set()

    def of(self, job_id: str, *whats: What) -> list[Entry]:
        """Entries of a job, of these kinds if any are given."""
        wanted = frozenset(whats)
        return [e for e in self._entries if e.job_id == job_id and (not wanted or e.what in wanted)]

    def backlog(self) -> Backlog:
        """As of now."""
        sent, locked, acked, finished = set[str](), set[str](), set[str](), set[str]()
        marked = {What.PUBLISHED: sent, What.ACK: acked, What.RESULT: finished}
        for entry in self._entries:
            if entry.what in marked:
                marked[entry.what].add(entry.job_id)
            elif entry.what is What.DELIVERED:
                locked.add(entry.job_id)
            elif entry.what in _UNLOCKED:
                locked.discard(entry.job_id)
        return Backlog(len(sent), len(locked), len(acked - finished), len(finished))

    async def wait(self, found: Callable[[], T | None], within: float) -> T | None:
        """What `found` gives as soon as that is something, or None when the time is over. It is
        asked whenever something is added, and now and then for what nobody records."""
        ends = asyncio.get_running_loop().time() + within
        while (value := found()) is None:
            self._added.clear()
            left = ends - asyncio.get_running_loop().time()
            if left <= 0:
                return None
            try:
                async with asyncio.timeout(min(left, _GLANCE)):
                    await self._added.wait()
            except TimeoutError:
                continue
        return value
