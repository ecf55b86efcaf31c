"""The verbs that write.

What fits into one statement is one, without a transaction around it: its locks never wait for a
client. In a transaction all take locks in one order: the entry, the job, its OUTBOX rows, and last
the counters of the tenant, the mode and all. Everybody wants these, so their statements travel with
the commit.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from lucius_contract.routing import directive_topic
from lucius_contract.states import TERMINAL_JOB_STATES
from lucius_orchestrator.adapters.ledger import codec
from lucius_orchestrator.adapters.ledger.outbox_rows import NAMESPACES, named_rows
from lucius_orchestrator.adapters.ledger.postgres import columns, reads
from lucius_orchestrator.adapters.ledger.postgres import statements as sql
from lucius_orchestrator.adapters.ledger.postgres.columns import text
from lucius_orchestrator.adapters.ledger.postgres.connections import Connection, Transaction
from lucius_orchestrator.adapters.ledger.postgres.directives import PostgresDirectives
from lucius_orchestrator.domain.aggregate import Aggregate, Job
from lucius_orchestrator.domain.decision import Decision, OutboxKind, apply
from lucius_orchestrator.domain.timers import Due, next_due
from lucius_orchestrator.ports.ledger import (
    Claim,
    Conflict,
    Created,
    DeadLetterRow,
    Found,
    IdempotencyConflict,
    InFlight,
    LedgerUnavailable,
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
from lucius_outbox.postgres.enqueueing import enqueue_all

_TRIES = 5
Slot = tuple[Scope, str, int | None]


async def create(
    transaction: Transaction,
    directives: PostgresDirectives,
    reservation: Reservation,
    build: Callable[[str], NewJob],
    limits: Limits,
) -> Created:
    connection, job_id = transaction.connection, reservation.job_id
    earlier, in_flight = await _reserve(connection, reservation)
    if earlier is not None:
        return _answer(earlier, reservation)
    aggregate, decision = build(job_id)
    slots = list(_slots(aggregate.job, limits))
    _refuse_if_full(in_flight, aggregate.job, slots)
    due = next_due(aggregate)
    await _insert(connection, reservation, NewJob(aggregate, decision), due)
    if decision.outbox:
        await directives.enqueue(connection, decision.outbox)
    for scope, name, limit in slots:
        transaction.at_the_end(sql.TAKE_SLOT, scope.value, name, limit)
    return Created(job_id, Stored(aggregate, 1, due))


async def commit(connection: Connection, stored: Stored, decision: Decision) -> Stored:
    """A decision that writes nothing to the outbox."""
    ends = _ends(stored.aggregate, decision)
    return await _update(connection, stored, decision, slots=ends)


async def commit_with_outbox(
    transaction: Transaction,
    directives: PostgresDirectives,
    stored: Stored,
    decision: Decision,
    claim: Claim | None,
) -> Stored:
    connection = transaction.connection
    committed = await _update(connection, stored, decision, slots=False)
    if decision.marks:
        await directives.settle(connection, decision.marks, claim)
    if decision.outbox:
        await directives.enqueue(connection, decision.outbox)
    elif decision.wakes_dispatcher:
        await directives.wake(connection, OutboxKind.DIRECTIVE)
    if _ends(stored.aggregate, decision):
        await _end(transaction, committed.aggregate.job)
    return committed


def tells(stored: Stored, decision: Decision) -> bool:
    """Whether the decision ends a job that has somebody to be told of it."""
    return bool(stored.aggregate.job.callback_urls) and _ends(stored.aggregate, decision)


async def reschedule(connection: Connection, stored: Stored, due: Due | None) -> Stored:
    job_id, due = stored.aggregate.job.job_id, due or next_due(stored.aggregate)
    values = [*columns.due_values(due), job_id, stored.version]
    version = await _moved(connection, job_id, sql.update(("due_at", "due_kind")), values)
    return Stored(stored.aggregate, version, due)


async def remove(connection: Connection, stored: Stored) -> None:
    job = stored.aggregate.job
    job_id, named = job.job_id, named_rows(stored.aggregate)
    values = {
        "job_id": job_id,
        "version": stored.version,
        "namespaces": [NAMESPACES[kind] for kind in named],
        "topic": directive_topic(job.route.lane),
        "names": [name for names in named.values() for name in names],
    }
    if (await connection.execute(sql.REMOVE, values)).rowcount:
        return
    if (await connection.execute(sql.EXISTS, (job_id,))).rowcount:
        raise Conflict(job_id)


async def bury(connection: Connection, letter: DeadLetterRow) -> bool:
    cursor = await connection.execute(sql.BURY, columns.letter_values(letter))
    return await cursor.fetchone() == (True,)


async def mark_redriven(connection: Connection, job_id: str, by: str) -> int:
    return (await connection.execute(sql.REDRIVEN, (text(by), text(job_id)))).rowcount


async def miscounted(connection: Connection, limit: int) -> list[Any]:
    """Counters are the one index that is not a column of the job. Those of tenants without jobs are
    forgotten on the way."""
    await connection.execute(sql.FORGET_TENANTS, (limit,))
    return await (await connection.execute(sql.MISCOUNTED, (limit,))).fetchall()


async def recount(transaction: Transaction, limit: int) -> list[Repair]:
    connection, repairs = transaction.connection, []
    await connection.execute(sql.LOCK_SLOTS)
    for scope, name, counted, open_jobs in await miscounted(connection, limit):
        await connection.execute(sql.RECOUNT, (scope, name, open_jobs))
        key = f"{scope} {columns.text_of(name)}"
        repairs.append(Repair("in_flight", key, str(counted), str(open_jobs)))
    return repairs


async def _reserve(
    connection: Connection, reservation: Reservation
) -> tuple[Found | None, InFlight]:
    """None: the entry is ours. It may be removed between our insert and our look, but hardly ever
    again and again."""
    tenant_id, entry, content_hash, job_id = reservation
    values = {
        "tenant_id": text(tenant_id),
        "entry": text(entry),
        "content_hash": content_hash,
        "job_id": job_id,
    }
    for _ in range(_TRIES):
        cursor = await connection.execute(sql.RESERVE, values)
        ((is_ours, counts),) = await cursor.fetchall()
        earlier = None if is_ours else await reads.find(connection, tenant_id, entry)
        if is_ours or earlier is not None:
            return earlier, reads.in_flight_of(counts, tenant_id)
    raise LedgerUnavailable(f"the idempotency entry {entry!r} comes and goes")


def _answer(earlier: Found, reservation: Reservation) -> Created:
    if earlier.content_hash != reservation.content_hash:
        raise IdempotencyConflict(earlier.job_id)
    return Created(earlier.job_id, None)


def _slots(job: Job, limits: Limits | None = None) -> Iterator[Slot]:
    """In the order in which everybody locks them."""
    tenant, total, mode = limits or Limits()
    yield Scope.TENANT, text(job.tenant_id), tenant
    yield Scope.MODE, job.route.mode.value, mode
    yield Scope.GLOBAL, "", total


async def _end(transaction: Transaction, job: Job) -> None:
    for scope, name, _ in _slots(job):
        transaction.at_the_end(sql.GIVE_SLOT, scope.value, name)
    if job.callback_urls:
        await enqueue_all(transaction.connection, webhooks_of(job))


def _refuse_if_full(in_flight: InFlight, job: Job, slots: Sequence[Slot]) -> None:
    """A first look, before the job is written: the saturated have no time for work that is undone.
    TAKE_SLOT looks again."""
    counts = (in_flight.tenant, in_flight.by_mode[job.route.mode], in_flight.total)
    for count, (scope, _, limit) in zip(counts, slots, strict=True):
        if limit is not None and count >= limit:
            raise Saturated(scope)


async def _insert(
    connection: Connection, reservation: Reservation, rows: NewJob, due: Due | None
) -> None:
    aggregate, decision = rows
    job = aggregate.job
    head = (job.job_id, 1, text(job.tenant_id), text(job.request_type), job.route.mode.value)
    rest = (job.engine.value, text(reservation.entry), *columns.due_values(due), job.created_at)
    await connection.execute(
        sql.INSERT,
        (
            *(*head, *rest, *columns.job_values(job)),
            *(job.job_id, codec.encode_plan(aggregate)),
            columns.step_rows(aggregate),
            columns.event_rows(job.job_id, decision.events),
        ),
    )


async def _update(
    connection: Connection, stored: Stored, decision: Decision, *, slots: bool
) -> Stored:
    after = apply(stored.aggregate, decision)
    job, due = after.job, timer_after(stored.timer, after)
    names, values = tuple(decision.job), columns.encoded(decision.job)
    if due != stored.timer:
        names, values = (*names, "due_at", "due_kind"), [*values, *columns.due_values(due)]
    values += [job.job_id, stored.version]
    for index, step in decision.steps.items():
        values += [*columns.encoded(step), job.job_id, index]
    if decision.events:
        values.append(columns.event_rows(job.job_id, decision.events))
    if decision.dead_letters:
        values.append(columns.letter_rows(dead_letter_rows(job, decision.dead_letters)))
    if slots:
        values += [value for slot in _slots(job) for value in slot[:2]]
    statement = sql.update(
        names,
        tuple(map(tuple, decision.steps.values())),
        events=bool(decision.events),
        letters=bool(decision.dead_letters),
        slots=slots,
    )
    return Stored(after, await _moved(connection, job.job_id, statement, values), due)


async def publish_report(connection: Connection, report: TrafficReport) -> None:
    values = (text(report.process_id), report.at, text(report.document))
    await connection.execute(sql.PUBLISH_REPORT, values)


async def withdraw_report(connection: Connection, process_id: str) -> None:
    await connection.execute(sql.WITHDRAW_REPORT, (text(process_id),))


async def prune(
    connection: Connection,
    directives: PostgresDirectives,
    before: datetime,
    age: timedelta,
    limit: int,
) -> int:
    """`age` is how long `before` has passed, for the outbox, whose clock is the database's."""
    pruned = await directives.prune(connection, age, limit)
    deleted = await connection.execute(sql.PRUNE_REPORTS, (before, limit - pruned))
    return pruned + deleted.rowcount


async def _moved(connection: Connection, job_id: str, statement: str, values: Sequence[Any]) -> int:
    row = await (await connection.execute(statement.encode(), values)).fetchone()
    if row is None:
        raise Conflict(job_id)
    return int(row[0])


def _ends(before: Aggregate, decision: Decision) -> bool:
    state = decision.job.get("state", before.job.state)
    return state in TERMINAL_JOB_STATES and before.job.state not in TERMINAL_JOB_STATES
