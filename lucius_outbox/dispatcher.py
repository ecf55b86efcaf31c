"""Publishes what was committed: claims, lets the team's function publish, settles.

Nothing is remembered between two claims: what a dispatcher holds is in its leases, so when it dies
the next claim after their end takes the rows over. It wakes when a commit is announced, and polls
in case none was.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

from lucius_outbox.errors import InvalidSettings, LeaseLost, StoreUnavailable
from lucius_outbox.message import Claimed, Failure
from lucius_outbox.publishing import Publish, failures_of, is_cancelled
from lucius_outbox.store import Buried, Store
from lucius_outbox.telemetry import Metrics, NoMetrics, Telemetry

T = TypeVar("T")
_FIRST_PAUSE = 0.05  # seconds before a verb that failed is tried again; doubles up to the poll
_CANCEL_AGAIN = 0.2  # seconds


@dataclass(frozen=True, slots=True)
class DispatchSettings:
    """`concurrency` batches of up to `batch_size` rows are published at a time.

    A lease is extended while its batch is being published, until `publish_timeout` ends the try.
    `grace` is how long a stop waits for batches that are being published before it releases them.
    Delivered rows are deleted after `retention`; until then their dedupe keys are remembered.
    """

    batch_size: int = 100
    concurrency: int = 4
    lease: timedelta = timedelta(seconds=30)
    poll_interval: timedelta = timedelta(seconds=1)
    publish_timeout: timedelta = timedelta(seconds=60)
    grace: timedelta = timedelta(seconds=10)
    retention: timedelta | None = timedelta(days=7)
    housekeeping_interval: timedelta = timedelta(seconds=60)

    def __post_init__(self) -> None:
        zero = timedelta(0)
        if self.batch_size < 1 or self.concurrency < 1:
            raise InvalidSettings("batch_size and concurrency must be at least 1")
        if min(self.lease, self.publish_timeout, self.housekeeping_interval) <= zero:
            raise InvalidSettings(
                "lease, publish_timeout and housekeeping_interval must be above zero"
            )
        if not zero < self.poll_interval <= self.lease / 3:
            raise InvalidSettings(
                f"poll_interval must be above zero and at most a third of the lease"
                f" ({self.lease / 3}), not {self.poll_interval}"
            )
        if self.grace < zero or (self.retention is not None and self.retention < zero):
            raise InvalidSettings("grace and retention must not be below zero")


class Dispatcher:
    """Runs beside the body of `async with Dispatcher(...)`, or by `run()` until somebody calls
    `stop()`. An error that is nobody's fault but ours ends `run()`, or comes out of the `async
    with`."""

    _running: asyncio.Task[None]

    def __init__(
        self,
        store: Store,
        publish: Publish,
        settings: DispatchSettings | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._store = store
        self._publish = publish
        self._settings = settings or DispatchSettings()
        self._telemetry = Telemetry(store.namespace, store.worker_id, metrics or NoMetrics())
        self._stopping = asyncio.Event()
        self._woken = asyncio.Event()
        self._deliveries: set[asyncio.Task[None]] = set()
        self._publishing: dict[str, Claimed] = {}
        self._at_ease: set[asyncio.Task[Any]] = set()
        self._stopped = asyncio.Event()
        self._stopped.set()

    async def __aenter__(self) -> Self:
        await self._store.check_schema()
        self._running = asyncio.create_task(self.run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self.wake()
        await self._running

    def wake(self) -> None:
        """Look for rows now. Call it in the dispatcher's event loop."""
        self._woken.set()

    async def stop(self) -> None:
        """Claim no more, finish or release what is held, and return when that is done."""
        self._stopping.set()
        self.wake()
        await self._stopped.wait()

    async def run(self) -> None:
        await self._store.check_schema()
        self._stopped.clear()
        self._telemetry.started()
        try:
            async with asyncio.TaskGroup() as tasks:
                helpers = {
                    tasks.create_task(self._store.listen(self.wake)),
                    tasks.create_task(self._keep_leases()),
                    tasks.create_task(self._keep_house()),
                }
                try:
                    await self._claim_until_stopped(tasks)
                    await self._wait_for_deliveries()
                finally:
                    await self._end(helpers)
        finally:
            self._telemetry.stopped()
            self._stopped.set()

    async def _claim_until_stopped(self, tasks: asyncio.TaskGroup) -> None:
        while not self._stopping.is_set():
            self._woken.clear()  # before the claim: what is committed after it wakes us again
            claims = [] if self._is_full() else await self._claim()
            if claims:
                delivery = tasks.create_task(self._deliver(claims))
                self._deliveries.add(delivery)
                delivery.add_done_callback(self._ended)
            if is_cancelled():  # the claim may have swallowed it: see `_end`
                raise asyncio.CancelledError
            if not claims:
                await self._wait_for_rows()

    def _is_full(self) -> bool:
        return len(self._deliveries) >= self._settings.concurrency

    def _ended(self, delivery: asyncio.Task[None]) -> None:
        if self._is_full():
            self.wake()
        self._deliveries.discard(delivery)

    async def _wait_for_rows(self) -> None:
        try:
            async with asyncio.timeout(self._settings.poll_interval.total_seconds()):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _claim(self) -> list[Claimed]:
        settings = self._settings
        try:
            claims = await self._store.claim_batch(settings.batch_size, settings.lease)
        except StoreUnavailable as error:
            self._telemetry.store_failed("claim", error)
            return []
        if claims:
            self._telemetry.claimed(claims)
        return claims

    async def _deliver(self, claims: list[Claimed]) -> None:
        started = time.perf_counter()
        try:
            failures = await self._published(claims)
        except asyncio.CancelledError:
            await self._settle("release", self._store.release, claims)
            raise
        self._telemetry.published(time.perf_counter() - started)
        failed = {failure.claimed.id for failure in failures}
        delivered = [claimed for claimed in claims if claimed.id not in failed]
        if delivered:
            lost = await self._settle("ack", self._store.ack, delivered)
            if lost is not None:
                acked = [claimed for claimed in delivered if claimed.id not in lost]
                self._telemetry.delivered(acked)
        if failures:
            self._telemetry.failed(failures)
            await self._settle("nack", self._store.nack, failures)
        if any(claimed.ordering_key is not None for claimed in claims):
            self.wake()  # the next message of the key may be claimable now

    async def _published(self, claims: list[Claimed]) -> list[Failure]:
        held = {claimed.id: claimed for claimed in claims}
        self._publishing |= held
        try:
            with self._interruptible():
                return await failures_of(self._publish, claims, self._settings.publish_timeout)
        finally:
            for message_id in held:
                self._publishing.pop(message_id, None)

    async def _keep_leases(self) -> None:
        """A third of a lease leaves room for an extension that fails once."""
        while True:
            await asyncio.sleep(self._settings.lease.total_seconds() / 3)
            claims = list(self._publishing.values())
            if not claims:
                continue
            try:
                await self._store.extend(claims, self._settings.lease)
            except LeaseLost as error:
                self._forget(error)
            except StoreUnavailable as error:
                self._telemetry.store_failed("extend", error)

    def _forget(self, error: LeaseLost) -> None:
        """Rows that were settled while the extension was under way are not lost."""
        lost = [message_id for message_id in error.ids if self._publishing.pop(message_id, None)]
        if lost:
            self._telemetry.lease_lost(LeaseLost(error.verb, lost))

    async def _settle(
        self, verb: str, settle: Callable[[list[T]], Awaitable[Buried | None]], rows: list[T]
    ) -> Collection[str] | None:
        """The ids of rows that were lost; None if the database could not be reached in time.

        It is tried until the lease would be over: then the rows are another claim's to settle.
        """
        give_up = time.monotonic() + self._settings.lease.total_seconds()
        pause = _FIRST_PAUSE
        while True:
            try:
                self._bury(await settle(rows))
            except LeaseLost as error:
                self._telemetry.lease_lost(error)
                self._bury(error.buried)
                return error.ids
            except StoreUnavailable as error:
                self._telemetry.store_failed(verb, error)
            else:
                return ()
            if time.monotonic() + pause > give_up:
                return None
            with self._interruptible():
                await asyncio.sleep(pause)
            pause = min(2 * pause, self._settings.poll_interval.total_seconds())

    def _bury(self, buried: Buried | None) -> None:
        if buried is not None:
            self._telemetry.buried(buried)

    async def _wait_for_deliveries(self) -> None:
        if self._deliveries:
            grace = self._settings.grace.total_seconds()
            await asyncio.wait(self._deliveries, timeout=grace)

    async def _end(self, helpers: set[asyncio.Task[None]]) -> None:
        """Cancel what is left, and return when it is over.

        Again and again: before Python 3.12 `asyncio.wait_for` may swallow a cancellation, and
        drivers use it. Deliveries are not interrupted while they settle.
        """
        while left := {task for task in helpers | self._deliveries if not task.done()}:
            for task in left & (helpers | self._at_ease):
                task.cancel()
            await asyncio.wait(left, timeout=_CANCEL_AGAIN)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """For a delivery: what it does now may be cancelled when the dispatcher ends."""
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        self._at_ease.add(task)
        try:
            yield
        finally:
            self._at_ease.discard(task)

    async def _keep_house(self) -> None:
        while True:
            try:
                await self._tidy()
            except StoreUnavailable as error:
                self._telemetry.store_failed("housekeeping", error)
            await asyncio.sleep(self._settings.housekeeping_interval.total_seconds())

    async def _tidy(self) -> None:
        self._telemetry.buried(await self._store.sweep_dead())
        self._telemetry.counted(await self._store.stats())
        if self._settings.retention is None:
            return
        pruned = 0
        while count := await self._store.prune(self._settings.retention):
            pruned += count
        if pruned:
            self._telemetry.pruned(pruned)
