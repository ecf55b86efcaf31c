"""The ledger on tables: every verb of the port, each kept by the module that knows how."""

import asyncio
import secrets
from collections.abc import Callable, Collection, Coroutine, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from lucius_contract import timeouts
from lucius_contract.audit import EventType
from lucius_contract.states import JobState
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.commits import Commits
from lucius_orchestrator.adapters.ledger.tables.creation import Creation
from lucius_orchestrator.adapters.ledger.tables.directives import Directives
from lucius_orchestrator.adapters.ledger.tables.ending import Ending
from lucius_orchestrator.adapters.ledger.tables.entries import Entries
from lucius_orchestrator.adapters.ledger.tables.indexes import TIMERS, Indexes
from lucius_orchestrator.adapters.ledger.tables.leading import Leading
from lucius_orchestrator.adapters.ledger.tables.letters import Letters
from lucius_orchestrator.adapters.ledger.tables.listing import Listing
from lucius_orchestrator.adapters.ledger.tables.partition import JOB, JOBS, JobPartitions
from lucius_orchestrator.adapters.ledger.tables.repair import Repairs
from lucius_orchestrator.adapters.ledger.tables.reports import Reports
from lucius_orchestrator.adapters.ledger.tables.retention import Retention
from lucius_orchestrator.adapters.ledger.tables.slots import Slots
from lucius_orchestrator.adapters.ledger.tables.store import Tables
from lucius_orchestrator.adapters.ledger.tables.webhook_store import TableWebhookStore
from lucius_orchestrator.adapters.ledger.tables.webhooks import Webhooks
from lucius_orchestrator.domain.aggregate import Job
from lucius_orchestrator.domain.decision import AuditEvent, Decision, OutboxKind
from lucius_orchestrator.domain.timers import Due, TimerKind
from lucius_orchestrator.ports.ledger import (
    ALL_LANES,
    Adopter,
    Backlog,
    Claim,
    Created,
    DeadLetterQuery,
    DeadLetterRow,
    DirectiveStatus,
    Found,
    InFlight,
    JobQuery,
    Limits,
    NewJob,
    Page,
    Repair,
    Reservation,
    Stored,
    TrafficReport,
    Turns,
)
from lucius_orchestrator.ports.webhooks import RETRIES
from lucius_outbox.retry import RetryPolicy

AnswerT = TypeVar("AnswerT")


def _new_token() -> str:
    return secrets.token_hex(8)


