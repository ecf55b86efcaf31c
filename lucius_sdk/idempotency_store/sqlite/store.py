"""The verbs, asked for in the event loop and done in a thread, a group at a time."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from os import PathLike
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from lucius_sdk.idempotency_store.errors import StoreError, StoreUnavailable
from lucius_sdk.idempotency_store.port import Stored, system_now
from lucius_sdk.idempotency_store.records import RETENTION, ClaimState, Record, StepKey
from lucius_sdk.idempotency_store.sqlite.file import SqliteFile
from lucius_sdk.idempotency_store.sqlite.statements import MOST_ROWS, Row

_PATIENCE = timedelta(seconds=5)
_PATIENT = 0.02  # seconds
_GATHERING = 0.005  # seconds, while there is much to write: a commit costs as much as many rows


Reading = Callable[[SqliteFile], Any]


class _Asked(NamedTuple):
    work: Row | Reading
    answer: asyncio.Future[Any]


class _Answered(NamedTuple):
    answer: asyncio.Future[Any]
    outcome: Any


class SqliteStore:
    """Group commit: all that is asked for while a group is being written is the next group, one
    transaction and one fsync. All of a group is answered after its commit, conflicts included.

    One thread has the file. Another process that writes is waited for, up to `patience`; after that
    the group is `StoreUnavailable`. Records that nobody has touched for `retention` are purged a
    few at a time, as new ones come.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        retention: timedelta = RETENTION,
        *,
        now: Callable[[], datetime] = system_now,
        patience: timedelta = _PATIENCE,
    ) -> None:
        self._file = SqliteFile(Path(path), retention, now, patience.total_seconds())
        self._waiting: list[_Asked] = []
        self._groups: SimpleQueue[list[_Asked] | None] = SimpleQueue()
        self._is_busy = False
        self._is_started = False
        self._patience: asyncio.TimerHandle | None = None
        self._closed: asyncio.Future[None] | None = None

    async def read(self, key: StepKey) -> Stored | None:
        found: Stored | None = await self._ask(lambda file: file.read(key))
        return found

    async def write(self, key: StepKey, record: Record, expected: str | None) -> str:
        is_urgent = record.state is not ClaimState.REPORTED
        row = self._file.row(key, record, expected)
        version: str = await self._ask(row, is_urgent=is_urgent)
        return version

    async def lapsed_results(self, before: datetime, limit: int) -> list[StepKey]:
        found: list[StepKey] = await self._ask(lambda file: file.lapsed_results(before, limit))
        return found

    async def check(self) -> None:
        await self._ask(SqliteFile.check)

    async def close(self) -> None:
        if self._closed is None:
            self._closed = asyncio.get_running_loop().create_future()
            if not self._is_started:
                self._closed.set_result(None)
            elif not self._is_busy:
                self._next()
        await asyncio.shield(self._closed)

    def _ask(self, work: Row | Reading, *, is_urgent: bool = True) -> asyncio.Future[Any]:
        """What is not urgent waits a little for company: nobody works for as long."""
        if self._closed is not None:
            raise StoreUnavailable("the store is closed")
        loop = asyncio.get_running_loop()
        if not self._is_started:
            self._start(loop)
        asked = _Asked(work, loop.create_future())
        self._waiting.append(asked)
        if not is_urgent and not self._is_busy:
            self._patience = self._patience or loop.call_later(_PATIENT, self._begin)
        elif not self._is_busy:
            self._begin()
        return asked.answer

    def _begin(self) -> None:
        """One turn later, so that all who ask in this turn are in the group."""
        if not self._is_busy:
            self._is_busy = True
            asyncio.get_running_loop().call_soon(self._next)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_started = True
        threading.Thread(target=self._run, args=(loop,), name="dedup-store", daemon=True).start()

    def _next(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        group = self._waiting[:MOST_ROWS]
        del self._waiting[:MOST_ROWS]
        self._is_busy = bool(group)
        if group:
            self._groups.put(group)
        elif self._closed is not None:
            self._groups.put(None)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """The thread. It ends with the store, or with a loop that ended before."""
        with suppress(RuntimeError):
            while (group := self._groups.get()) is not None:
                answered = [*self._read(group), *self._written(group)]
                loop.call_soon_threadsafe(self._answer, answered)
                with suppress(StoreError):  # nobody waits for it; a later group tries again
                    self._file.purge()
        self._file.close()
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._end)

    def _read(self, group: Sequence[_Asked]) -> Iterator[_Answered]:
        for work, answer in group:
            if not isinstance(work, Row):
                yield _Answered(answer, *_outcomes(partial(self._read_one, work), 1))

    def _read_one(self, reading: Reading) -> list[Any]:
        return [reading(self._file)]

    def _written(self, group: Sequence[_Asked]) -> list[_Answered]:
        rows = [work for work, _ in group if isinstance(work, Row)]
        if not rows:
            return []
        answers = [answer for work, answer in group if isinstance(work, Row)]
        outcomes = _outcomes(lambda: self._file.write(rows), len(rows))
        return [_Answered(*pair) for pair in zip(answers, outcomes, strict=True)]

    def _answer(self, answered: Sequence[_Answered]) -> None:
        for answer, outcome in answered:
            if answer.done():  # its caller was cancelled
                continue
            if isinstance(outcome, Exception):
                answer.set_exception(outcome)
            else:
                answer.set_result(outcome)
        # After those that were just answered: what they ask for at once is in the next group.
        loop = asyncio.get_running_loop()
        if len(answered) > 1:
            loop.call_later(_GATHERING, self._next)
        else:
            loop.call_soon(self._next)

    def _end(self) -> None:
        if self._closed is not None and not self._closed.done():
            self._closed.set_result(None)


def _outcomes(work: Callable[[], Sequence[Any]], count: int) -> Sequence[Any]:
    """Whatever happens, all are answered, and the thread lives on."""
    try:
        return work()
    except Exception as error:
        return [_told(error) for _ in range(count)]


def _told(error: Exception) -> StoreError:
    """For each its own: an exception that several raise collects all their tracebacks."""
    told = type(error)(*error.args) if isinstance(error, StoreError) else _unforeseen(error)
    told.__cause__ = error.__cause__ or error
    return told


def _unforeseen(error: Exception) -> StoreUnavailable:
    return StoreUnavailable(f"SQLite: {type(error).__name__}: {error}")
