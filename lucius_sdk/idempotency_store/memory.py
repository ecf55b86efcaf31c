"""A store inside the process: for tests. Nothing survives the process."""

from collections.abc import Callable
from datetime import datetime
from typing import Self

from lucius_sdk.idempotency_store.errors import Conflict, StoreUnavailable
from lucius_sdk.idempotency_store.port import Stored, next_version, system_now
from lucius_sdk.idempotency_store.records import ClaimState, Record, StepKey


class MemoryStore:
    """Keeps every record for as long as it lives itself."""

    def __init__(self, now: Callable[[], datetime] = system_now) -> None:
        self._now = now
        self._stored: dict[StepKey, Stored] = {}
        self._is_away = False
        self._is_closed = False

    def reopened(self) -> Self:
        """Another store on the same records, as another process would open it."""
        other = type(self)(self._now)
        other._stored = self._stored
        return other

    def go_away(self) -> None:
        """Nobody reaches the store; what is in it stays."""
        self._is_away = True

    def come_back(self) -> None:
        self._is_away = False

    async def read(self, key: StepKey) -> Stored | None:
        await self.check()
        return self._stored.get(key)

    async def write(self, key: StepKey, record: Record, expected: str | None) -> str:
        await self.check()
        stored = self._stored.get(key)
        if (None if stored is None else stored.version) != expected:
            raise Conflict(f"step {key.step_id} of {key.job_id} was written by another")
        version = next_version(expected, self._now())
        self._stored[key] = Stored(record, version)
        return version

    async def lapsed_results(self, before: datetime, limit: int) -> list[StepKey]:
        await self.check()
        found = [
            (stored.record.until, key)
            for key, stored in self._stored.items()
            if stored.record.state is ClaimState.COMPLETED and stored.record.until < before
        ]
        return [key for _, key in sorted(found)[:limit]]

    async def check(self) -> None:
        if self._is_away or self._is_closed:
            raise StoreUnavailable(
                "the store is closed" if self._is_closed else "the store is away"
            )

    async def close(self) -> None:
        self._is_closed = True
