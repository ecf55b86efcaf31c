"""Taking OUTBOX rows of one kind to whoever deals with them.

Between the commit of a row and its delivery lies a claim: a lease on the row. A process that dies
leaves a lease behind, which runs out; then another one delivers, perhaps for the second time, which
those at the other end recognise. Nothing is lost and nobody has to clean up.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from lucius_bus.waiting import until_set
from lucius_contract.routing import LANES
from lucius_orchestrator.domain.decision import OutboxKind, OutboxRow
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.ports.ledger import ALL_LANES, Claim, LedgerError

Deliver = Callable[[Sequence[Claim]], Coroutine[None, None, None]]
"""Whatever happens there, what is not settled is claimed again when its lease is over."""

_LEADS_PER_LEASE = 3


@dataclass(frozen=True, slots=True)
class ClaimSettings:
    """`concurrency` batches of up to `batch_size` rows are under way at a time."""

    batch_size: int = 100
    concurrency: int = 4
    lease: timedelta = timedelta(seconds=30)
    poll_interval: timedelta = timedelta(seconds=1)

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.concurrency < 1:
            raise ValueError("batch_size and concurrency must be at least 1")
        if self.poll_interval <= timedelta(0):
            raise ValueError("poll_interval must be above zero")


class _Adopted(NamedTuple):
    """A claim that waits for room, and until when it is held."""

    claim: Claim
    until: datetime


class ClaimLoop:
    """Runs by `run()` until `stop()`, which returns when all that was claimed is delivered. One
    that `leads` keeps to lanes that no other one claims in."""

    def __init__(
        self,
        engine: LedgerEngine,
        kind: OutboxKind,
        deliver: Deliver,
        settings: ClaimSettings,
        *,
        leads: bool,
    ) -> None:
        self._engine = engine
        self._kind = kind
        self._deliver = deliver
        self._settings = settings
        self._leads = leads
        self._woken = asyncio.Event()
        self._stopping = asyncio.Event()
        self._stopped = asyncio.Event()
        self._stopped.set()
        self._batches: set[asyncio.Task[None]] = set()
        self._adopted: deque[_Adopted] = deque()
        self._most = settings.batch_size * settings.concurrency
        self._is_asked_to_look = False
        self._claim_at = 0.0
        self._lanes = frozenset[int]() if leads else frozenset(ALL_LANES)
        self._lead_at = datetime.min.replace(tzinfo=UTC)

    def wants(self, row: OutboxRow) -> bool:  # noqa: ARG002 - a dispatcher looks at it
        """As an adopter: no more than can be under way before a lease is over."""
        return not self._stopping.is_set() and self._count_waiting() < self._most

    def _count_waiting(self) -> int:
        """Return how many adopted rows are not under way yet."""
        return len(self._adopted)

    def take(self, claims: Sequence[Claim]) -> None:
        until = self._engine.world.clock() + self._settings.lease
        for claim in claims:
            self._adopted.append(_Adopted(claim, until))
        self._woken.set()

    def wake(self) -> None:
        """Look for rows now."""
        self._is_asked_to_look = True
        self._woken.set()

    async def stop(self) -> None:
        self._stopping.set()
        self.wake()
        await self._stopped.wait()

    async def run(self) -> None:
        self._stopped.clear()
        try:
            async with asyncio.TaskGroup() as tasks:
                listener = tasks.create_task(self._engine.ledger.listen(self.wake))
                await asyncio.sleep(0)  # it listens before the first claim looks
                end = self._engine.ledger.adopt(self._kind, self._settings.lease, self)
                try:
                    await self._claim_until_stopped(tasks)
                finally:
                    end()
                    listener.cancel()
        finally:
            self._stopped.set()

    async def pause(self, duration: timedelta) -> None:
        """What is delivered to is away; over at once at a stop."""
        await until_set(self._stopping, duration)

    async def run_once(self) -> int:
        """Deliver one batch; returns how many rows were claimed."""
        claims = await self._claim()
        await self._deliver(claims)
        return len(claims)

    async def _claim_until_stopped(self, tasks: asyncio.TaskGroup) -> None:
        while self._has_adopted() or not self._stopping.is_set():
            self._woken.clear()  # before the claim: what is committed after it wakes us again
            is_full = len(self._batches) >= self._settings.concurrency
            claims = [] if is_full else self._given() or await self._claim_if_due()
            if claims:
                batch = tasks.create_task(self._deliver(claims))
                self._batches.add(batch)
                batch.add_done_callback(self._ended)
            else:
                await until_set(self._woken, self._settings.poll_interval)

    def _ended(self, batch: asyncio.Task[None]) -> None:
        self._batches.discard(batch)
        self._woken.set()

    def _given(self) -> list[Claim]:
        """Rows that were claimed at birth; now and then none, so that others have their turn."""
        loop_time = asyncio.get_running_loop().time()
        if not self._adopted or (loop_time >= self._claim_at and not self._stopping.is_set()):
            return []
        count = min(len(self._adopted), self._settings.batch_size)
        return [self._adopted.popleft().claim for _ in range(count)]

    def _has_adopted(self) -> bool:
        """Whether rows wait for room. One that did for longer than its lease may be another's by
        now, or delivered: it is looked for again."""
        now = self._engine.world.clock()
        while self._adopted and self._adopted[0].until < now:
            self._lost(self._adopted.popleft().claim)
            self._is_asked_to_look = True
        return bool(self._adopted)

    async def _claim_if_due(self) -> list[Claim]:
        """Looking costs: it is done when somebody says so, when there was more than could be taken,
        and now and then."""
        is_due = asyncio.get_running_loop().time() >= self._claim_at
        if not is_due and not self._is_asked_to_look:
            return []
        claims = await self._claim()
        self._is_asked_to_look |= self._may_be_more(claims)
        return claims

    def _may_be_more(self, claims: Sequence[Claim]) -> bool:
        return len(claims) == self._settings.batch_size

    def _lost(self, claim: Claim) -> None:
        """An adopted row waited for room until its claim lapsed."""

    async def _fetch(self, lanes: frozenset[int]) -> list[Claim]:
        size, lease = self._settings.batch_size, self._settings.lease
        return await self._engine.ledger.claim(self._kind, size, lease, lanes)

    async def _claim(self) -> list[Claim]:
        settings, loop = self._settings, asyncio.get_running_loop()
        self._is_asked_to_look = False  # before: what is committed meanwhile asks again
        if self._adopted:
            self._woken.set()
        try:
            lanes = await self._led_lanes()
            if not lanes:
                return []
            return await self._fetch(lanes)
        except LedgerError as error:
            self._engine.telemetry.dispatch_failed("claim", 0, error)
            return []
        finally:
            # Counted from the end: a look that takes longer than the interval would be due again
            # at once, and adopted rows would not have their turn.
            self._claim_at = loop.time() + settings.poll_interval.total_seconds()

    async def _led_lanes(self) -> frozenset[int]:
        """Asked for again long before the lease on them is over, and as long as some are missing:
        another may have left them."""
        now, lease = self._engine.world.clock(), self._settings.lease
        if self._leads and (now >= self._lead_at or len(self._lanes) < LANES):
            self._lanes = await self._engine.ledger.lead(ALL_LANES, lease)
            self._lead_at = now + lease / _LEADS_PER_LEASE
        return self._lanes
