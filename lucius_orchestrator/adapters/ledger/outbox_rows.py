"""How OUTBOX rows are written by ledgers that keep text.

What is sent stands in the body; a directive's says whose attempt it is.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import pydantic_core

from lucius_contract.routing import DIRECTIVE_TOPIC_PREFIX, Mode, directive_topic
from lucius_contract.states import OutboxState
from lucius_orchestrator.adapters.ledger.codec import to_json
from lucius_orchestrator.domain.aggregate import Aggregate, Attempt, Engine, ReplyVia
from lucius_orchestrator.domain.decision import DirectiveRow, OutboxKind, OutboxRow, WorkflowRow
from lucius_orchestrator.domain.directive import outbox_id, text_of_body, turn_id
from lucius_orchestrator.ports.ledger import Backlog, DirectiveStatus, Queue, Stored
from lucius_outbox.message import JsonText

NAMESPACES = {kind: f"lucius.{kind.lower()}" for kind in OutboxKind}
NAMESPACES[OutboxKind.TURN] = NAMESPACES[OutboxKind.DIRECTIVE]
"""Of a ledger that keeps its rows in `lucius_outbox`. A TURN stands among DIRECTIVEs and is written
as one, with the mark `turn`, so that the previous release can read it. That publishes none, since
the attempt does not exist."""

QUEUED_KINDS = (OutboxKind.DIRECTIVE, OutboxKind.TURN)

DIRECTIVE_KINDS = (OutboxKind.DIRECTIVE, OutboxKind.INVOCATION)
WORKFLOW_KINDS = (OutboxKind.START, OutboxKind.SIGNAL)
NEVER_REPLAYED = (*DIRECTIVE_KINDS, *WORKFLOW_KINDS)
"""A redrive makes a new job, and a workflow that was lost is started by the ledger's own events."""

NOT_LOOKED_FOR = frozenset({OutboxKind.INVOCATION, OutboxKind.TURN})
"""An INVOCATION is asked for by name, and a TURN is claimed in turn, among DIRECTIVEs."""

LOOKED_FOR = frozenset(NAMESPACES[kind] for kind in OutboxKind if kind is not OutboxKind.INVOCATION)
"""Who claims rows is woken when there are some of these."""

QUEUE_SEPARATOR = "/"
"""Between service, mode and tenant; the first two never hold one."""

_WORKFLOWS = "workflows"


def job_id_of(row: OutboxRow) -> str:
    job_id: str = row.job_id if isinstance(row, WorkflowRow) else row.body["jobId"]
    return job_id


def topic_of(row: OutboxRow) -> str:
    """Only directives are for a bus, which has lanes."""
    return row.topic if isinstance(row, DirectiveRow) else _WORKFLOWS


def payload_of(row: OutboxRow) -> dict[str, Any]:
    """What the outbox keeps of a row beside its topic and kind."""
    # As text: what PostgreSQL's jsonb refuses, a NUL character, is allowed in payloads.
    return {**_around(row), "body": text_of_body(row.body)}


def text_of(row: OutboxRow) -> JsonText:
    """The same, for an outbox that keeps text."""
    return JsonText(f'{to_json(_around(row))[:-1]},"body":{text_of_body(row.body)}}}')


def queue_of(row: OutboxRow) -> str | None:
    """Return the queue that the outbox keeps a row in, which DIRECTIVEs and TURNs have."""
    if row.kind not in QUEUED_KINDS or not isinstance(row, DirectiveRow):
        return None
    body = row.body
    return f"{row.service}{QUEUE_SEPARATOR}{body['mode']}{QUEUE_SEPARATOR}{body['tenant_id']}"


def queue_name(queue: Queue) -> str:
    return QUEUE_SEPARATOR.join((queue.service, queue.mode.value, queue.tenant_id))


def queue_named(name: str) -> Queue:
    service, mode, tenant_id = name.split(QUEUE_SEPARATOR, maxsplit=2)
    return Queue(service, Mode(mode), tenant_id)


def backlog_of(service: str, topic: str, count: int, oldest: datetime) -> Backlog:
    return Backlog(service, int(topic.removeprefix(DIRECTIVE_TOPIC_PREFIX)), count, oldest)


def row_of(kind: OutboxKind, topic: str, payload: Mapping[str, Any]) -> OutboxRow:
    body = payload["body"]
    if isinstance(body, str):
        body = pydantic_core.from_json(body)
    created_at = datetime.fromisoformat(payload["created_at"])
    if kind in WORKFLOW_KINDS:
        return WorkflowRow(payload["outbox_id"], payload["job_id"], body, created_at, kind)
    attempt = body["jobId"], body["stepId"], body["attempt_no"]
    if payload.get("turn"):
        kind = OutboxKind.TURN
    return DirectiveRow(
        turn_id(*attempt) if kind is OutboxKind.TURN else outbox_id(*attempt),
        body["stepId"],
        body["attempt_no"],
        body["lease_id"],
        payload["service"],
        topic,
        payload["partition_key"],
        payload["message_id"],
        body,
        ReplyVia(payload["reply_via"]),
        created_at,
        datetime.fromisoformat(payload["expires_at"]),
        kind,
    )


class Named(NamedTuple):
    """An attempt, and by which name the outbox has its directive."""

    attempt: Attempt
    topic: str
    outbox_id: str


def named(stored: Stored | None, step_id: str, attempt_no: int) -> Named | None:
    """None: the job has no such attempt."""
    step = stored.aggregate.step(step_id) if stored else None
    attempt = step.attempt(attempt_no) if step else None
    if stored is None or attempt is None:
        return None
    name = outbox_id(stored.aggregate.job.job_id, step_id, attempt_no)
    return Named(attempt, directive_topic(attempt.route.lane), name)


def named_rows(aggregate: Aggregate) -> dict[OutboxKind, list[str]]:
    """Return ids of rows that a job may have and that may never have ended: INVOCATIONs that were
    not asked for, and TURNs, also of the attempt that never came."""
    if aggregate.job.engine is not Engine.TEMPORAL:
        return {}
    job_id, steps = aggregate.job.job_id, aggregate.steps
    made = [(step.step_id, n) for step in steps for n in range(1, step.attempt_no + 1)]
    following = [(step.step_id, step.attempt_no + 1) for step in steps]
    return {
        OutboxKind.INVOCATION: [outbox_id(job_id, *attempt) for attempt in made],
        OutboxKind.TURN: [turn_id(job_id, *attempt) for attempt in (*made, *following)],
    }


def kind_as_written(row: OutboxRow) -> OutboxKind:
    return OutboxKind.DIRECTIVE if row.kind is OutboxKind.TURN else row.kind


def as_seen_by(attempt: Attempt, status: DirectiveStatus) -> DirectiveStatus:
    """The outbox knows only that a row is done with; it was sent if the attempt says so."""
    if status.state is OutboxState.SENT and attempt.sent_at is None:
        return status._replace(state=OutboxState.SUPERSEDED)
    return status


def _around(row: OutboxRow) -> dict[str, Any]:
    created_at = row.created_at.isoformat()
    if isinstance(row, WorkflowRow):
        return {"outbox_id": row.outbox_id, "job_id": row.job_id, "created_at": created_at}
    around = {
        "service": row.service,
        "partition_key": row.partition_key,
        "message_id": row.message_id,
        "reply_via": row.reply_via.value,
        "created_at": created_at,
        "expires_at": row.expires_at.isoformat(),
    }
    return {**around, "turn": True} if row.kind is OutboxKind.TURN else around
