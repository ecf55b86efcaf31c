"""What the port promises, as plain dictionaries: random histories are compared with it."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from lucius_contract.states import TERMINAL_JOB_STATES, OutboxState
from lucius_contract.timeouts import DISPATCH_BACKOFF, delay_after
from lucius_orchestrator.domain.aggregate import Aggregate, Job
from lucius_orchestrator.domain.decision import (
    AuditEvent,
    Decision,
    DirectiveRow,
    OutboxRow,
    apply,
)
from lucius_orchestrator.domain.timers import next_due
from lucius_orchestrator.ports.ledger import (
    DeadLetterRow,
    DirectiveStatus,
    Limits,
    NewJob,
    Reservation,
    Scope,
    dead_letter_rows,
)
from tests.ledger.view import UNSETTLED, View

Holder = tuple[int, int]
"""A process, and which of its claims it was."""


@dataclass
class Row:
    """An OUTBOX row. Where between `earliest` and `due` it becomes due is the ledger's choice."""

    job_id: str
    row: OutboxRow
    earliest: datetime
    due: datetime
    state: OutboxState = OutboxState.PENDING
    tries: int = 0
    holder: Holder | None = None
    until: datetime | None = None

    def claimable(self, now: datetime) -> bool:
        return self.due <= now and self.free(now)

    def free(self, now: datetime) -> bool:
        return self.state is OutboxState.PENDING and (self.until is None or self.until < now)

    def is_held_by(self, holder: Holder) -> bool:
        return self.state is OutboxState.PENDING and self.holder == holder

    def let_go(self) -> None:
        self.holder = self.until = None

    def postpone(self, now: datetime) -> None:
        self.let_go()
        self.tries += 1
        self.earliest = now + delay_after(self.tries, DISPATCH_BACKOFF, -1)
        self.due = now + delay_after(self.tries, DISPATCH_BACKOFF, 1)


class Entry(NamedTuple):
    job_id: str
    content_hash: str


@dataclass
class Model:
    jobs: dict[str, Aggregate] = field(default_factory=dict)
    events: dict[str, list[AuditEvent]] = field(default_factory=dict)
    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    dead_letters: dict[str, DeadLetterRow] = field(default_factory=dict)

    @property
    def live(self) -> dict[str, Aggregate]:
        return {k: v for k, v in self.jobs.items() if v.job.state not in TERMINAL_JOB_STATES}

    @property
    def counters(self) -> dict[str, int]:
        counted: Counter[str] = Counter()
        for aggregate in self.live.values():
            job = aggregate.job
            counted.update(["total", f"mode {job.route.mode}", f"tenant {job.tenant_id}"])
        return dict(counted)

    def refusal(self, job: Job, limits: Limits) -> Scope | None:
        counted = self.counters
        for scope, name, limit in (
            (Scope.TENANT, f"tenant {job.tenant_id}", limits.tenant),
            (Scope.MODE, f"mode {job.route.mode}", limits.mode),
            (Scope.GLOBAL, "total", limits.total),
        ):
            if limit is not None and counted.get(name, 0) >= limit:
                return scope
        return None

    def create(self, reservation: Reservation, new: NewJob) -> None:
        """Of an entry that is free, within the limits."""
        job_id = new.aggregate.job.job_id
        self.entries[reservation.tenant_id, reservation.entry] = Entry(
            job_id, reservation.content_hash
        )
        self.jobs[job_id], self.events[job_id] = new.aggregate, []
        self._write(job_id, new.decision)

    def commit(self, job_id: str, decision: Decision, holder: Holder | None) -> None:
        self.jobs[job_id] = apply(self.jobs[job_id], decision)
        self._write(job_id, decision)
        for mark in decision.marks:
            row = self.rows[mark.outbox_id]
            if holder is not None and row.is_held_by(holder):
                row.state = mark.state
                row.let_go()

    def directives(self) -> dict[tuple[str, str, int], Row]:
        return {
            (row.job_id, row.row.step_id, row.row.attempt_no): row
            for row in self.rows.values()
            if isinstance(row.row, DirectiveRow)
        }

    def remove(self, job_id: str) -> None:
        del self.jobs[job_id], self.events[job_id]
        self.entries = {k: entry for k, entry in self.entries.items() if entry.job_id != job_id}
        self.rows = {k: row for k, row in self.rows.items() if row.job_id != job_id}

    def redrive(self, job_id: str, by: str) -> int:
        mine = [
            letter
            for letter in self.dead_letters.values()
            if letter.job_id == job_id and letter.redriven_by is None
        ]
        self.dead_letters |= {letter.id: letter._replace(redriven_by=by) for letter in mine}
        return len(mine)

    def bury(self, letter: DeadLetterRow) -> bool:
        known = self.dead_letters.get(letter.id)
        kept = known._replace(last_at=letter.last_at) if known else letter
        self.dead_letters[letter.id] = kept
        return known is None

    def moment_without_doubt(self, now: datetime) -> datetime:
        """The next one at which it is certain of every row whether it is due."""
        for row in sorted(self.rows.values(), key=lambda row: row.earliest):
            if row.earliest <= now <= row.due:
                now = row.due + timedelta(microseconds=1)
        return now

    def states_of(self, name: tuple[str, str, int], row: Row) -> list[OutboxState]:
        """A row that was sent under a lost claim and then found unwanted may be told as either."""
        job_id, step_id, attempt_no = name
        step = self.jobs[job_id].step(step_id)
        attempt = step.attempt(attempt_no) if step else None
        was_sent = attempt is not None and attempt.sent_at is not None
        either = was_sent and row.state is OutboxState.SUPERSEDED
        return [OutboxState.SENT, row.state] if either else [row.state]

    def assert_shown(self, seen: View, now: datetime) -> None:
        assert seen.jobs == self.jobs
        assert seen.events == self.events
        assert seen.in_flight == self.counters
        assert seen.dead_letters == self.dead_letters
        assert seen.ended == self.jobs.keys() - self.live.keys()
        assert seen.unsettled == {k for k, v in self.jobs.items() if v.job.state in UNSETTLED}
        assert seen.directives.keys() == self.directives().keys()
        for name, row in self.directives().items():
            states = self.states_of(name, row)
            shown = [DirectiveStatus(state, row.claimable(now)) for state in states]
            assert seen.directives[name] in shown
        for job_id, aggregate in self.live.items():
            deadline = next_due(aggregate)
            assert deadline is not None
            assert seen.timers[job_id].at <= deadline.at

    def _write(self, job_id: str, decision: Decision) -> None:
        self.events[job_id] += decision.events
        for row in decision.outbox:
            self.rows[row.outbox_id] = Row(job_id, row, row.created_at, row.created_at)
        for letter in dead_letter_rows(self.jobs[job_id].job, decision.dead_letters):
            self.bury(letter)
