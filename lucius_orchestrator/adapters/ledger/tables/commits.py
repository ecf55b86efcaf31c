"""Commits: the index rows that announce one, the batch, and what follows from it.

What follows may be lost by a crash, and is found again from the leash or by whoever reads the index
row that should be gone. It is therefore not worth failing a commit that was made.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lucius_contract.states import TERMINAL_JOB_STATES
from lucius_orchestrator.adapters.ledger.tables import partition
from lucius_orchestrator.adapters.ledger.tables.directives import Directives
from lucius_orchestrator.adapters.ledger.tables.ending import Ending
from lucius_orchestrator.adapters.ledger.tables.indexes import WAITING, Indexes, Intent
from lucius_orchestrator.adapters.ledger.tables.letters import Letters
from lucius_orchestrator.adapters.ledger.tables.partition import (
    JOB,
    RACES,
    IndexRow,
    JobPartitions,
    Place,
    TableVersion,
)
from lucius_orchestrator.adapters.ledger.tables.store import Merge, Operation, StoreError
from lucius_orchestrator.domain.aggregate import Aggregate, Job
from lucius_orchestrator.domain.decision import Decision, apply
from lucius_orchestrator.domain.timers import Due, next_due
from lucius_orchestrator.ports.ledger import (
    Claim,
    Conflict,
    LedgerUnavailable,
    Stored,
    dead_letter_rows,
    timer_after,
)


class _Overtaken(Exception):
    """A row beside the JOB row was written meanwhile: read it and try again."""


@dataclass(slots=True)
class _Commit:
    """A commit in the making. `head` is what it changes of the JOB row beside the job itself."""

    intent: Intent
    leash: Place
    timer: Due | None
    head: dict[str, Any]
    ends: bool = False
    index: list[IndexRow] = field(default_factory=list)
    obsolete: list[Place] = field(default_factory=list)

    @classmethod
    def on(cls, stored: Stored, token: str, now: datetime) -> "_Commit":
        job_id, version = stored.aggregate.job.job_id, stored.version
        if not isinstance(version, TableVersion):
            raise Conflict(job_id)
        intent = Intent(job_id, version.etag, token, now)
        return cls(intent, version.leash, stored.timer, {"token": token})

    def lead_to(self, before: Job, after: Aggregate) -> None:
        """Announce where the job will be found after the decision."""
        job, timer = after.job, timer_after(self.timer, after)
        if job.state in TERMINAL_JOB_STATES and before.state not in TERMINAL_JOB_STATES:
            self._end(job.completed_at or self.intent.now)
        elif timer is not None and timer != self.timer:
            self.retime(timer)
        if job.state in WAITING and job.state is not before.state:
            self.index.append(self.intent.state(job.state))

    def retime(self, timer: Due) -> None:
        """Let another row of the timer index stand for the job."""
        row = self.intent.leash(timer)
        self.obsolete.append(self.leash)
        self.leash, self.timer = row.place, timer
        self.head |= {"leash": row.place, "timer": timer}
        self.index.append(row)

    def _end(self, at: datetime) -> None:
        row = self.intent.ended(at)
        self.ends, self.timer = True, None
        self.head |= {"timer": None, "ended": row.place}
        self.index.append(row)


class Commits:
    def __init__(
        self,
        jobs: JobPartitions,
        indexes: Indexes,
        letters: Letters,
        directives: Directives,
        ending: Ending,
        *,
        clock: Callable[[], datetime],
        new_token: Callable[[], str],
    ) -> None:
        self._jobs = jobs
        self._indexes = indexes
        self._letters = letters
        self._directives = directives
        self._ending = ending
        self._clock = clock
        self._new_token = new_token

    async def commit(self, stored: Stored, decision: Decision, claim: Claim | None) -> Stored:
        after = apply(stored.aggregate, decision)
        for _ in range(RACES):
            commit = _Commit.on(stored, self._new_token(), self._clock())
            commit.lead_to(stored.aggregate.job, after)
            with suppress(_Overtaken):
                etag = await self._write(commit, after, decision, claim)
                await self._follow_up(commit, after.job)
                return Stored(after, TableVersion(etag, commit.leash), commit.timer)
        raise LedgerUnavailable(f"{after.job.job_id} is written too often")

    async def reschedule(self, stored: Stored, due: Due | None) -> Stored:
        job = stored.aggregate.job
        commit = _Commit.on(stored, self._new_token(), self._clock())
        timer = due or next_due(stored.aggregate)
        if job.state in TERMINAL_JOB_STATES:
            commit.ends = True
        elif timer is not None and timer != stored.timer:
            commit.retime(timer)
        etag = await self._batch(commit, [Merge(JOB, commit.head, commit.intent.base)])
        await self._follow_up(commit, job)
        return Stored(stored.aggregate, TableVersion(etag, commit.leash), commit.timer)

    async def _write(
        self, commit: _Commit, after: Aggregate, decision: Decision, claim: Claim | None
    ) -> str:
        job, intent = after.job, commit.intent
        letters = await self._letters.writes(dead_letter_rows(job, decision.dead_letters), intent)
        marks = await self._directives.marks(decision.marks, claim)
        pending = [intent.pending(row, job.route.lane) for row in decision.outbox]
        commit.index += [*pending, *letters.announced]
        commit.obsolete += [mark.pending for mark in marks]
        operations = [
            *partition.changes(after, decision, commit.head, intent.base),
            *partition.additions(decision, pending),
            *(mark.operation for mark in marks),
            *letters.operations,
        ]
        return await self._batch(commit, operations)

    async def _batch(self, commit: _Commit, operations: Sequence[Operation]) -> str:
        job_id = commit.intent.job_id
        await self._indexes.announce(commit.index)
        try:
            return await self._jobs.write(job_id, operations)
        except StoreError as refused:
            head = await self._jobs.head(job_id)
            if head is not None and head.token == commit.intent.token:
                return head.etag
            with suppress(LedgerUnavailable):
                await self._indexes.withdraw(commit.index)
            if refused.row == JOB:
                raise Conflict(job_id) from refused
            raise _Overtaken from refused

    async def _follow_up(self, commit: _Commit, job: Job) -> None:
        with suppress(LedgerUnavailable):
            await self._indexes.drop(*commit.obsolete)
            if commit.ends:
                await self._ending.finish(job, commit.leash)
