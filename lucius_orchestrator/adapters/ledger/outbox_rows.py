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
from lucius_orchestrator.domain.directive import outbox_id
from lucius_orchestrator.ports.ledger import Backlog, DirectiveStatus, Queue, Stored
from lucius_outbox.message import JsonText

NAMESPACES = {kind: f"lucius.{kind.lower()}" for kind in OutboxKind}
"""Of a ledger that keeps its rows in `lucius_outbox`."""

DIRECTIVE_KINDS = (OutboxKind.DIRECTIVE, OutboxKind.INVOCATION)
WORKFLOW_KINDS = (OutboxKind.START, OutboxKind.SIGNAL)
NEVER_REPLAYED = (*DIRECTIVE_KINDS, *WORKFLOW_KINDS)
"""A redrive makes a new job, and a workflow that was lost is started by the ledger's own events."""

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
    return {**_around(row), "body": to_json(row.body)}


def text_of(row: OutboxRow) -> JsonText:
    """The same, for an outbox that keeps text."""
    return JsonText(f'{to_json(_around(row))[:-1]},"body":{to_json(row.body)}}}')


def queue_of(row: OutboxRow) -> str | None:
    """Return the queue that the outbox keeps a DIRECTIVE in; rows of other kinds have none."""
    if not isinstance(row, DirectiveRow) or row.kind is not OutboxKind.DIRECTIVE:
        return None
    return queue_name(Queue(row.service, Mode(row.body["mode"]), row.body["tenant_id"]))


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
    return DirectiveRow(
        outbox_id(body["jobId"], body["stepId"], body["attempt_no"]),
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


def invocations(aggregate: Aggregate) -> list[str]:
    """Ids of those that the job may have had. If nobody asked for one, nobody has ended it."""
    if aggregate.job.engine is not Engine.TEMPORAL:
        return []
    return [
        outbox_id(aggregate.job.job_id, step.step_id, attempt.attempt_no)
        for step in aggregate.steps
        for attempt in step.attempts
    ]


def as_seen_by(attempt: Attempt, status: DirectiveStatus) -> DirectiveStatus:
    """The outbox knows only that a row is done with; it was sent if the attempt says so."""
    if status.state is OutboxState.SENT and attempt.sent_at is None:
        return status._replace(state=OutboxState.SUPERSEDED)
    return status


def _around(row: OutboxRow) -> dict[str, Any]:
    created_at = row.created_at.isoformat()
    if isinstance(row, WorkflowRow):
        return {"outbox_id": row.outbox_id, "job_id": row.job_id, "created_at": created_at}
    return {
        "service": row.service,
        "partition_key": row.partition_key,
        "message_id": row.message_id,
        "reply_via": row.reply_via.value,
        "created_at": created_at,
        "expires_at": row.expires_at.isoformat(),
    }
