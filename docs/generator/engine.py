"""The engine's reference page."""

import inspect
from collections.abc import Iterator

from docs.generator.markdown import defaults, events_table, metrics_table, page, table
from lucius_contract.timeouts import RECOVERY_GRACE
from lucius_orchestrator.engine.engine import EngineSettings
from lucius_orchestrator.engine.telemetry import EVENTS, METRICS
from lucius_orchestrator.outbox.dispatcher import DispatcherSettings
from lucius_orchestrator.ports.ledger import Ledger
from lucius_orchestrator.replies.consumer import ConsumerSettings
from lucius_orchestrator.sweepers.runner import SWEEPERS
from lucius_orchestrator.sweepers.sweeper import SweepSettings


def engine_page() -> str:
    return page(
        "Engine",
        "The ledger engine: why it is so is in [an explanation](../explanation/engine.md), how its"
        " parts are put together in [a tutorial](../tutorials/engine-in-one-process.md).",
        "## Sweepers",
        f"Some wait {RECOVERY_GRACE.total_seconds():.0f} s after a start, so that replies which"
        " came meanwhile are heard first.",
        table(("name", "looks for", "every", "waits after a start"), _sweepers()),
        "## Settings",
        "Of the engine:",
        table(("setting", "default"), defaults(EngineSettings())),
        "Of the dispatcher:",
        table(("setting", "default"), defaults(DispatcherSettings())),
        "Of the reply consumer, per lane:",
        table(("setting", "default"), _without_lanes()),
        "Of the sweepers:",
        table(("setting", "default"), defaults(SweepSettings())),
        "## Verbs of a ledger",
        "What every backend must be able to do, and what the conformance suite asks of it.",
        table(("verb", "contract"), _verbs()),
        "## Metrics",
        "Any object with the methods of `lucius_outbox.telemetry.Metrics` takes them.",
        metrics_table(METRICS),
        "## Log events",
        "Records of the logger `lucius_orchestrator`. The message is the event's name; the fields"
        " are attributes of the record.",
        events_table(EVENTS),
    )


def _sweepers() -> Iterator[tuple[str, ...]]:
    for sweeper in SWEEPERS:
        module = inspect.getmodule(sweeper)
        meaning = (module.__doc__ or "").partition("\n")[0] if module else ""
        every = f"{sweeper.interval.total_seconds():g} s"
        yield f"`{sweeper.name}`", meaning, every, "yes" if sweeper.waits_for_recovery else "no"


def _without_lanes() -> list[tuple[str, str]]:
    return [row for row in defaults(ConsumerSettings()) if "lanes" not in row[0]]


def _verbs() -> Iterator[tuple[str, str]]:
    for name, verb in vars(Ledger).items():
        if inspect.iscoroutinefunction(verb):
            yield f"`{name}`", " ".join((inspect.getdoc(verb) or "").split())
