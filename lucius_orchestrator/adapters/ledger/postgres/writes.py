"""The verbs that write, each inside a transaction in pipeline mode: a statement whose answer is not
fetched does not wait for it.

All take locks in one order: the entry, the job, its directives, and last the counters of the
tenant, the mode and all. Those are held only from the last round trip to the commit in it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lucius_contract.states import TERMINAL_JOB_STATES
from lucius_orchestrator.adapters.ledger import codec
from lucius_orchestrator.adapters.ledger.postgres import columns, reads
from lucius_orchestrator.adapters.ledger.postgres import statements as sql
from lucius_orchestrator.adapters.ledger.postgres.columns import text
from lucius_orchestrator.adapters.ledger.postgres.directives import PostgresDirectives
from lucius_orchestrator.domain.aggregate import Aggregate, Job
from lucius_orchestrator.domain.decision import AuditEvent, Decision, OutboxKind, apply
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
    dead_letter_rows,
    timer_after,
)
from lucius_outbox.postgres.rows import Transaction

_TRIES = 5


async def create(
    transaction: Transaction,
    directives: PostgresDirectives,
    reservation: Reservation,
    build: Callable[[str], NewJob],
    limits: Limits,
) -> Created:
    tenant_id, entry, _, job_id = reservation
    earlier = await _reserve(transaction, reservation)
    if earlier is not None:
        return _answer(earlier, reservation)
    aggregate, decision = build(job_id)
    if limits != Limits():
        _refuse_if_full(await reads.in_flight(transaction, tenant_id), aggregate.job, limits)
    due = next_due(aggregate)
    await _insert(transaction, aggregate, entry, due)
    await _write_events(transaction, job_id, decision.events)
    if decision.outbox:
        await directives.enqueue(transaction, decision.outbox)
    for scope, name, limit in _slots(aggregate.job, limits):
        await transaction.execute(sql.TAKE_SLOT, (scope.value, name, limit))
    return Created(job_id, Stored(aggregate, 1, due))


async def commit(
    transaction: Transaction,
    directives: PostgresDirectives,
    stored: Stored,
    decision: Decision,
    claim: Claim | None,
) -> Stored:
    after = apply(stored.aggregate, decision)
    due = timer_after(stored.timer, after)
    changes: dict[str, Any] = dict(decision.job)
    values = columns.encoded(changes)
    if due != stored.timer:
        changes |= {"due_at": None, "due_kind": None}
        values += columns.due_values(due)
    version = await _update_job(transaction, stored, tuple(changes), values)
    job = after.job
    for index, step in decision.steps.items():
        place = (job.job_id, index)
        await _execute(transaction, sql.update_step(tuple(step)), [*columns.encoded(step), *place])
    await _write_events(transaction, job.job_id, decision.events)
    for letter in dead_letter_rows(job, decision.dead_letters):
        await transaction.execute(sql.BURY.encode(), columns.letter_values(letter))
    await _write_outbox(transaction, directives, decision, claim)
    if _ends(stored.aggregate, after):
        for scope, name, _ in _slots(job):
            await transaction.execute(sql.GIVE_SLOT, (scope.value, name))
    return Stored(after, version, due)


async def reschedule(transaction: Transaction, stored: Stored) -> Stored:
    due = next_due(stored.aggregate)
    names, values = ("due_at", "due_kind"), columns.due_values(due)
    return Stored(stored.aggregate, await _update_job(transaction, stored, names, values), due)


async def remove(transaction: Transaction, stored: Stored) -> None:
    job = stored.aggregate.job
    deleted = await transaction.execute(sql.DELETE_JOB, (job.job_id, stored.version))
    row = await deleted.fetchone()
    if row is None:
        there = await transaction.execute(sql.EXISTS, (job.job_id,))
        if await there.fetchone() is not None:
            raise Conflict(job.job_id)
        return
    await transaction.execute(sql.UNRESERVE, (text(job.tenant_id), row[0], job.job_id))
    for statement in (sql.DELETE_PLAN, sql.DELETE_STEPS, sql.DELETE_EVENTS):
        await transaction.execute(statement, (job.job_id,))


async def bury(transaction: Transaction, letter: DeadLetterRow) -> bool:
    """In one statement, so that it needs no transaction around it."""
    cursor = await transaction.execute(sql.BURY.encode(), columns.letter_values(letter))
    return await cursor.fetchone() == (True,)


async def mark_redriven(transaction: Transaction, job_id: str, by: str) -> int:
    return (await transaction.execute(sql.REDRIVEN, (text(by), text(job_id)))).rowcount


async def repair(transaction: Transaction, limit: int) -> list[Repair]:
    """Counters are the one index that is not a column of the job: count again."""
    await transaction.execute(sql.FORGET_TENANTS, (limit,))
    if not await _miscounted(transaction, limit):
        return []
    await transaction.execute(sql.LOCK_SLOTS)
    repairs = []
    for scope, name, counted, open_jobs in await _miscounted(transaction, limit):
        await transaction.execute(sql.RECOUNT, (scope, name, open_jobs))
        key = f"{scope} {columns.text_of(name)}"
        repairs.append(Repair("in_flight", key, str(counted), str(open_jobs)))
    return repairs


async def _reserve(transaction: Transaction, reservation: Reservation) -> Found | None:
    """None: the entry is ours. It may be removed between our insert and our look, but hardly ever
    again and again."""
    tenant_id, entry, content_hash, job_id = reservation
    values = (text(tenant_id), text(entry), content_hash, job_id)
    for _ in range(_TRIES):
        reserving = await transaction.execute(sql.RESERVE, values)
        if await reserving.fetchone() is not None:
            return None
        earlier = await reads.find(transaction, tenant_id, entry)
        if earlier is not None:
            return earlier
    raise LedgerUnavailable(f"the idempotency entry {entry!r} comes and goes")


def _answer(earlier: Found, reservation: Reservation) -> Created:
    if earlier.content_hash != reservation.content_hash:
        raise IdempotencyConflict(earlier.job_id)
    return Created(earlier.job_id, None)


def _refuse_if_full(in_flight: InFlight, job: Job, limits: Limits) -> None:
    """Before the rows are written: saturation is when there is no time for work that is undone.
    `TAKE_SLOT` looks again."""
    counts = (in_flight.tenant, in_flight.by_mode[job.route.mode], in_flight.total)
    for count, (scope, _, limit) in zip(counts, _slots(job, limits), strict=True):
        if limit is not None and count >= limit:
            raise Saturated(scope)


def _slots(job: Job, limits: Limits | None = None) -> Iterator[tuple[Scope, str, int | None]]:
    """In the order in which everybody locks them."""
    tenant, total, mode = limits or Limits()
    yield Scope.TENANT, text(job.tenant_id), tenant
    yield Scope.MODE, job.route.mode.value, mode
    yield Scope.GLOBAL, "", total


async def _insert(
    transaction: Transaction, aggregate: Aggregate, entry: str, due: Due | None
) -> None:
    job = aggregate.job
    head = (job.job_id, 1, text(job.tenant_id), text(job.request_type))
    kind = (job.route.mode.value, job.engine.value, text(entry))
    times = (*columns.due_values(due), job.created_at)
    row = (*head, *kind, *times, *columns.job_values(job))
    await _execute(transaction, sql.INSERT_JOB, row)
    await _execute(transaction, sql.INSERT_PLAN, (job.job_id, codec.encode_plan(aggregate)))
    for step in aggregate.steps:
        values = (job.job_id, step.step_index, *columns.step_values(step))
        await _execute(transaction, sql.INSERT_STEP, values)


async def _update_job(
    transaction: Transaction, stored: Stored, names: tuple[str, ...], values: Sequence[Any]
) -> int:
    """The new version. First of all, so that it locks the job."""
    job_id = stored.aggregate.job.job_id
    statement = sql.update_job(names).encode()
    cursor = await transaction.execute(statement, (*values, job_id, stored.version))
    row = await cursor.fetchone()
    if row is None:
        raise Conflict(job_id)
    return int(row[0])


async def _write_events(
    transaction: Transaction, job_id: str, events: Sequence[AuditEvent]
) -> None:
    for event in events:
        await _execute(transaction, sql.INSERT_EVENT, columns.event_values(job_id, event))


async def _write_outbox(
    transaction: Transaction,
    directives: PostgresDirectives,
    decision: Decision,
    claim: Claim | None,
) -> None:
    if decision.marks:
        await directives.settle(transaction, decision.marks, claim)
    if decision.outbox:
        await directives.enqueue(transaction, decision.outbox)
    elif decision.wakes_dispatcher:
        await directives.wake(transaction, OutboxKind.DIRECTIVE)


async def _miscounted(transaction: Transaction, limit: int) -> list[Any]:
    return await (await transaction.execute(sql.MISCOUNTED, (limit,))).fetchall()


async def _execute(transaction: Transaction, statement: str, values: Sequence[Any]) -> None:
    await transaction.execute(statement.encode(), values)


def _ends(before: Aggregate, after: Aggregate) -> bool:
    return after.job.state in TERMINAL_JOB_STATES and before.job.state not in TERMINAL_JOB_STATES
