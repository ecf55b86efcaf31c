"""Reference pages whose every fact stands in the code."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from contract_tests.reports.json_report import schema_text
from docs.generator.artifacts import artifacts_page
from docs.generator.conformance import conformance_page, mock_page
from docs.generator.engine import engine_page
from docs.generator.markdown import defaults, events_table, metrics_table, page, table
from docs.generator.openapi import openapi_document
from docs.generator.operations import operations_page
from docs.generator.schemas import DOCUMENTS, schema_of
from docs.generator.service_operations import service_operations_page
from docs.generator.settings import service_settings_page, settings_page
from lucius_contract.audit import VERDICT_HTTP_STATUS
from lucius_contract.documents import Artifact, Document, Ref
from lucius_contract.errors import ERRORS, WrittenBy
from lucius_contract.messages import CallbackUrls, Capacity, Progress, StepError
from lucius_contract.states import (
    IN_FLIGHT_STEP_STATES,
    JOB_STATUS,
    STEP_STATUS,
    TERMINAL_JOB_STATES,
    TERMINAL_OUTBOX_STATES,
    TERMINAL_STEP_STATES,
    JobState,
    OutboxState,
    StepState,
)
from lucius_contract.timeouts import TIMEOUTS
from lucius_contract.transitions import (
    JOB_TRANSITIONS,
    OUTBOX_TRANSITIONS,
    STEP_TRANSITIONS,
    Transition,
)
from lucius_outbox import DispatchSettings, RetryPolicy, Status
from lucius_outbox import states as outbox_states
from lucius_outbox.message import MAX_LENGTH
from lucius_outbox.redaction import MAX_ERROR
from lucius_outbox.states import LEDGER_NAME, delivery_name
from lucius_outbox.telemetry import EVENTS, METRICS

PARTS: tuple[type[Document], ...] = (Ref, Artifact, StepError, Progress, Capacity, CallbackUrls)


def files() -> Mapping[str, str]:
    return {
        "docs/reference/states.md": _states(),
        "docs/reference/errors.md": _errors(),
        "docs/reference/timeouts.md": _timeouts(),
        "docs/reference/messages.md": _messages(),
        "docs/reference/outbox.md": _outbox(),
        "docs/reference/engine.md": engine_page(),
        "docs/reference/artifacts.md": artifacts_page(_diagram),
        "docs/reference/openapi.json": openapi_document(),
        "docs/reference/settings.md": settings_page(),
        "docs/reference/operations.md": operations_page(),
        "docs/reference/sdk-settings.md": service_settings_page(),
        "docs/reference/sdk-metrics.md": service_operations_page(),
        "docs/reference/conformance.md": conformance_page(),
        "docs/reference/mock-faults.md": mock_page(),
        "contract_tests/reports/conformance-report.schema.json": schema_text(),
    }


def _states() -> str:
    return page(
        "States and transitions",
        "The ledger stores `state`; `status` is derived from it and shown beside it. A transition"
        " that stands in no table below is refused with its reason and recorded.",
        "## Jobs",
        table(
            ("state", "status", ""),
            [(s, JOB_STATUS[s], _terminal(s in TERMINAL_JOB_STATES)) for s in JobState],
        ),
        _diagram(JOB_TRANSITIONS, JobState.QUEUED, TERMINAL_JOB_STATES),
        _transitions(JOB_TRANSITIONS),
        "## Steps",
        table(
            ("state", "status", ""),
            [(s, STEP_STATUS[s], _step_remark(s)) for s in StepState],
        ),
        _diagram(STEP_TRANSITIONS, StepState.PENDING, TERMINAL_STEP_STATES),
        _transitions(STEP_TRANSITIONS),
        "## Outbox rows",
        _diagram(OUTBOX_TRANSITIONS, OutboxState.PENDING, TERMINAL_OUTBOX_STATES),
        _transitions(OUTBOX_TRANSITIONS),
    )


def _errors() -> str:
    def rows(writer: WrittenBy) -> list[tuple[str, ...]]:
        return [
            (f"`{e.code}`", str(e.http_status or "-"), "yes" if e.retryable else "no", e.meaning)
            for e in ERRORS.values()
            if writer in e.written_by
        ]

    header = ("code", "HTTP status", "retry", "meaning")
    return page(
        "Error codes",
        "Codes are stable; programs look at them, people read the message beside them.",
        "## Answers of the API",
        table(header, rows(WrittenBy.API)),
        "## Failures that a service reports",
        "A service may add its own codes: capitals, digits and underscores that begin with its"
        " name, as in `OCR_NO_TEXT` of `ocr` and `PAGE_SPLIT_NO_PAGES` of `page-split`.",
        table(header, rows(WrittenBy.SERVICE)),
        "## Failures that the orchestrator writes",
        table(header, rows(WrittenBy.ORCHESTRATOR)),
        "## Verdicts on replies",
        table(
            ("verdict", "HTTP status"),
            [(f"`{verdict}`", str(status)) for verdict, status in VERDICT_HTTP_STATUS.items()],
        ),
    )


def _timeouts() -> str:
    return page(
        "Timeouts and retries",
        "Defaults; a protocol step may set those that have a field of their own.",
        table(
            ("what", "default", "field of a protocol step", "meaning"),
            [
                (t.name, t.default, f"`{t.step_field}`" if t.step_field else "-", t.meaning)
                for t in TIMEOUTS
            ],
        ),
    )


def _messages() -> str:
    sections: list[str] = []
    for model in DOCUMENTS:
        sections += [f"## {model.__name__.upper()}", str(model.__doc__), _fields(model)]
    sections += ["## Parts of messages"]
    for part in PARTS:
        sections += [f"### {part.__name__}", str(part.__doc__), _fields(part)]
    return page(
        "Messages",
        "JSON in UTF-8. Unknown members are tolerated and kept. Complete JSON Schemas and an"
        " AsyncAPI document are in `lucius_contract/schemas/`.",
        *sections,
    )


def _outbox() -> str:
    return page(
        "Outbox",
        "`lucius_outbox`: how to use it is in [a how-to](../how-to/use-the-outbox.md), why it is"
        " so in [an explanation](../explanation/outbox.md).",
        "## States",
        _diagram(outbox_states.TRANSITIONS, Status.PENDING, (Status.DELIVERED,)),
        _transitions(outbox_states.TRANSITIONS),
        "Two other vocabularies are derived:",
        table(
            ("status", "in the ledger", "in the critical state machines"),
            [(f"`{s}`", f"`{LEDGER_NAME[s]}`", _delivery_names(s)) for s in Status],
        ),
        "## Limits of a message",
        table(
            ("field", "bytes of UTF-8"),
            [(f"`{name}`", str(size)) for name, size in MAX_LENGTH.items()],
        ),
        "Longer ones are refused, as are NUL characters, halves of surrogate pairs, and payloads"
        " that are not JSON. Errors are kept without credentials, at most"
        f" {MAX_ERROR} characters long. A message with a `queue` has no `ordering_key`.",
        "## Settings of a dispatcher",
        table(("setting", "default"), defaults(DispatchSettings())),
        "## Settings of a retry policy",
        table(("setting", "default"), defaults(RetryPolicy())),
        "## Metrics",
        "Exported by `lucius_outbox.prometheus.PrometheusMetrics`; any object with the methods of"
        " `lucius_outbox.telemetry.Metrics` will do.",
        metrics_table(METRICS),
        "## Log events",
        "Records of the logger `lucius_outbox`. The message is the event's name; `namespace`,"
        " `worker_id` (where there is one) and the fields below are attributes of the record.",
        events_table(EVENTS),
    )


def _delivery_names(status: Status) -> str:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    usual = delivery_name(status, 0, now, now)
    waiting = delivery_name(status, 1, now + timedelta(seconds=1), now)
    after = f"; `{waiting}` after a failure, until it is due" if waiting != usual else ""
    return f"`{usual}`{after}"


def _fields(model: type[Document]) -> str:
    schema = schema_of(model)
    required = set(schema.get("required", ()))
    return table(
        ("member", "required", "type", "meaning"),
        [
            (
                f"`{name}`",
                "yes" if name in required else "",
                _type(member),
                member.get("description", ""),
            )
            for name, member in schema["properties"].items()
        ],
    )


def _type(member: dict[str, Any]) -> str:
    if "const" in member:
        return f"`{member['const']}`"
    if "$ref" in member:
        return str(member["$ref"].rsplit("/", 1)[1])
    if "anyOf" in member:
        return _type(next(choice for choice in member["anyOf"] if choice.get("type") != "null"))
    if member["type"] == "array":
        return f"list of {_type(member['items'])}"
    return str(member.get("format", member["type"]))


def _terminal(is_terminal: bool) -> str:
    return "terminal" if is_terminal else ""


def _step_remark(state: StepState) -> str:
    return (
        "in flight" if state in IN_FLIGHT_STEP_STATES else _terminal(state in TERMINAL_STEP_STATES)
    )


def _diagram(
    rules: Sequence[Transition[Any, Any] | outbox_states.Transition],
    initial: StrEnum,
    terminal: Iterable[StrEnum],
) -> str:
    """One arrow per pair of states, named by all that can cause it."""
    causes: dict[tuple[str, str], list[str]] = {}
    for row in rules:
        named = causes.setdefault((row.source, row.target), [])
        if row.trigger not in named:
            named.append(row.trigger)
    arrows = [
        f"    {source} --> {target}: {' / '.join(triggers)}"
        for (source, target), triggers in causes.items()
    ]
    ends = [f"    {state} --> [*]" for state in sorted(terminal)]
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {initial}", *arrows, *ends, "```"]
    return "\n".join(lines)


def _transitions(rules: Sequence[Transition[Any, Any] | outbox_states.Transition]) -> str:
    return table(
        ("from", "trigger", "to", "when"),
        [(f"`{r.source}`", f"`{r.trigger}`", f"`{r.target}`", r.condition) for r in rules],
    )