class TableLedger:
    """`grace`: how long `repair` takes a writer that announced a commit to be alive."""

    def __init__(
        self,
        tables: Tables,
        *,
        clock: Callable[[], datetime],
        dispatch_backoff: timeouts.Delays = timeouts.DISPATCH_BACKOFF,
        grace: timedelta = timeouts.RECOVERY_GRACE,
        new_token: Callable[[], str] = _new_token,
    ) -> None:
        self._tables = tables
        self._clock = clock
        self._wakes: list[Callable[[], None]] = []
        self._running: set[asyncio.Task[Any]] = set()
        self._jobs = jobs = JobPartitions(tables, clock)
        self._indexes = indexes = Indexes(tables, jobs)
        self._slots = Slots(tables)
        self._letters = Letters(tables, clock=clock, new_token=new_token)
        self._webhooks = Webhooks(tables, jobs)
        self._listing = Listing(tables, jobs)
        entries = Entries(tables)
        ending = Ending(indexes, entries, self._slots)
        self._directives = Directives(
            tables, jobs, indexes, clock=clock, backoff=dispatch_backoff, wake=self._wake
        )
        self._leading = Leading(tables, clock=clock, owner=new_token())
        self._creation = Creation(
            jobs,
            indexes,
            entries,
            self._slots,
            self._directives,
            ending,
            clock=clock,
            new_token=new_token,
        )
        self._commits = Commits(
            jobs,
            indexes,
            self._letters,
            self._webhooks,
            self._directives,
            ending,
            clock=clock,
            new_token=new_token,
        )
        self._reports = Reports(tables)
        self._retention = Retention(
            tables, jobs, indexes, entries, ending, self._webhooks, self._reports, clock=clock
        )
        self._repairs = Repairs(tables, jobs, indexes, ending, clock=clock, grace=grace)

    async def create(
        self, reservation: Reservation, build: Callable[[str], NewJob], limits: Limits
    ) -> Created:
        return await self._finished(self._creation.create(reservation, build, limits))

    async def load(self, job_id: str) -> Stored | None:
        return await self._jobs.load(job_id)

    async def commit(
        self, stored: Stored, decision: Decision, claim: Claim | None = None
    ) -> Stored:
        committed = await self._finished(self._commits.commit(stored, decision, claim))
        if any(event.type is EventType.DISPATCH_WOKEN for event in decision.events):
            self._wake()
        return committed

    async def ready(self) -> None:
        """Commits do not wait for each other."""

    async def reschedule(self, stored: Stored, due: Due | None = None) -> Stored:
        return await self._finished(self._commits.reschedule(stored, due))

    async def find(self, tenant_id: str, entry: str) -> Found | None:
        return await self._creation.find(tenant_id, entry)

    async def jobs(self, query: JobQuery) -> Page[Job]:
        return await self._listing.page(query)

    async def events(self, job_id: str, after: int = 0, limit: int = 100) -> list[AuditEvent]:
        return await self._jobs.events(job_id, after, limit)

    async def due(
        self, kinds: Collection[TimerKind], before: datetime, limit: int
    ) -> list[tuple[str, Due]]:
        """A job may be named twice in the index for a moment; then by its earlier row."""
        end, found = keys.moment(before) + '"', list[tuple[Due, str]]()
        for kind in kinds:
            rows = await self._tables.query(TIMERS, kind.value, "", end, limit)
            found += [(row.values["due"], row.values["job_id"]) for row in rows]
        first: dict[str, Due] = {}
        for due, job_id in sorted(found):
            first.setdefault(job_id, due)
        return list(first.items())[:limit]

    async def in_states(self, states: Collection[JobState], limit: int) -> list[str]:
        return await self._indexes.in_states(states, limit)

    async def ended(self, before: datetime, limit: int) -> list[str]:
        return await self._retention.ended(before, limit)

    async def remove(self, stored: Stored) -> None:
        await self._finished(self._retention.remove(stored))

    async def lead(self, lanes: Collection[int], lease: timedelta) -> frozenset[int]:
        return await self._leading.lead(lanes, lease)

    async def claim(
        self,
        kind: OutboxKind,
        size: int,
        lease: timedelta,
        lanes: Collection[int] = ALL_LANES,
    ) -> list[Claim]:
        return await self._directives.claim(kind, size, lease, lanes)

    async def claim_in_turn(
        self, turns: Turns, lease: timedelta, lanes: Collection[int] = ALL_LANES
    ) -> list[Claim]:
        return await self._directives.claim_in_turn(turns, lease, lanes)

    async def take(
        self, job_id: str, step_id: str, attempt_no: int, lease: timedelta
    ) -> Claim | None:
        return await self._directives.take(job_id, step_id, attempt_no, lease)

    def adopt(self, kind: OutboxKind, lease: timedelta, adopter: Adopter) -> Callable[[], None]:
        return self._directives.adopt(kind, lease, adopter)

    async def release(self, claims: Sequence[Claim]) -> None:
        await self._directives.release(claims)

    async def postpone(self, claims: Sequence[Claim], error: str) -> None:
        await self._directives.postpone(claims, error)

    async def discard(self, claims: Sequence[Claim]) -> None:
        await self._directives.discard(claims)

    async def directive(self, job_id: str, step_id: str, attempt_no: int) -> DirectiveStatus | None:
        return await self._directives.status(job_id, step_id, attempt_no)

    async def in_flight(self, tenant_id: str | None = None) -> InFlight:
        return await self._slots.in_flight(tenant_id)

    async def backlog(self) -> dict[int, int]:
        return await self._directives.backlog()

    async def backlogs(self) -> list[Backlog]:
        return await self._directives.backlogs()

    async def publish_report(self, report: TrafficReport) -> None:
        await self._reports.publish(report)

    async def reports(self, since: datetime) -> list[TrafficReport]:
        return await self._reports.since(since)

    async def withdraw_report(self, process_id: str) -> None:
        await self._reports.withdraw(process_id)

    async def dead_letters(self, query: DeadLetterQuery) -> Page[DeadLetterRow]:
        return await self._letters.page(query)

    async def bury(self, letter: DeadLetterRow) -> bool:
        return await self._letters.bury(letter)

    async def mark_redriven(self, job_id: str, by: str) -> int:
        return await self._letters.mark_redriven(job_id, by)

    def webhooks(self, policy: RetryPolicy = RETRIES) -> TableWebhookStore:
        """Those that commits have enqueued, for whoever delivers them. Closed with the ledger."""
        return TableWebhookStore(self._webhooks, self._letters, clock=self._clock, policy=policy)

    async def repair(self, limit: int) -> list[Repair]:
        return await self._repairs.repair(limit)

    async def prune(self, before: datetime, limit: int) -> int:
        return await self._retention.prune(before, limit)

    async def check(self) -> None:
        await self._tables.get(JOBS, JOB, JOB)

    async def listen(self, wake: Callable[[], None]) -> None:
        self._wakes.append(wake)
        try:
            await asyncio.Event().wait()
        finally:
            self._wakes.remove(wake)

    async def close(self) -> None:
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._leading.close()
        await self._tables.close()

    async def _finished(self, verb: Coroutine[Any, Any, AnswerT]) -> AnswerT:
        """What needs several calls is carried to its end also when nobody waits for it any more:
        a caller that is cancelled would leave half of it to the repair."""
        running = asyncio.create_task(verb)
        self._running.add(running)
        running.add_done_callback(self._forget)
        return await asyncio.shield(running)

    def _forget(self, done: "asyncio.Task[Any]") -> None:
        self._running.discard(done)
        if not done.cancelled():
            done.exception()  # who waited has it; if nobody did, it is nobody's

    def _wake(self) -> None:
        for wake in list(self._wakes):
            wake()
