"""The verbs that only read, each one statement or a few that need not agree."""

import json
import sqlite3
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from lucius_contract.routing import Mode
from lucius_contract.states import JobState
from lucius_orchestrator.adapters.ledger import codec, cursors
from lucius_orchestrator.adapters.ledger.sqlite import columns
from lucius_orchestrator.adapters.ledger.sqlite import statements as sql
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
from lucius_outbox.sqlite.times import microseconds, moment

_SAME_ID_TIME = timedelta(seconds=1)  # ids are in the order of their milliseconds
_SCAN = 1000  # jobs that are looked at for one page, so that a rare state cannot take for ever
Connection = sqlite3.Connection


def load(connection: Connection, job_id: str) -> Stored | None:
    rows = connection.execute(sql.LOAD, (job_id,)).fetchall()
    return columns.stored_of(rows) if rows else None


def find(connection: Connection, tenant_id: str, entry: str) -> Found | None:
    found = connection.execute(sql.FIND, (tenant_id, entry)).fetchone()
    return Found(*found) if found else None


def jobs(connection: Connection, query: JobQuery) -> Page[Job]:
    cursor = cursors.decode_job(query.cursor)
    statement = sql.jobs_page(query.tenant_id is not None, cursor is not None)
    values = {"tenant_id": query.tenant_id, "cursor": cursor, "scan": _SCAN}
    found = connection.execute(statement, values).fetchall()
    matching, last = _matching(found, query)
    numbers = json.dumps([row[4] for row in matching])
    items = [
        columns.job_of(document, values)
        for document, *values in connection.execute(sql.JOBS, (numbers,))
    ]
    return Page(tuple(items), cursors.encode_job(last) if last else None)


def _matching(found: Sequence[Any], query: JobQuery) -> tuple[list[Any], str | None]:
    """The rows of the page, and the job that the next one begins after, if there may be more."""
    since = 0 if query.since is None else microseconds(query.since)
    end = 0 if query.since is None else microseconds(query.since - _SAME_ID_TIME)
    matching: list[Any] = []
    for row in found:
        job_id, created_at, state, request_type, _ = row
        if created_at < end:
            return matching, None
        if (
            created_at >= since
            and query.state in (None, state)
            and query.request_type in (None, request_type)
        ):
            matching.append(row)
            if len(matching) == query.limit:
                return matching, job_id
    return matching, found[-1][0] if len(found) == _SCAN else None


def events(connection: Connection, job_id: str, after: int, limit: int) -> list[AuditEvent]:
    found: list[AuditEvent] = []
    for (document,) in connection.execute(sql.EVENTS, (job_id, after, limit)):
        found += codec.decode_events(document)
    return [event for event in found if event.seq > after][:limit]


def due(
    connection: Connection, kinds: Collection[TimerKind], before: int, limit: int
) -> list[tuple[str, Due]]:
    found = [
        row
        for kind in kinds
        for row in connection.execute(sql.DUE, (kind.value, before, limit)).fetchall()
    ]
    found.sort(key=lambda row: row[1])
    return [
        (job_id, timer)
        for job_id, at, kind in found[:limit]
        if (timer := columns.due_of(at, kind)) is not None
    ]


def in_states(connection: Connection, states: Collection[JobState], limit: int) -> list[str]:
    found = [
        job_id
        for state in states
        for (job_id,) in connection.execute(sql.ENDING, (state.value, limit)).fetchall()
    ]
    return found[:limit]


def ended(connection: Connection, before: int, limit: int) -> list[str]:
    return [job_id for (job_id,) in connection.execute(sql.ENDED, (before, limit))]


def in_flight(connection: Connection, tenant_id: str | None) -> InFlight:
    rows = connection.execute(sql.IN_FLIGHT, (tenant_id or "",)).fetchall()
    counts = {(scope, name): jobs for scope, name, jobs in rows}
    return InFlight(
        counts.get((Scope.GLOBAL, ""), 0),
        {mode: counts.get((Scope.MODE, mode.value), 0) for mode in Mode},
        counts.get((Scope.TENANT, tenant_id), 0) if tenant_id else 0,
    )


def dead_letters(connection: Connection, query: DeadLetterQuery) -> Page[DeadLetterRow]:
    cursor = cursors.decode_letter(query.cursor)
    statement = sql.letters_page(query.tenant_id is not None, cursor is not None)
    values = {
        "tenant_id": query.tenant_id,
        "kind": query.kind and query.kind.value,
        "code": query.code,
        "first_at": cursor and microseconds(cursor[0]),
        "id": cursor and cursor[1],
        "limit": query.limit + 1,
    }
    found = [columns.letter_of(row) for row in connection.execute(statement, values)]
    page = tuple(found[: query.limit])
    more = len(found) > query.limit
    return Page(page, cursors.encode_letter(page[-1].first_at, page[-1].id) if more else None)


def reports(connection: Connection, since: int) -> list[TrafficReport]:
    return [
        TrafficReport(process_id, moment(at), document)
        for process_id, at, document in connection.execute(sql.REPORTS, (since,))
    ]
