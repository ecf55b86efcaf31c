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
from lucius_orchestrator.adapters.ledger.tables.directives import Birth, Directives, Mark
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
    Written,
)
from lucius_orchestrator.adapters.ledger.tables.store import Merge, Operation, StoreError
from lucius_orchestrator.adapters.ledger.tables.webhooks import Webhooks
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
    webhooks: list[IndexRow] = field(default_factory=list)
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
            self._end(job)
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

    def _end(self, job: Job) -> None:
        row = self.intent.ended(job.completed_at or self.intent.now)
        self.ends, self.timer = True, None
        self.head |= {"timer": None, "ended": row.place}
        self.index.append(row)
        self.webhooks = self.intent.webhooks(job, row.place)


class Commits:
    def __init__(
        self,
        jobs: JobPartitions,
        indexes: Indexes,
        letters: Letters,
        webhooks: Webhooks,
        directives: Directives,
        ending: Ending,
        *,
        clock: Callable[[], datetime],
        new_token: Callable[[], str],
    ) -> None:
        self._jobs = jobs
        self._indexes = indexes
        self._letters = letters
        self._webhooks = webhooks
        self._directives = directives
        self._ending = ending
        self._clock = clock
        self._new_token = new_token

    async def commit(self, stored: Stored, decision: Decision, claim: Claim | None) -> Stored:
        after = apply(stored.aggregate, decision)
        for race in range(RACES):
            commit = _Commit.on(stored, self._new_token(), self._clock())
            commit.lead_to(stored.aggregate.job, after)
            births = self._directives.births(decision, after.job.route.lane, commit.intent)
            marks = await self._directives.marks(decision.marks, claim, is_sure=race == 0)
            with suppress(_Overtaken):
                written = await self._write(commit, after, decision, births, marks)
                committed = Stored(after, TableVersion(written.etag, commit.leash), commit.timer)
                await self._follow_up(commit, after.job)
                for mark in marks:
                    self._directives.let_go(mark.pending)
                await self._directives.born(committed, births, dict(written.etags))
                return committed
        raise LedgerUnavailable(f"{after.job.job_id} is written too often")

    async def reschedule(self, stored: Stored, due: Due | None) -> Stored:
        job = stored.aggregate.job
        commit = _Commit.on(stored, self._new_token(), self._clock())
        timer = due or next_due(stored.aggregate)
        if job.state in TERMINAL_JOB_STATES:
            commit.ends = True
        elif timer is not None and timer != stored.timer:
            commit.retime(timer)
        written = await self._batch(commit, [Merge(JOB, commit.head, commit.intent.base)])
        await self._follow_up(commit, job)
        return Stored(stored.aggregate, TableVersion(written.etag, commit.leash), commit.timer)

    async def _write(
        self,
        commit: _Commit,
        after: Aggregate,
        decision: Decision,
        births: Sequence[Birth],
        marks: Sequence[Mark],
    ) -> Written:
        job, intent = after.job, commit.intent
        letters = await self._letters.writes(dead_letter_rows(job, decision.dead_letters), intent)
        pending = [birth.pending for birth in births]
        commit.index += [*pending, *letters.announced]
        commit.obsolete += [mark.pending for mark in marks]
        operations = [
            *partition.changes(after, decision, commit.head, intent.base),
            *partition.additions(decision, pending),
            *(mark.operation for mark in marks),
            *letters.operations,
        ]
        return await self._batch(commit, operations)

    async def _batch(self, commit: _Commit, operations: Sequence[Operation]) -> Written:
        job_id = commit.intent.job_id
        announced = await self._indexes.announce(commit.index)
        await self._webhooks.announce(commit.webhooks)
        try:
            written = await self._jobs.write(job_id, operations)
        except StoreError as refused:
            head, found = await self._jobs.read(job_id)
            if head is not None and head.token == commit.intent.token:
                return Written(head.etag, {})
            with suppress(LedgerUnavailable):
                await self._indexes.withdraw([*commit.index, *commit.webhooks])
            if refused.row == JOB:
                raise Conflict(job_id, found) from refused
            raise _Overtaken from refused
        return Written(written.etag, {**announced, **written.etags})

    async def _follow_up(self, commit: _Commit, job: Job) -> None:
        if commit.webhooks:
            self._webhooks.wake()
        with suppress(LedgerUnavailable):
            await self._indexes.drop(*commit.obsolete)
            if commit.ends:
                await self._ending.finish(job, commit.leash)
