"""Gauges that say how services stand; what could not be read for a while is absent rather than
old."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lucius_orchestrator.engine.services import Services, ServiceStanding
from lucius_orchestrator.observability.tables import (
    SERVICE_ABSENT,
    SERVICE_GAUGES,
    SERVICE_HEARD,
    SERVICE_OLDEST,
    SERVICE_UNACKNOWLEDGED,
    SERVICE_WAITING,
    SERVICE_WINDOW,
    SERVICE_WORKING,
)


class ServiceGauges(Collector):
    """`clock` counts seconds. A reading counts for `max_age`."""

    def __init__(self, clock: Callable[[], float], max_age: timedelta) -> None:
        self._clock = clock
        self._max_age = max_age.total_seconds()
        self._reading: tuple[float, Sequence[ServiceStanding]] | None = None

    async def refresh(self, services: Services) -> None:
        """Read them now. Raise what the ledger raises; those of the last reading stay until they
        are old."""
        found = await services.read()
        self._reading = self._clock(), found

    def describe(self) -> Iterator[Metric]:
        yield from _families().values()

    def collect(self) -> Iterator[Metric]:
        families = _families()
        for standing in self._fresh():
            for name, value in _values(standing).items():
                families[name].add_metric((standing.service,), value)
        yield from families.values()

    def _fresh(self) -> Sequence[ServiceStanding]:
        if self._reading is None:
            return ()
        at, found = self._reading
        return found if self._clock() - at <= self._max_age else ()


def _families() -> dict[str, GaugeMetricFamily]:
    return {
        info.name: GaugeMetricFamily(info.name, info.meaning, labels=info.labels)
        for info in SERVICE_GAUGES
    }


def _values(standing: ServiceStanding) -> dict[str, float]:
    traffic, silence = standing.traffic, standing.silence
    values = {
        SERVICE_WAITING: float(standing.waiting),
        SERVICE_OLDEST: (standing.oldest_age or timedelta()).total_seconds(),
        SERVICE_UNACKNOWLEDGED: float(traffic.unacknowledged),
        SERVICE_WORKING: float(traffic.working),
        SERVICE_WINDOW: float(int(traffic.window)),
        SERVICE_ABSENT: float(standing.is_absent),
    }
    return values if silence is None else values | {SERVICE_HEARD: silence.total_seconds()}
