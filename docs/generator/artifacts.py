"""The reference page of artifacts."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

from docs.generator.markdown import defaults, page, table
from lucius_artifacts.collection import Schedule
from lucius_artifacts.events import NAMESPACE, EventType
from lucius_artifacts.ports.catalogue import Catalogue, Reader, Transaction
from lucius_artifacts.ports.objects import Objects
from lucius_artifacts.states import (
    BLOB_TRANSITIONS,
    UPLOAD_TRANSITIONS,
    VERSION_TRANSITIONS,
    BlobState,
    Transition,
    UploadState,
    VersionState,
)
from lucius_artifacts.world import Limits

Diagram = Callable[[Any, StrEnum, Iterable[StrEnum]], str]


def artifacts_page(diagram: Diagram) -> str:
    return page(
        "Artifacts",
        "Uploads, versions and deletion: how to use them is in"
        " [a how-to](../how-to/keep-documents-as-artifacts.md), why they are so in"
        " [an explanation](../explanation/artifacts.md). A transition that stands in no table below"
        " is refused with its reason.",
        "## Uploads",
        *_machine(
            diagram,
            UPLOAD_TRANSITIONS,
            UploadState.INITIATED,
            (UploadState.COMMITTED, UploadState.ABORTED),
        ),
        "## Versions",
        *_machine(diagram, VERSION_TRANSITIONS, VersionState.DRAFT, ()),
        "## Blobs",
        *_machine(diagram, BLOB_TRANSITIONS, BlobState.LIVE, (BlobState.DELETED,)),
        "Rows with an asterisk are ours; all others are those of the description that they come"
        " from.",
        "## Events",
        f"Each is written to the outbox in the transaction that it tells of, in the namespace"
        f" `{NAMESPACE}`, with its type as the topic:"
        f" {', '.join(f'`{kind}`' for kind in EventType)}. Its payload has `event_id`, `type`,"
        " `occurred_at` and what it is about. It may come more than once: `event_id` tells.",
        "## Limits and times",
        "Some are [settings](settings.md); these are the defaults.",
        table(("limit", "default"), defaults(Limits())),
        "Of the collector:",
        table(("setting", "default"), defaults(Schedule())),
        "## Verbs of a catalogue",
        "What every backend must be able to do, and what the conformance suite asks of it.",
        table(("verb", "contract"), _verbs(Catalogue)),
        "Inside a transaction, to read:",
        table(("verb", "contract"), _verbs(Reader)),
        "and to write:",
        table(("verb", "contract"), _verbs(Transaction)),
        "## Verbs of an object store",
        table(("verb", "contract"), _verbs(Objects)),
        "Metrics and log events stand among those of [the control plane](operations.md).",
    )


def _machine(
    diagram: Diagram,
    rows: Sequence[Transition[Any, Any]],
    initial: StrEnum,
    terminal: Iterable[StrEnum],
) -> tuple[str, str]:
    header = ("from", "command", "guard", "to", "effects")
    return diagram(rows, initial, terminal), table(header, [_cells(row) for row in rows])


def _cells(row: Transition[Any, Any]) -> tuple[str, ...]:
    mark = " \\*" if row.ours else ""
    trigger = f"`{row.trigger}`{mark}"
    return f"`{row.source}`", trigger, row.guard, f"`{row.target}`", row.effect


def _verbs(port: type) -> Iterator[tuple[str, str]]:
    for name, verb in vars(port).items():
        if inspect.isfunction(verb) and not name.startswith("_"):
            yield f"`{name}`", " ".join((inspect.getdoc(verb) or "").split())
