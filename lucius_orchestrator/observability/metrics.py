"""All metrics of a control plane for Prometheus, made from the tables that say what they are."""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics import MetricWrapperBase

from lucius_artifacts import telemetry as artifacts
from lucius_orchestrator.engine import telemetry as engine
from lucius_orchestrator.observability.artifact_gauges import ArtifactGauges
from lucius_orchestrator.observability.gauges import LedgerGauges
from lucius_orchestrator.observability.service_gauges import ServiceGauges
from lucius_orchestrator.observability.tables import HTTP_METRICS, HTTP_SECONDS
from lucius_orchestrator.ports.ledger import Ledger
from lucius_outbox import prometheus as outbox
from lucius_outbox.telemetry import Kind, MetricInfo

M = TypeVar("M", bound=MetricWrapperBase)

MAX_AGE = timedelta(seconds=30)
ARTIFACTS_MAX_AGE = timedelta(minutes=5)
BUCKETS: dict[str, tuple[float, ...]] = {
    engine.STEP_SECONDS: (0.01, 0.05, 0.1, 0.5, 1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200),
    engine.DISPATCH_LAG: (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 600),
    HTTP_SECONDS: (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
}


class PrometheusMetrics(outbox.PrometheusMetrics):
    """The outbox's metrics, the engine's and those of the process around it, in one registry.

    `clock` counts seconds; gauges of the ledger that were read longer than `max_age` ago are
    absent.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, max_age: timedelta = MAX_AGE
    ) -> None:
        self.registry = CollectorRegistry()
        super().__init__(self.registry)
        for info in (*engine.METRICS, *HTTP_METRICS, *artifacts.COUNTERS):
            self._register(info)
        self._ledger_gauges = LedgerGauges(clock, max_age)
        self.registry.register(self._ledger_gauges)
        self.service_gauges = ServiceGauges(clock, max_age)
        self.registry.register(self.service_gauges)
        self.artifact_gauges = ArtifactGauges(clock, ARTIFACTS_MAX_AGE)
        self.registry.register(self.artifact_gauges)
        ProcessCollector(registry=self.registry)
        self._series: dict[object, MetricWrapperBase] = {}

    def increment(self, name: str, amount: int, **labels: str) -> None:
        self._one(self._counters[name], name, labels).inc(amount)

    def observe(self, name: str, values: Sequence[float], **labels: str) -> None:
        histogram = self._one(self._histograms[name], name, labels)
        for value in values:
            histogram.observe(value)

    def set(self, name: str, value: float, **labels: str) -> None:
        self._one(self._gauges[name], name, labels).set(value)

    def counting(self, name: str, **labels: str) -> Callable[[float], None]:
        """`increment` for one series that is counted very often."""
        return self._one(self._counters[name], name, labels).inc

    def observing(self, name: str, **labels: str) -> Callable[[float], None]:
        """`observe` for one series that is observed very often."""
        return self._one(self._histograms[name], name, labels).observe

    async def refresh(self, ledger: Ledger) -> None:
        try:
            in_flight = await ledger.in_flight()
            waiting = await ledger.backlog()
        except BaseException:
            self._ledger_gauges.hide()
            raise
        self._ledger_gauges.show(in_flight, waiting)

    def render(self) -> bytes:
        """In the text format of Prometheus."""
        return generate_latest(self.registry)

    def _register(self, info: MetricInfo) -> None:
        name, kind, labels, meaning = info
        if kind is Kind.COUNTER:
            self._counters[name] = Counter(name, meaning, labels, registry=self.registry)
        elif kind is Kind.GAUGE:
            self._gauges[name] = Gauge(name, meaning, labels, registry=self.registry)
        else:
            self._histograms[name] = Histogram(
                name, meaning, labels, registry=self.registry, buckets=BUCKETS[name]
            )

    def _one(self, metric: M, name: str, labels: dict[str, str]) -> M:
        """The series of these labels; remembered, since `labels` takes longer than counting."""
        if not labels:
            return metric
        key = (name, *labels.items())
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = metric.labels(**labels)
        return series  # type: ignore[return-value]  # of the same class as its metric
