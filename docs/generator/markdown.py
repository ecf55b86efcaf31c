"""What pages are made of."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from lucius_outbox.telemetry import EventInfo, MetricInfo

_GENERATED = "<!-- Made from the code by `make generate`; edit the code, not this page. -->\n"


def page(title: str, *parts: str) -> str:
    return "\n\n".join([_GENERATED + f"# {title}", *parts]) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def defaults(settings: Any) -> list[tuple[str, str]]:
    return [(f"`{f.name}`", f"`{getattr(settings, f.name)}`") for f in fields(settings)]


def metrics_table(metrics: Iterable[MetricInfo]) -> str:
    return table(
        ("name", "kind", "labels", "meaning"),
        [(f"`{m.name}`", m.kind, codes(m.labels) or "-", m.meaning) for m in metrics],
    )


def events_table(events: Iterable[EventInfo]) -> str:
    return table(
        ("event", "level", "fields", "meaning"),
        [(f"`{e.name}`", e.level, codes(e.fields) or "-", e.meaning) for e in events],
    )
