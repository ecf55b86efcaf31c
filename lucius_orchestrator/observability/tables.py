"""What an operator sees of the process around the engine: metrics and log events, as data.

The engine's own are in `lucius_orchestrator.engine.telemetry`.
"""

from lucius_outbox.telemetry import EventInfo, Kind, MetricInfo

HTTP_REQUESTS = "lucius_http_requests_total"
HTTP_SECONDS = "lucius_http_seconds"
INFLIGHT = "lucius_inflight"
INFLIGHT_JOBS = "lucius_inflight_jobs"
BACKLOG = "lucius_outbox_backlog"
LEDGER_UP = "lucius_ledger_up"
SERVICE_WAITING = "lucius_service_waiting"
SERVICE_OLDEST = "lucius_service_oldest_waiting_seconds"
SERVICE_UNACKNOWLEDGED = "lucius_service_unacknowledged"
SERVICE_WORKING = "lucius_service_working"
SERVICE_WINDOW = "lucius_service_window"
SERVICE_ABSENT = "lucius_service_absent"
SERVICE_HEARD = "lucius_service_heard_seconds"

HTTP_METRICS: tuple[MetricInfo, ...] = (
    MetricInfo(
        HTTP_REQUESTS,
        Kind.COUNTER,
        ("method", "route", "status"),
        "Requests answered, by the route's template; `none` is a client that did not wait.",
    ),
    MetricInfo(
        HTTP_SECONDS, Kind.HISTOGRAM, ("route",), "From a request to the end of its answer."
    ),
)

LEDGER_GAUGES: tuple[MetricInfo, ...] = (
    MetricInfo(INFLIGHT, Kind.GAUGE, ("mode",), "Jobs that are not terminal, by mode."),
    MetricInfo(INFLIGHT_JOBS, Kind.GAUGE, (), "Jobs that are not terminal, of all modes."),
    MetricInfo(BACKLOG, Kind.GAUGE, ("lane",), "Directives that are not published yet, by lane."),
    MetricInfo(
        LEDGER_UP,
        Kind.GAUGE,
        (),
        "Whether the ledger answered when it was last looked at. While it does not, what is read"
        " from it is absent rather than old.",
    ),
)


def _of_service(name: str, meaning: str) -> MetricInfo:
    return MetricInfo(name, Kind.GAUGE, ("service",), meaning)


SERVICE_GAUGES: tuple[MetricInfo, ...] = (
    _of_service(SERVICE_WAITING, "Directives that are not published yet."),
    _of_service(SERVICE_OLDEST, "For how long the one that waits longest has waited, or 0."),
    _of_service(SERVICE_UNACKNOWLEDGED, "Directives that were published and not acknowledged."),
    _of_service(SERVICE_WORKING, "Directives that were acknowledged and have no RESULT yet."),
    _of_service(SERVICE_WINDOW, "How many directives may be unacknowledged at a time."),
    _of_service(
        SERVICE_ABSENT,
        "1 while nothing is heard from a service that did not acknowledge a directive in time."
        " Alert on it.",
    ),
    _of_service(
        SERVICE_HEARD,
        "Since anything was heard from the service; absent if nothing ever was. Services without"
        " work say nothing.",
    ),
)

METRICS: tuple[MetricInfo, ...] = (*HTTP_METRICS, *LEDGER_GAUGES, *SERVICE_GAUGES)

EVENTS: tuple[EventInfo, ...] = (
    EventInfo(
        "http.access",
        "INFO",
        ("client", "method", "path", "status"),
        "A request was answered. Those for the health endpoints are left out.",
    ),
    EventInfo(
        "gauges.stale",
        "WARNING",
        ("error",),
        "The ledger, or the catalogue of artifacts, could not be read; its gauges are absent.",
    ),
    EventInfo("gauges.fresh", "INFO", (), "It can be read again."),
    EventInfo("temporal.away", "WARNING", ("error",), "No workflow runs here; told once."),
    EventInfo(
        "workflow.attempt_delayed",
        "WARNING",
        ("jobId", "stepId", "tenant_id", "attempt_no", "error"),
        "An attempt could not be opened at once; Temporal tries again.",
    ),
    EventInfo(
        "workflow.invoker_away", "WARNING", ("jobId", "code", "error"), "A call is made again."
    ),
    EventInfo(
        "workflow.call_refused",
        "WARNING",
        ("jobId", "code", "error"),
        "The invoker refuses a call, perhaps its credential; it is made again.",
    ),
    EventInfo(
        "workflow.answer_malformed",
        "WARNING",
        ("jobId", "stepId", "tenant_id", "attempt_no", "error"),
        "The invoker's answer does not say what comes next; it is asked again.",
    ),
    EventInfo(
        "workflow.signal_malformed",
        "WARNING",
        ("jobId", "stepId", "tenant_id", "attempt_no", "signal", "error"),
        "A signal does not say what comes next, and is ignored.",
    ),
    EventInfo(
        "workflow.signal_unknown",
        "WARNING",
        ("jobId", "stepId", "tenant_id", "attempt_no", "signal"),
        "A signal that this release does not know, and ignores.",
    ),
    EventInfo("tracing.failed", "WARNING", ("error",), "Spans are not recorded; told once."),
    EventInfo(
        "tracing.unsupported",
        "WARNING",
        ("protocol",),
        "Spans go out over HTTP with protobuf only.",
    ),
)
