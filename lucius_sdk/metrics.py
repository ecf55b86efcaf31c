"""What a service counts: the metrics as data, and the verbs by which the runtime tells them.

`Metrics` keeps them for Prometheus in a registry of its own. All verbs may be called from any
thread, and cost little: several are told for every directive.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from lucius_outbox.telemetry import Kind, MetricInfo

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

Tell = Callable[[float], None]


class StepOutcome(StrEnum):
    """How the service was done with a directive."""

    SUCCEEDED = "succeeded"
    FAILED_RETRY = "failed_retry"
    FAILED_FINAL = "failed_final"
    DUPLICATE = "duplicate"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"
    DEAD_LETTERED = "dead_lettered"
    LEASE_LOST = "lease_lost"
    RELEASED = "released"


DIRECTIVES = "lucius_service_directives_total"
STEP_SECONDS = "lucius_service_step_seconds"
RUNNING = "lucius_service_running"
WAITING = "lucius_service_waiting"
REPLIES = "lucius_service_replies_total"
REPLY_RETRIES = "lucius_service_reply_retries_total"
RENEWALS = "lucius_service_lock_renewals_total"
RECEIVED = "lucius_service_received_total"
UNREPORTED = "lucius_service_unreported_results"

METRICS: tuple[MetricInfo, ...] = (
    MetricInfo(RECEIVED, Kind.COUNTER, ("lane",), "Messages taken from the bus, by lane."),
    MetricInfo(
        DIRECTIVES,
        Kind.COUNTER,
        ("step_type", "outcome"),
        f"Directives that the service is done with: {', '.join(StepOutcome)}.",
    ),
    MetricInfo(STEP_SECONDS, Kind.HISTOGRAM, ("step_type",), "Time in the service's own function."),
    MetricInfo(RUNNING, Kind.GAUGE, (), "Directives that are worked on now."),
    MetricInfo(
        WAITING,
        Kind.GAUGE,
        (),
        "Directives held for a free place, or until whoever works on the same one is done.",
    ),
    MetricInfo(REPLIES, Kind.COUNTER, ("type", "verdict"), "Replies that were answered finally."),
    MetricInfo(REPLY_RETRIES, Kind.COUNTER, ("type",), "Replies that had to be sent again."),
    MetricInfo(
        RENEWALS,
        Kind.COUNTER,
        ("outcome",),
        "Renewals of message locks: `renewed`, `failed` (it is tried again) or `lost`.",
    ),
    MetricInfo(
        UNREPORTED, Kind.GAUGE, (), "Results that are stored and that nobody has answered yet."
    ),
)
BUCKETS = (0.01, 0.05, 0.1, 0.5, 1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200)
MOST_STEP_TYPES = 100
OTHER = "other"


class StepMetrics(Protocol):
    def received(self, lane: int) -> None: ...

    def finished(
        self, step_type: str, outcome: StepOutcome | str, seconds: float | None = None
    ) -> None:
        """`seconds` where the service's function ran."""

    def running(self, delta: int) -> None: ...

    def waiting(self, delta: int) -> None: ...

    def reply(self, type: str, verdict: str) -> None: ...

    def reply_retried(self, type: str) -> None: ...

    def renewal(self, outcome: str) -> None: ...

    def unreported(self, delta: int) -> None: ...

    def render(self) -> bytes:
        """In the text format of Prometheus."""


class NoMetrics:
    def received(self, lane: int) -> None: ...

    def finished(
        self, step_type: str, outcome: StepOutcome | str, seconds: float | None = None
    ) -> None: ...

    def running(self, delta: int) -> None: ...

    def waiting(self, delta: int) -> None: ...

    def reply(self, type: str, verdict: str) -> None: ...

    def reply_retried(self, type: str) -> None: ...

    def renewal(self, outcome: str) -> None: ...

    def unreported(self, delta: int) -> None: ...

    def render(self) -> bytes:
        return b""


class Metrics:
    """Messages may name any step type, so after `MOST_STEP_TYPES` of them new ones are counted
    together. A series is remembered: to find one takes longer than to count."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, ProcessCollector

        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._metrics = {info.name: _registered(info, self.registry) for info in METRICS}
        self._series: dict[tuple[str, ...], Tell] = {}
        self._step_types: set[str] = set()

    def received(self, lane: int) -> None:
        self._of(RECEIVED, str(lane))(1)

    def finished(
        self, step_type: str, outcome: StepOutcome | str, seconds: float | None = None
    ) -> None:
        label = step_type if step_type in self._step_types else self._step_type(step_type)
        self._of(DIRECTIVES, label, outcome)(1)
        if seconds is not None:
            self._of(STEP_SECONDS, label)(seconds)

    def running(self, delta: int) -> None:
        self._of(RUNNING)(delta)

    def waiting(self, delta: int) -> None:
        self._of(WAITING)(delta)

    def reply(self, type: str, verdict: str) -> None:
        self._of(REPLIES, type, verdict)(1)

    def reply_retried(self, type: str) -> None:
        self._of(REPLY_RETRIES, type)(1)

    def renewal(self, outcome: str) -> None:
        self._of(RENEWALS, outcome)(1)

    def unreported(self, delta: int) -> None:
        self._of(UNREPORTED)(delta)

    def render(self) -> bytes:
        from prometheus_client import generate_latest

        return generate_latest(self.registry)

    def _step_type(self, name: str) -> str:
        if len(self._step_types) >= MOST_STEP_TYPES:
            return OTHER
        self._step_types.add(name)
        return name

    def _of(self, *key: str) -> Tell:
        return self._series.get(key) or self._new_series(*key)

    def _new_series(self, name: str, *labels: str) -> Tell:
        tell = _series(self._metrics[name], labels)
        self._series[(name, *labels)] = tell
        return tell


def _registered(info: MetricInfo, registry: "CollectorRegistry") -> "Counter | Gauge | Histogram":
    from prometheus_client import Counter, Gauge, Histogram

    name, kind, labels, meaning = info
    if kind is Kind.COUNTER:
        return Counter(name, meaning, labels, registry=registry)
    if kind is Kind.GAUGE:
        return Gauge(name, meaning, labels, registry=registry)
    return Histogram(name, meaning, labels, registry=registry, buckets=BUCKETS)


def _series(metric: "Counter | Gauge | Histogram", labels: Iterable[str]) -> Tell:
    from prometheus_client import Histogram

    names = tuple(labels)
    one = metric.labels(*names) if names else metric
    return one.observe if isinstance(one, Histogram) else one.inc
