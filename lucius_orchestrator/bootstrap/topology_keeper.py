"""The part that sees to it that every service of the protocols in force has its subscriptions.

A topic drops what no subscription matches, so that nothing is published before the topology was
applied once; a bus that is away is waited for. A credential that may not manage the namespace is
not waited for: then the topology is somebody else's, and only told about.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NamedTuple

from lucius_bus.port import Misused
from lucius_bus.topology import (
    Topology,
    TopologyAdministration,
    TopologyReport,
)
from lucius_bus.waiting import until_set
from lucius_orchestrator.api.health import Check
from lucius_orchestrator.bootstrap.topology import (
    created_lines,
    drift_lines,
    drift_text,
    missing_text,
    topology_of,
)
from lucius_orchestrator.ports.registry import Snapshot
from lucius_outbox.redaction import redacted
from lucius_outbox.telemetry import EventInfo

_log = logging.getLogger("lucius_orchestrator.topology")

EVENTS: tuple[EventInfo, ...] = (
    EventInfo("topology.created", "INFO", ("entities",), "What was missing on the bus was made."),
    EventInfo(
        "topology.drift",
        "WARNING",
        ("differences",),
        "Entities on the bus are otherwise than wanted; they are left as they are.",
    ),
    EventInfo(
        "topology.missing",
        "WARNING",
        ("reason",),
        "Entities are missing, and it is another role that makes them.",
    ),
    EventInfo(
        "topology.unknown",
        "WARNING",
        ("error", "retry_seconds"),
        "The topology could not be looked at or applied; it is tried again. Told once.",
    ),
)
PAUSES = tuple(timedelta(seconds=seconds) for seconds in (1, 2, 5, 10, 30, 60))
FRESH = timedelta(seconds=60)
LOOK_AGAIN = timedelta(seconds=5)


class _Look(NamedTuple):
    at: float
    check: Check


class TopologyKeeper:
    """Applies the topology, or with `creates` off only compares it, until that has worked, and
    again when the protocols change. `settled` is set when it has worked once, or never will.

    A look at a bus elsewhere costs many requests. `check` answers from the last one, and has a new
    one made when that is older than `fresh`, or sooner when it found something missing; None:
    looking costs nothing.
    """

    def __init__(
        self,
        administration: TopologyAdministration,
        wanted: Topology,
        *,
        creates: bool,
        events_topic: str | None = None,
        fresh: timedelta | None = FRESH,
        pauses: Sequence[timedelta] = PAUSES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settled = asyncio.Event()
        self._administration = administration
        self._wanted = wanted
        self._creates = creates
        self._events_topic = events_topic
        self._fresh = fresh
        self._pauses = pauses
        self._monotonic = monotonic
        self._stopping = asyncio.Event()
        self._woken = asyncio.Event()
        self._looked = asyncio.Event()
        self._bringing = asyncio.Lock()
        self._look = _Look(0.0, Check("topology", False, "was not looked at yet"))
        self._failures = 0
        self._is_due = True
        self._told: str | None = None

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(self._keep())
            await self._stopping.wait()
            keeping.cancel()

    async def stop(self) -> None:
        self._stopping.set()
        self.settled.set()

    async def changed(self, snapshot: Snapshot) -> None:
        """The protocols may name services that the bus does not know yet."""
        self._wanted = topology_of(snapshot, self._events_topic)
        self._is_due, self._failures = True, 0
        await self.bring()
        self._woken.set()

    async def bring(self) -> None:
        """Try once, now. What does not work is tried again by `run`."""
        async with self._bringing:
            wanted = self._wanted
            try:
                report = await self._act(wanted)
            except Exception as error:  # whatever a driver raises, the process goes on
                self._failed(error)
            else:
                self._is_due, self._failures, self._told = wanted is not self._wanted, 0, None
                self._remember(_check_of(report))
                _tell(report)
                self.settled.set()

    async def check(self) -> Check:
        """Whether every service has its subscriptions, for `/healthz/ready`."""
        if self._fresh is None:
            return await look_at(self._administration, self._wanted)
        if self._is_stale():
            self._woken.set()
        await self._looked.wait()
        return self._look.check

    async def _keep(self) -> None:
        while True:
            self._woken.clear()
            if self._is_due:
                await self.bring()
            elif self._is_stale():
                self._remember(await look_at(self._administration, self._wanted))
            if self._is_due:
                await until_set(self._woken, self._pause())
            else:
                await self._woken.wait()

    async def _act(self, wanted: Topology) -> TopologyReport:
        if self._creates:
            return await self._administration.apply(wanted)
        return await self._administration.compare(wanted)

    def _pause(self) -> timedelta:
        return self._pauses[min(max(self._failures, 1), len(self._pauses)) - 1]

    def _is_stale(self) -> bool:
        if self._fresh is None:
            return False
        counts = self._fresh if self._look.check.ok else min(self._fresh, LOOK_AGAIN)
        return self._monotonic() - self._look.at >= counts.total_seconds()

    def _remember(self, check: Check) -> None:
        self._look = _Look(self._monotonic(), check)
        self._looked.set()

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self._remember(_unknown(error))
        text = _text(error)
        if text != self._told:
            self._told = text
            seconds = self._pause().total_seconds()
            _log.warning("topology.unknown", extra={"error": text, "retry_seconds": seconds})
        if isinstance(error, Misused):
            self.settled.set()


async def look_at(administration: TopologyAdministration, wanted: Topology) -> Check:
    try:
        return _check_of(await administration.compare(wanted))
    except Exception as error:
        return _unknown(error)


def _unknown(error: Exception) -> Check:
    """Whoever may not manage the namespace is not unready for it."""
    return Check("topology", isinstance(error, Misused), f"cannot be looked at: {_text(error)}")


def _text(error: Exception) -> str:
    return redacted(str(error)) or type(error).__name__


def _check_of(report: TopologyReport) -> Check:
    if report.missing:
        return Check("topology", False, missing_text(report.missing))
    if report.drift:
        return Check("topology", True, f"complete, but not as wanted: {drift_text(report.drift)}")
    return Check("topology", True, "every service has its subscriptions")


def _tell(report: TopologyReport) -> None:
    if report.created:
        _log.info("topology.created", extra={"entities": created_lines(report.created)})
    if report.drift:
        _log.warning("topology.drift", extra={"differences": drift_lines(report.drift)})
    if report.missing:
        _log.warning("topology.missing", extra={"reason": missing_text(report.missing)})
