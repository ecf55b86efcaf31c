"""Metrics for Prometheus. Needs `prometheus-client` (the extra `orchestrator` brings it)."""

from collections.abc import Sequence

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from lucius_outbox.telemetry import METRICS, Kind

_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1800, 7200)


class PrometheusMetrics:
    """One per process and registry: Prometheus refuses to register a name twice."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}
        for name, kind, labels, meaning in METRICS:
            if kind is Kind.COUNTER:
                self._counters[name] = Counter(name, meaning, labels, registry=registry)
            elif kind is Kind.GAUGE:
                self._gauges[name] = Gauge(name, meaning, labels, registry=registry)
            else:
                self._histograms[name] = Histogram(
                    name, meaning, labels, registry=registry, buckets=_SECONDS
                )

    def increment(self, name: str, amount: int, **labels: str) -> None:
        self._counters[name].labels(**labels).inc(amount)

    def observe(self, name: str, values: Sequence[float], **labels: str) -> None:
        histogram = self._histograms[name].labels(**labels)
        for value in values:
            histogram.observe(value)

    def set(self, name: str, value: float, **labels: str) -> None:
        self._gauges[name].labels(**labels).set(value)
