"""Gauges that say what the catalogue of artifacts holds; what could not be read for a while is
absent rather than old."""

from collections.abc import Callable, Iterator
from datetime import timedelta

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lucius_artifacts.ports.catalogue import Catalogue, Stats
from lucius_artifacts.telemetry import BLOBS, BYTES, DOOMED, GAUGES, OPEN_UPLOADS


class ArtifactGauges(Collector):
    """`clock` counts seconds. A reading counts for `max_age`."""

    def __init__(self, clock: Callable[[], float], max_age: timedelta) -> None:
        self._clock = clock
        self._max_age = max_age.total_seconds()
        self._reading: tuple[float, Stats] | None = None

    async def refresh(self, catalogue: Catalogue) -> None:
        """Raises what the catalogue raises, and then they are absent."""
        self._reading = None
        stats = await catalogue.read(lambda rows: rows.stats())
        self._reading = self._clock(), stats

    def describe(self) -> Iterator[Metric]:
        yield from _families().values()

    def collect(self) -> Iterator[Metric]:
        families, stats = _families(), self._fresh()
        if stats is not None:
            _fill(families, stats)
        yield from families.values()

    def _fresh(self) -> Stats | None:
        if self._reading is None:
            return None
        at, stats = self._reading
        return stats if self._clock() - at <= self._max_age else None


def _families() -> dict[str, GaugeMetricFamily]:
    return {
        info.name: GaugeMetricFamily(info.name, info.meaning, labels=info.labels) for info in GAUGES
    }


def _fill(families: dict[str, GaugeMetricFamily], stats: Stats) -> None:
    for found in stats.blobs:
        families[BLOBS].add_metric((found.state,), found.count)
        families[BYTES].add_metric((found.state,), found.bytes)
    families[OPEN_UPLOADS].add_metric((), stats.open_uploads)
    families[DOOMED].add_metric((), stats.doomed)
