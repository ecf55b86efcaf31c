"""The verbs that only read, each one statement, which is one snapshot."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from psycopg import AsyncConnection

from lucius_contract.routing import Mode
from lucius_contract.states import JobState
from lucius_orchestrator.adapters.ledger import cursors
from lucius_orchestrator.adapters.ledger.postgres import columns
from lucius_orchestrator.adapters.ledger.postgres import statements as sql
from lucius_orchestrator.adapters.ledger.postgres.columns import text, text_of
from lucius_orchestrator.domain.aggregate import Job
from lucius_orchestrator.domain.decision import AuditEvent
from lucius_orchestrator.domain.timers import Due, TimerKind
from lucius_orchestrator.ports.ledger import (
    DeadLetterQuery,
    DeadLetterRow,
    Found,
    InFlight,
    JobQuery,
    Page,
    Scope,
    Stored,
    TrafficReport,
)

_SAME_ID_TIME = timedelta(seconds=1)  # ids are in the order of their milliseconds
_SCAN = 1000  # jobs that are looked at for one page, so that a rare state cannot take for ever
Connection = AsyncConnection[Any]
Values = Sequence[Any] | Mapping[str, Any]


async def load(connection: Connection, job_id: str) -> Stored | None:
    rows = await _all(connection, sql.LOAD, [text(job_id)])
    return columns.stored_of(rows) if rows else None


async def find(connection: Connection, tenant_id: str, entry: str) -> Found | None:
    rows = await _all(connection, sql.FIND, [text(tenant_id), text(entry)])
    return Found(*rows[0]) if rows else None


async def jobs(connection: Connection, query: JobQuery) -> Page[Job]:
    tenant, cursor = _optional(query.tenant_id), _optional(cursors.decode_job(query.cursor))
    filtered = (query.state, query.request_type, query.since) != (None, None, None)
    scan = _SCAN if filtered else min(query.limit, _SCAN)
    values = {
        "tenant_id": tenant,
        "cursor": cursor,
        "scan": scan,
        "state": query.state and query.state.value,
        "request_type": _optional(query.request_type),
        "since": query.since,
        "limit": query.limit,
    }
    rows = await _all(connection, sql.jobs_page(tenant is not None, cursor is not None), values)
    found = [row for row in rows if row[3] is not None]
    items = tuple(columns.job_of(document, job) for _, _, _, document, *job, _ in found)
    last = _last_seen(rows, found, query, scan)
    return Page(items, cursors.encode_job(last) if last else None)


def _last_seen(rows: Sequence[Any], found: Sequence[Any], query: JobQuery, scan: int) -> str | None:
    """The job that the next page begins after, if there may be one."""
    if found and len(found) == query.limit:
        return str(found[-1][-1])
    if not rows:
        return None
    last, created_at, scanned, *_ = rows[0]
    older = query.since is not None and created_at < query.since - _SAME_ID_TIME
    ended = scanned < scan or older
    return None if ended else str(last)


async def events(connection: Connection, job_id: str, after: int, limit: int) -> list[AuditEvent]:
    rows = await _all(connection, sql.EVENTS, [text(job_id), after, limit])
    return [columns.event_of(row) for row in rows]


async def due(
    connection: Connection, kinds: Collection[TimerKind], before: datetime, limit: int
) -> list[tuple[str, Due]]:
    values = {"kinds": [kind.value for kind in kinds], "before": before, "limit": limit}
    rows = await _all(connection, sql.DUE, values)
    return [(job_id, Due(at, TimerKind(kind))) for job_id, at, kind in rows]


async def in_states(connection: Connection, states: Collection[JobState], limit: int) -> list[str]:
    rows = await _all(connection, sql.UNSETTLED, [[state.value for state in states], limit])
    return [job_id for (job_id,) in rows]


async def ended(connection: Connection, before: datetime, limit: int) -> list[str]:
    return [job_id for (job_id,) in await _all(connection, sql.ENDED, [before, limit])]


async def in_flight(connection: Connection, tenant_id: str | None) -> InFlight:
    ((counts,),) = await _all(connection, sql.IN_FLIGHT, {"tenant_id": text(tenant_id or "")})
    return in_flight_of(counts, tenant_id)


def in_flight_of(counts: Mapping[str, int], tenant_id: str | None) -> InFlight:
    """From the object that `statements.IN_FLIGHT` makes."""
    return InFlight(
        counts.get(f"{Scope.GLOBAL} ", 0),
        {mode: counts.get(f"{Scope.MODE} {mode}", 0) for mode in Mode},
        counts.get(f"{Scope.TENANT} {text(tenant_id)}", 0) if tenant_id else 0,
    )


async def dead_letters(connection: Connection, query: DeadLetterQuery) -> Page[DeadLetterRow]:
    cursor = cursors.decode_letter(query.cursor)
    statement = sql.letters_page(query.tenant_id is not None, cursor is not None)
    values = {
        "tenant_id": _optional(query.tenant_id),
        "kind": query.kind and query.kind.value,
        "code": _optional(query.code),
        "first_at": cursor and cursor[0],
        "id": cursor and text(cursor[1]),
        "limit": query.limit + 1,
    }
    found = [columns.letter_of(row) for row in await _all(connection, statement, values)]
    page = tuple(found[: query.limit])
    more = len(found) > query.limit
    return Page(page, cursors.encode_letter(page[-1].first_at, page[-1].id) if more else None)


async def reports(connection: Connection, since: datetime) -> list[TrafficReport]:
    rows = await _all(connection, sql.REPORTS, [since])
    return [TrafficReport(text_of(name), at, text_of(document)) for name, at, document in rows]


def _optional(value: str | None) -> str | None:
    return None if value is None else text(value)


async def _all(connection: Connection, statement: str, values: Values) -> list[Any]:
    return await (await connection.execute(statement.encode(), values)).fetchall()
