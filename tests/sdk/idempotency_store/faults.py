"""A store in front of another that fails as networks do."""

import asyncio
from collections import deque
from datetime import datetime
from enum import Enum

from lucius_sdk.idempotency_store import (
    Conflict,
    DedupStore,
    Record,
    StepKey,
    Stored,
    StoreUnavailable,
)


class Fault(Enum):
    """What becomes of a write. All but the slow one are answered with `StoreUnavailable`."""

    LOST = "it never happens"
    LANDED = "it has happened"
    LATE = "it happens later, if it still can"
    SLOW = "it has happened, and the answer comes when it may"


UNKNOWN = (Fault.LOST, Fault.LANDED, Fault.LATE)


class FaultyStore:
    """Meets each of the next writes with the fault that `faults` has for it."""

    def __init__(self, store: DedupStore) -> None:
        self._store = store
        self.faults: deque[Fault | None] = deque()
        self.late: list[tuple[StepKey, Record, str | None]] = []
        self.has_landed = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.reads = 0
        self.writes = 0

    async def read(self, key: StepKey) -> Stored | None:
        self.reads += 1
        return await self._store.read(key)

    async def write(self, key: StepKey, record: Record, expected: str | None) -> str:
        self.writes += 1
        fault = self.faults.popleft() if self.faults else None
        if fault is Fault.LATE:
            self.late.append((key, record, expected))
        if fault in (Fault.LOST, Fault.LATE):
            raise StoreUnavailable(fault.value)
        version = await self._store.write(key, record, expected)
        if fault is Fault.LANDED:
            raise StoreUnavailable(fault.value)
        if fault is Fault.SLOW:
            self.has_landed.set()
            await self.may_answer.wait()
        return version

    async def land(self) -> None:
        """What was late comes now."""
        late, self.late = self.late, []
        for write in late:
            try:
                await self._store.write(*write)
            except Conflict:
                continue

    async def lapsed_results(self, before: datetime, limit: int) -> list[StepKey]:
        return await self._store.lapsed_results(before, limit)

    async def check(self) -> None:
        await self._store.check()

    async def close(self) -> None:
        await self._store.close()
