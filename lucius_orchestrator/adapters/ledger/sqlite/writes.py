"""The verbs that write, each inside a transaction that the group commit has begun."""

import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from lucius_contract.states import TERMINAL_JOB_STATES
from lucius_orchestrator.adapters.ledger import codec
from lucius_orchestrator.adapters.ledger.sqlite import columns
from lucius_orchestrator.adapters.ledger.sqlite import statements as sql
from lucius_orchestrator.adapters.ledger.sqlite.columns import STEPS_PER_JOB, SqliteVersion
from lucius_orchestrator.adapters.ledger.sqlite.directives import (
    NO_BIRTHS,
    Births,
    SqliteDirectives,
)
from lucius_orchestrator.domain.aggregate import Aggregate, Job
from lucius_orchestrator.domain.decision import AuditEvent, Decision, apply
from lucius_orchestrator.domain.timers import Due, next_due
from lucius_orchestrator.ports.ledger import (
    Claim,
    Conflict,
    Created,
    DeadLetterRow,
    IdempotencyConflict,
    Limits,
    NewJob,
    Repair,
    Reservation,
    Saturated,
    Scope,
    Stored,
    TrafficReport,
    dead_letter_rows,
    timer_after,
)
from lucius_orchestrator.ports.webhooks import webhooks_of
from lucius_outbox.sqlite.enqueueing import enqueue_all
from lucius_outbox.sqlite.times import microseconds

Connection = sqlite3.Connection


def create(
    transaction: Connection,
    directives: SqliteDirectives,
    reservation: Reservation,
    build: Callable[[str], NewJob],
    limits: Limits,
) -> tuple[Created, Births]:
    job_id, entry = reservation.job_id, reservation.entry
    earlier = _earlier(transaction, reservation)
    if earlier is not None:
        return earlier, NO_BIRTHS
    aggregate, decision = build(job_id)
    _take_slots(transaction, aggregate.job, limits)
    transaction.execute(sql.RESERVE, reservation)
    due = next_due(aggregate)
    job_no = _insert(transaction, aggregate, entry, due)
    _write_events(transaction, job_no, decision.events)
    version = SqliteVersion(job_no, 1)
    births = directives.enqueue(transaction, decision.outbox, version)
    return Created(job_id, Stored(aggregate, version, due)), births


def commit(
    transaction: Connection,
    directives: SqliteDirectives,
    stored: Stored,
    decision: Decision,
    claim: Claim | None,
) -> tuple[Stored, Births]:
    version = _version(stored)
    following, births = SqliteVersion(version.job_no, version.number + 1), NO_BIRTHS
    after = apply(stored.aggregate, decision)
    due = timer_after(stored.timer, after)
    changes: dict[str, Any] = dict(decision.job)
    values = columns.encoded(changes)
    if due != stored.timer:
        changes |= {"due_at": None, "due_kind": None}
        values += columns.due_values(due)
    _update_job(transaction, stored, version, tuple(changes), values)
    for index, step in decision.steps.items():
        statement = sql.update_step(tuple(step))
        step_no = STEPS_PER_JOB * version.job_no + index
        transaction.execute(statement, [*columns.encoded(step), step_no])
    _write_events(transaction, version.job_no, decision.events)
    if decision.outbox:
        births = directives.enqueue(transaction, decision.outbox, following)
    if decision.marks:
        directives.settle(transaction, decision.marks, claim)
    if decision.dead_letters:
        for letter in dead_letter_rows(after.job, decision.dead_letters):
            bury(transaction, letter)
    if _ends(stored.aggregate, after):
        _end(transaction, after.job)
    return Stored(after, following, due), births


def reschedule(transaction: Connection, stored: Stored, due: Due | None) -> Stored:
    version, due = _version(stored), due or next_due(stored.aggregate)
    _update_job(transaction, stored, version, ("due_at", "due_kind"), columns.due_values(due))
    return Stored(stored.aggregate, SqliteVersion(version.job_no, version.number + 1), due)


def remove(transaction: Connection, directives: SqliteDirectives, stored: Stored) -> None:
    job, (job_no, number) = stored.aggregate.job, _version(stored)
    transaction.execute(sql.UNRESERVE, (job.tenant_id, job.job_id, job_no))
    if not transaction.execute(sql.DELETE_JOB, (job_no, number, job.job_id)).rowcount:
        if transaction.execute(sql.EXISTS, (job.job_id,)).fetchone():
            raise Conflict(job.job_id)
        return
    transaction.execute(sql.DELETE_PLAN, (job_no,))
    transaction.execute(sql.DELETE_STEPS, (job_no, job_no))
    transaction.execute(sql.DELETE_EVENTS, (job_no,))
    directives.forget(transaction, stored.aggregate)


def bury(transaction: Connection, letter: DeadLetterRow) -> bool:
    values = columns.letter_values(letter)
    if transaction.execute(sql.BURY, values).rowcount:
        return True
    transaction.execute(sql.BURY_AGAIN, (microseconds(letter.last_at), letter.id))
    return False


