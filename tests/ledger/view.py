"""All that a ledger says, in a form that can be compared."""

import json
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

import pydantic_core

from lucius_contract.routing import Mode
from lucius_contract.states import TERMINAL_JOB_STATES, JobState
from lucius_orchestrator.domain.aggregate import Aggregate
from lucius_orchestrator.domain.decision import AuditEvent, OutboxRow
from lucius_orchestrator.domain.timers import Due, TimerKind
from lucius_orchestrator.ports.ledger import (
    DeadLetterQuery,
    DeadLetterRow,
    DirectiveStatus,
    JobQuery,
    Ledger,
    Page,
    Version,
)
from tests.ledger.jobs import MANY

LATER = datetime(2100, 1, 1, tzinfo=UTC)
UNSETTLED = frozenset({JobState.CANCELLING, JobState.PAUSING})
T = TypeVar("T")


class View(NamedTuple):
    """As one sees it who follows each index to the job and believes the job. Versions are a
    ledger's own; timers may be early; the rest is the same on all."""

    jobs: dict[str, Aggregate]
    versions: dict[str, Version]
    events: dict[str, list[AuditEvent]]
    directives: dict[tuple[str, str, int], DirectiveStatus | None]
    timers: dict[str, Due]
    in_flight: dict[str, int]
    ended: set[str]
    unsettled: set[str]
    dead_letters: dict[str, DeadLetterRow]

    @property
    def without_timers(self) -> "View":
        return self._replace(timers={})


def assert_unchanged(before: View, after: View) -> None:
    """But for timers, which a writer that failed may have moved to an earlier moment."""
    assert after.without_timers == before.without_timers
    assert after.timers.keys() == before.timers.keys()
    assert all(after.timers[job_id].at <= due.at for job_id, due in before.timers.items())


async def all_pages(
    read: Callable[[str | None], Awaitable[Page[T]]], cursor: str | None = None, most: int = 200
) -> list[tuple[T, ...]]:
    """Page after page to the end."""
    pages = []
    for _ in range(most):
        page = await read(cursor)
        pages.append(page.items)
        cursor = page.cursor
        if cursor is None:
            return pages
    raise AssertionError(f"no end after {most} pages")


async def job_ids(ledger: Ledger, query: JobQuery | None = None) -> list[str]:
    """Of all pages from the query's on."""
    query = query or JobQuery()
    pages = await all_pages(lambda cursor: ledger.jobs(query._replace(cursor=cursor)), query.cursor)
    return [job.job_id for page in pages for job in page]


async def letters(ledger: Ledger, query: DeadLetterQuery | None = None) -> list[DeadLetterRow]:
    query = query or DeadLetterQuery()
    pages = await all_pages(
        lambda cursor: ledger.dead_letters(query._replace(cursor=cursor)), query.cursor
    )
    return [letter for page in pages for letter in page]


async def view(ledger: Ledger) -> View:
    found = {job_id: await ledger.load(job_id) for job_id in await job_ids(ledger)}
    stored = {job_id: one for job_id, one in found.items() if one is not None}
    jobs = {job_id: one.aggregate for job_id, one in stored.items()}
    live = {job_id for job_id, one in jobs.items() if one.job.state not in TERMINAL_JOB_STATES}
    unsettled = {job_id for job_id, one in jobs.items() if one.job.state in UNSETTLED}
    attempts = [
        (job_id, step.step_id, attempt.attempt_no)
        for job_id, aggregate in jobs.items()
        for step in aggregate.steps
        for attempt in step.attempts
    ]
    due = await ledger.due(list(TimerKind), LATER, MANY)
    return View(
        jobs=jobs,
        versions={job_id: one.version for job_id, one in stored.items()},
        events={job_id: await ledger.events(job_id, limit=MANY) for job_id in jobs},
        directives={attempt: await ledger.directive(*attempt) for attempt in attempts},
        timers={job_id: first for job_id, first in reversed(due) if job_id in live},
        in_flight=await counters(ledger, {aggregate.job.tenant_id for aggregate in jobs.values()}),
        ended=set(await ledger.ended(LATER, MANY)) & (jobs.keys() - live),
        unsettled=set(await ledger.in_states(list(UNSETTLED), MANY)) & unsettled,
        dead_letters={letter.id: letter for letter in await letters(ledger)},
    )


async def counters(ledger: Ledger, tenants: Collection[str]) -> dict[str, int]:
    """Those that are not zero."""
    everywhere = await ledger.in_flight()
    counted = {"total": everywhere.total}
    counted |= {f"mode {mode}": everywhere.by_mode.get(mode, 0) for mode in Mode}
    for tenant in tenants:
        counted[f"tenant {tenant}"] = (await ledger.in_flight(tenant)).tenant
    return {name: count for name, count in counted.items() if count}


def on_the_wire(row: OutboxRow) -> OutboxRow:
    """A body is JSON, which knows no tuples."""
    return row._replace(body=json.loads(pydantic_core.to_json(row.body)))
