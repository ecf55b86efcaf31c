"""Gauges that say how the ledger stands. A scrape cannot wait for a ledger, so they are read every
few seconds; what could not be read for a while is absent rather than old."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lucius_bus.waiting import until_set
from lucius_contract.routing import LANES, Mode
from lucius_orchestrator.observability.tables import (
    BACKLOG,
    INFLIGHT,
    INFLIGHT_JOBS,
    LEDGER_GAUGES,
    LEDGER_UP,
)
from lucius_orchestrator.ports.ledger import InFlight
from lucius_outbox.redaction import redacted

_log = logging.getLogger("lucius_orchestrator")


class _Reading(NamedTuple):
    at: float
    in_flight: InFlight
    backlog: Mapping[int, int]


class LedgerGauges(Collector):
    """`clock` counts seconds. A reading counts for `max_age`."""

    def __init__(self, clock: Callable[[], float], max_age: timedelta) -> None:
        self._clock = clock
        self._max_age = max_age.total_seconds()
        self._reading: _Reading | None = None
        self._was_read = False

    def show(self, in_flight: InFlight, backlog: Mapping[int, int]) -> None:
        self._reading = _Reading(self._clock(), in_flight, backlog)
        self._was_read = True

    def hide(self) -> None:
        self._reading = None
        self._was_read = True

    def describe(self) -> Iterator[Metric]:
        yield from _families().values()

    def collect(self) -> Iterator[Metric]:
        families, reading = _families(), self._fresh()
        if self._was_read:
            families[LEDGER_UP].add_metric((), float(reading is not None))
        if reading is not None:
            _fill(families, reading)
        yield from families.values()

    def _fresh(self) -> _Reading | None:
        reading = self._reading
        if reading is None or self._clock() - reading.at > self._max_age:
            return None
        return reading


def _families() -> dict[str, GaugeMetricFamily]:
    return {
        info.name: GaugeMetricFamily(info.name, info.meaning, labels=info.labels)
        for info in LEDGER_GAUGES
    }


def _fill(families: Mapping[str, GaugeMetricFamily], reading: _Reading) -> None:
    families[INFLIGHT_JOBS].add_metric((), reading.in_flight.total)
    for mode in Mode:
        families[INFLIGHT].add_metric((mode.value,), reading.in_flight.by_mode.get(mode, 0))
    for lane in range(LANES):
        families[BACKLOG].add_metric((f"{lane}",), reading.backlog.get(lane, 0))


Source = TypeVar("Source", contravariant=True)


class Refreshable(Protocol[Source]):
    async def refresh(self, source: Source, /) -> None:
        """Read the gauges now. Raises what the source raises, and then they are absent."""


class GaugeRefresher:
    """Runs by `run()` until `stop()`. A source that fails, or does not answer for as long as
    `patience`, is told once and asked again."""

    def __init__(
        self,
        metrics: Refreshable[Source],
        source: Source,
        interval: timedelta = timedelta(seconds=5),
        patience: timedelta = timedelta(seconds=5),
    ) -> None:
        self._refresh = partial(metrics.refresh, source)
        self._interval = interval
        self._patience = patience.total_seconds()
        self._is_away = False
        self._stopping = asyncio.Event()
        self._stopped = asyncio.Event()
        self._stopped.set()

    async def stop(self) -> None:
        self._stopping.set()
        await self._stopped.wait()

    async def run(self) -> None:
        self._stopped.clear()
        try:
            while not self._stopping.is_set():
                await self.run_once()
                await until_set(self._stopping, self._interval)
        finally:
            self._stopped.set()

    async def run_once(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self._refresh()
        except Exception as error:
            self._lost(error)
        else:
            self._found()

    def _lost(self, error: Exception) -> None:
        if not self._is_away:
            text = redacted(f"{type(error).__name__}: {error}")
            _log.warning("gauges.stale", extra={"error": text})
        self._is_away = True

    def _found(self) -> None:
        if self._is_away:
            _log.info("gauges.fresh")
        self._is_away = False
