"""A claim that is held: each transition is one write."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from lucius_sdk.idempotency_store.decisions import (
    acked,
    completed,
    is_over,
    released,
    renewed,
    reported,
)
from lucius_sdk.idempotency_store.errors import (
    ClaimLost,
    Conflict,
    DeadlinePassed,
    StoreUnavailable,
)
from lucius_sdk.idempotency_store.port import DedupStore, Stored
from lucius_sdk.idempotency_store.records import ClaimState, Record, StepKey, StoredResult

TRIES = 20  # each conflict means that another got on; so many in a row, that something is wrong

Transition = Callable[[Record], Record]


class WallClock(Protocol):
    def now(self) -> datetime: ...


class HeldClaim:
    """A claim of this process, with the record as it was last written.

    Transitions are serialised. `ClaimLost` from one of them is final. After `StoreUnavailable`, or
    a cancelled transition, it may be tried again, or another instead: the next one reads first, and
    what has landed counts.
    """

    def __init__(
        self, store: DedupStore, key: StepKey, stored: Stored, clock: WallClock, skew: timedelta
    ) -> None:
        self.key = key
        self._store = store
        self._record, self._version = stored
        self._clock = clock
        self._skew = skew
        self._turn = asyncio.Lock()
        self._is_held = True
        self._is_unsure = False

    @property
    def record(self) -> Record:
        return self._record

    @property
    def result(self) -> StoredResult | None:
        return self._record.result

    @property
    def is_held(self) -> bool:
        """False once it was lost or released."""
        return self._is_held

    async def acked(self, deadline: datetime | None = None) -> None:
        """The ACK was sent or answered. Nothing is written if that comes after the result."""
        await self._move(partial(_acked, deadline=deadline))

    async def renew(self, until: datetime, deadline: datetime | None = None) -> None:
        """The message lock was renewed. Nothing is written after REPORTED."""
        await self._move(partial(_renewed, until=until, deadline=deadline))

    async def complete(
        self, result: StoredResult, now: datetime, deadline: datetime | None = None
    ) -> StoredResult:
        """Store the result, and return the one to be sent: the first that was stored, if a try
        that seemed to fail had landed. `DeadlinePassed` when the time is over; `deadline` is for
        one that is later than what was stored."""
        await self._move(partial(self._completed, result=result, now=now, deadline=deadline))
        assert self._record.result is not None
        return self._record.result

    async def report(self) -> None:
        """The result was answered for good."""
        await self._move(_reported)

    async def release(self) -> None:
        """Give it up, so that another may take it over at once. Nothing is written if it was
        reported or lost already."""
        with suppress(ClaimLost):
            await self._move(self._released)

    async def _move(self, transition: Transition) -> None:
        async with self._turn:
            if not self._is_held:
                raise ClaimLost(about(self.key, "is not held any more"))
            if self._is_unsure:
                await self._look()
            for _ in range(TRIES):
                record = transition(self._record)
                if record == self._record or await self._is_written(record):
                    return
                await self._look()
        raise StoreUnavailable(about(self.key, "was never left as it was read"))

    async def _is_written(self, record: Record) -> bool:
        self._is_unsure = True
        try:
            self._version = await self._store.write(self.key, record, self._version)
        except Conflict:
            return False
        self._record = record
        self._is_unsure = False
        self._is_held = record.owner is not None
        return True

    async def _look(self) -> None:
        """Take over what is stored, if it is still ours."""
        stored = await self._store.read(self.key)
        if stored is None or not self._is_ours(stored.record):
            self._is_held = False
            raise ClaimLost(about(self.key, "was taken over"))
        self._record, self._version = stored
        self._is_unsure = False

    def _is_ours(self, stored: Record) -> bool:
        return _identity(stored) == _identity(self._record)

    def _completed(
        self, record: Record, result: StoredResult, now: datetime, deadline: datetime | None
    ) -> Record:
        if record.result is not None:
            return record
        record = renewed(record, record.until, deadline)
        if is_over(record.deadline, now, self._skew):
            raise DeadlinePassed(about(self.key, "was completed after its deadline"))
        return completed(record, result)

    def _released(self, record: Record) -> Record:
        is_ended = record.state is ClaimState.REPORTED
        return record if is_ended else released(record, self._clock.now())


def _acked(record: Record, deadline: datetime | None) -> Record:
    return record if record.result is not None else acked(record, deadline)


def _renewed(record: Record, until: datetime, deadline: datetime | None) -> Record:
    return record if record.state is ClaimState.REPORTED else renewed(record, until, deadline)


def _reported(record: Record) -> Record:
    return record if record.state is ClaimState.REPORTED else reported(record)


def _identity(record: Record) -> tuple[int, str, int, str | None]:
    return record.attempt_no, record.lease_id, record.epoch, record.owner


def about(key: StepKey, what: str) -> str:
    return f"step {key.step_id} of {key.job_id} {what}"
