"""The reference page of what operators see and grant."""

from collections.abc import Iterator

from docs.generator.markdown import codes, events_table, metrics_table, page, table
from lucius_artifacts import telemetry as artifacts
from lucius_orchestrator.adapters.registry import events as registry
from lucius_orchestrator.api import edge, health
from lucius_orchestrator.bootstrap import dev_server, serving, topology_keeper
from lucius_orchestrator.observability import tables
from lucius_orchestrator.security import events as security
from lucius_orchestrator.security.callers import ACROSS_TENANTS, NEEDS, Role, Verb


def operations_page() -> str:
    return page(
        "Operations",
        "What a running control plane shows, and which roles it asks for. How to run one is in"
        " [a how-to](../how-to/run-the-control-plane.md); the metrics and events of the engine"
        " itself are on [its own page](engine.md), those of the outbox on"
        " [the outbox's](outbox.md).",
        "## Roles",
        "One of the roles is enough. A caller sees its own tenants only; where *all* is said, it"
        " must see all of them.",
        table(("what", "roles", "tenants"), _verbs()),
        "## Metrics",
        metrics_table((*tables.METRICS, *artifacts.COUNTERS, *artifacts.GAUGES)),
        "## Log events",
        "Every line has `time`, `level`, `logger`, `event` and `correlation_id`, and these fields:",
        events_table(
            (
                *serving.EVENTS,
                *topology_keeper.EVENTS,
                *dev_server.EVENTS,
                *registry.EVENTS,
                *edge.EVENTS,
                *health.EVENTS,
                *tables.EVENTS,
                *artifacts.EVENTS,
                *security.EVENTS,
            )
        ),
    )


def _verbs() -> Iterator[tuple[str, str, str]]:
    for verb, enough in NEEDS.items():
        yield _spoken(verb), codes(role for role in Role if role in enough), _tenants(verb)


def _spoken(verb: Verb) -> str:
    return verb.replace("_", " ")


def _tenants(verb: Verb) -> str:
    return "all" if verb in ACROSS_TENANTS else "its own"
