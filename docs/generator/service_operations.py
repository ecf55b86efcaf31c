"""The reference page of what operators see of a service."""

from docs.generator.markdown import codes, events_table, metrics_table, page, table
from lucius_sdk import health, readiness, tracing
from lucius_sdk.logs import STEP_FIELDS
from lucius_sdk.metrics import METRICS
from lucius_sdk.runtime import events


def service_operations_page() -> str:
    return page(
        "Operation of a service",
        "What a service that is built with the SDK shows while it runs, at the address that"
        " [its settings](sdk-settings.md) name.",
        "## Health",
        table(("path", "answer"), _paths()),
        f"What a service needs is looked at every {readiness.INTERVAL:g} s; what has not answered"
        f" for {readiness.PATIENCE:g} s counts as away.",
        "## Metrics",
        metrics_table(METRICS),
        "## Log events",
        "Every line has `time`, `level`, `logger`, `event` and `correlation_id`. While a directive"
        f" is worked on it has {codes(STEP_FIELDS)}, whoever writes it.",
        events_table((*events.EVENTS, *health.EVENTS, *tracing.EVENTS)),
    )


def _paths() -> list[tuple[str, str]]:
    return [
        (f"`{health.LIVE}`", "200 while the process works; 503 when it has stopped."),
        (
            f"`{health.READY}`",
            "200 when all that the service needs is there; 503 when something is not, or when it is"
            " about to stop. The body names each.",
        ),
        (f"`{health.METRICS}`", "The metrics, in the text format of Prometheus."),
    ]