def mark_redriven(transaction: Connection, job_id: str, by: str) -> int:
    return transaction.execute(sql.REDRIVEN, (by, job_id)).rowcount


def repair(transaction: Connection, limit: int) -> list[Repair]:
    """Counters are the one index that is not a column of the job: count again."""
    repairs = []
    for scope, name, counted, open_jobs in transaction.execute(sql.MISCOUNTED, (limit,)).fetchall():
        if scope == Scope.TENANT and open_jobs == 0:
            transaction.execute(sql.FORGET_TENANT, (name,))
        else:
            transaction.execute(sql.RECOUNT, (scope, name, open_jobs))
        if counted != open_jobs:
            repairs.append(Repair("in_flight", f"{scope} {name}", str(counted), str(open_jobs)))
    return repairs


def _earlier(transaction: Connection, reservation: Reservation) -> Created | None:
    entry = (reservation.tenant_id, reservation.entry)
    found = transaction.execute(sql.FIND, entry).fetchone()
    if found is None:
        return None
    job_id, content_hash = found
    if content_hash != reservation.content_hash:
        raise IdempotencyConflict(job_id)
    return Created(job_id, None)


def _take_slots(transaction: Connection, job: Job, limits: Limits) -> None:
    """All of them, or none and nothing changed: what is refused most often is refused cheaply."""
    slots, in_order = _slots(job), (limits.tenant, limits.mode, limits.total)
    for (scope, name), limit in zip(slots, in_order, strict=True):
        if limit is not None and _taken(transaction, scope, name) >= limit:
            raise Saturated(scope)
    transaction.execute(sql.TAKE_SLOTS, (job.tenant_id, str(job.route.mode)))


def _taken(transaction: Connection, scope: Scope, name: str) -> int:
    found = transaction.execute(sql.TAKEN, (scope.value, name)).fetchone()
    return int(found[0]) if found else 0


def _slots(job: Job) -> tuple[tuple[Scope, str], ...]:
    """Where a job in flight is counted."""
    mode = job.route.mode.value
    return (Scope.TENANT, job.tenant_id), (Scope.MODE, mode), (Scope.GLOBAL, "")


def _end(transaction: Connection, job: Job) -> None:
    slots = [(scope.value, name) for scope, name in _slots(job)]
    transaction.executemany(sql.GIVE_SLOT, slots)
    if job.callback_urls:
        enqueue_all(transaction, webhooks_of(job))


def _insert(transaction: Connection, aggregate: Aggregate, entry: str, due: Due | None) -> int:
    job = aggregate.job
    head = (job.job_id, 1, job.tenant_id, job.request_type, job.route.mode.value, job.engine.value)
    times = (*columns.due_values(due), microseconds(job.created_at))
    row = (*head, entry, *times, *columns.job_values(job))
    job_no = transaction.execute(sql.INSERT_JOB, row).lastrowid
    assert job_no is not None, "an insert gives a row number"
    transaction.execute(sql.INSERT_PLAN, (job_no, codec.encode_plan(aggregate)))
    transaction.executemany(
        sql.INSERT_STEP,
        [
            (STEPS_PER_JOB * job_no + step.step_index, *columns.step_values(step))
            for step in aggregate.steps
        ],
    )
    return job_no


def publish_report(transaction: Connection, report: TrafficReport) -> None:
    values = (report.process_id, microseconds(report.at), report.document)
    transaction.execute(sql.PUBLISH_REPORT, values)


def withdraw_report(transaction: Connection, process_id: str) -> None:
    transaction.execute(sql.WITHDRAW_REPORT, (process_id,))


def prune(
    transaction: Connection, directives: SqliteDirectives, before: datetime, limit: int
) -> int:
    pruned = directives.prune(transaction, before, limit)
    reports = (microseconds(before), limit - pruned)
    return pruned + transaction.execute(sql.PRUNE_REPORTS, reports).rowcount


def _update_job(
    transaction: Connection,
    stored: Stored,
    version: SqliteVersion,
    names: tuple[str, ...],
    values: Sequence[Any],
) -> None:
    job_id = stored.aggregate.job.job_id
    statement = sql.update_job(names)
    if not transaction.execute(statement, (*values, *version, job_id)).rowcount:
        raise Conflict(job_id)


def _write_events(transaction: Connection, job_no: int, events: Sequence[AuditEvent]) -> None:
    if events:
        row = (job_no, events[-1].seq, codec.encode_events(events))
        transaction.execute(sql.INSERT_EVENTS, row)


def _ends(before: Aggregate, after: Aggregate) -> bool:
    return after.job.state in TERMINAL_JOB_STATES and before.job.state not in TERMINAL_JOB_STATES


def _version(stored: Stored) -> SqliteVersion:
    assert isinstance(stored.version, SqliteVersion), "a version of this ledger"
    return stored.version
