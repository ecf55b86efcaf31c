"""Index rows: what leads to jobs from outside. Each announces a commit before it is made.

An index row is written before the commit that makes it true, with the ETag of the JOB row that this
commit builds on, its `base`. Its key ends with the commit's token, which no other commit has, and
the job's partition names that key once the commit is made. So of every index row three things can
be found out:

*   it *stands*: the job's partition names it (or, for states, agrees with it);
*   its commit is under way, or never came: the JOB row still has the ETag `base`;
*   it is void: neither. No writer can make it true any more, since none can commit on `base`.

A void row may be deleted by anybody, at any time. A row of the second kind may not, until somebody
has fenced its base: see `JobPartitions.fence`. That is the whole of the repair.

    timers       <kind>            <moment>!<job>!<token>     one per job that is not terminal
    pending      <kind>!<lane>     <moment>!<outbox>!<token>  what workflows are to be told, and
                                                              INVOCATIONs
                 DIRECTIVE_QUEUE!<lane>!<service>!<mode>!<tenant>, directives to publish
    states       CANCELLING, ...   <job>!<token>
    ended        ENDED             <moment>!<job>!<token>
    deadletters  <month>           <moment>!<letter>!<token>  newest first
    webhooks     WEBHOOK           DUE!<moment>!<job>!<token>!<position>, see `webhooks`
    joblist      <tenant>!<month>  <job>                      newest first, without a token: true as
                                                              soon as there is a job of this id

Directives of one queue (a service, a mode and a tenant) and lane have a partition of their own, so
that a dispatcher finds each queue, and its oldest rows, at a cost that does not grow with the rows
that wait. The previous release put those of a lane into one partition, `DIRECTIVE!<lane>`; its rows
are found there, and the new partitions lie where it does not look, since it would not know what to
make of them. It repairs and ends the rows in them all the same.

The row in `timers` is also the job's leash: it is written before anything else of a creation, and
deleted after all that follows the job's end. Whatever a crash leaves behind (an idempotency entry,
in-flight slots, a row of the job list) is reached from it.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from lucius_contract.routing import Mode
from lucius_contract.states import JobState, OutboxState
from lucius_orchestrator.adapters.ledger.outbox_rows import QUEUED_KINDS
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.partition import (
    JOBS,
    Head,
    IndexRow,
    JobPartitions,
    Place,
    letter_key,
)
from lucius_orchestrator.adapters.ledger.tables.store import (
    Delete,
    EntityExists,
    Insert,
    NotFound,
    Row,
    Tables,
    Values,
)
from lucius_orchestrator.domain.aggregate import Job
from lucius_orchestrator.domain.decision import DirectiveRow, OutboxKind, OutboxRow
from lucius_orchestrator.domain.timers import Due
from lucius_orchestrator.ports.ledger import DeadLetterRow, Queue
from lucius_orchestrator.ports.webhooks import webhooks_of

TIMERS = "timers"
PENDING = "pending"
QUEUES = f"{OutboxKind.DIRECTIVE.value}_QUEUE"
"""Sorts right behind the partitions of the previous release, so that one range holds both."""
STATES = "states"
ENDED = "ended"
LETTERS = "deadletters"
WEBHOOKS = "webhooks"
JOBLIST = "joblist"
WEBHOOK = "WEBHOOK"
WEBHOOK_DUE = "DUE"
_PAGE = 100
WAITING = frozenset({JobState.CANCELLING, JobState.PAUSING})
"""The states by which jobs can be found."""

Etags = dict[Place, str | None]


class Intent(NamedTuple):
    """A commit that is about to be made; it makes the index rows that announce it."""

    job_id: str
    base: str
    token: str
    now: datetime

    def leash(self, due: Due, **reach: Any) -> IndexRow:
        """`reach` is what a creation has to undo if it fails."""
        row = keys.key(keys.moment(due.at), self.job_id, self.token)
        return self._row(Place(TIMERS, due.kind.value, row), due=due, **reach)

    def pending(self, row: OutboxRow, lane: int, until: datetime | None = None) -> IndexRow:
        """`until`: claimed at birth, for so long."""
        key = keys.key(keys.moment(row.created_at), row.outbox_id, self.token)
        queue = queue_of(row)
        partition = queue_partition(queue, lane) if queue else pending_partition(row.kind, lane)
        return self._row(
            Place(PENDING, partition, key),
            **(queue._asdict() if queue else {}),
            outbox_id=row.outbox_id,
            due_at=row.created_at,
            until=until,
            tries=0,
            error=None,
        )

    def state(self, state: JobState) -> IndexRow:
        return self._row(Place(STATES, state.value, keys.key(self.job_id, self.token)))

    def ended(self, at: datetime) -> IndexRow:
        row = keys.key(keys.moment(at), self.job_id, self.token)
        return self._row(Place(ENDED, ENDED.upper(), row))

    def webhooks(self, job: Job, ended: Place) -> list[IndexRow]:
        """What the job's addresses are told of its end, whose row this is."""
        messages = webhooks_of(job) if job.callback_urls else ()
        return [
            self._row(
                Place(WEBHOOKS, WEBHOOK, f"{WEBHOOK_DUE}!{ended.row}!{position:02d}"),
                ended=ended,
                event_id=message.dedupe_key,
                topic=message.topic,
                payload=message.payload,
                due_at=job.completed_at or self.now,
                until=None,
                attempts=0,
                reclaims=0,
                error=None,
                moved_by=None,
            )
            for position, message in enumerate(messages)
        ]

    def letter(self, letter: DeadLetterRow) -> IndexRow:
        place = letter_place(letter, self.token)
        return IndexRow(place, letter_values(letter, self.base, self.now))

    def _row(self, place: Place, **values: Any) -> IndexRow:
        common = {"job_id": self.job_id, "base": self.base, "written_at": self.now}
        return IndexRow(place, {**common, **values})


def listed(tenant_id: str, job_id: str) -> Place:
    partition = f"{keys.part(tenant_id)}!{keys.month_of_job(job_id)}"
    return Place(JOBLIST, partition, keys.descending(job_id))


def pending_partition(kind: OutboxKind, lane: int) -> str:
    return f"{kind.value}!{lane:02d}"


def queue_partition(queue: Queue, lane: int) -> str:
    return keys.key(QUEUES, f"{lane:02d}", queue.service, queue.mode.value, queue.tenant_id)


def queue_of(row: OutboxRow) -> Queue | None:
    """Return the queue that a row waits in. None: the row is not looked for by queue."""
    if not isinstance(row, DirectiveRow) or row.kind not in QUEUED_KINDS:
        return None
    return Queue(row.service, Mode(row.body["mode"]), row.body["tenant_id"])


def letter_place(letter: DeadLetterRow, token: str) -> Place:
    row = keys.key(keys.moment_descending(letter.first_at), letter.id, token)
    return Place(LETTERS, keys.month_descending(letter.first_at), row)


def letter_values(letter: DeadLetterRow, base: str | None, now: datetime) -> Values:
    """`base` is None for a letter that no commit writes."""
    return {
        "job_id": letter.job_id,
        "base": base,
        "written_at": now,
        "letter_id": letter.id,
        "first_at": letter.first_at,
        "tenant_id": letter.tenant_id,
        "kind": letter.kind,
        "code": letter.code,
    }


def letter_partition(job_id: str | None, letter_id: str) -> str:
    """Beside its job; a letter of no job has a partition of its own."""
    return keys.part(job_id) if job_id is not None else keys.key("letter", letter_id)


class Indexes:
    def __init__(self, tables: Tables, jobs: JobPartitions) -> None:
        self._tables = tables
        self._jobs = jobs

    async def announce(self, rows: Iterable[IndexRow]) -> Etags:
        """The ETags of the rows; those that were there before are left out."""
        etags: Etags = {}
        for (table, partition, row), values in rows:
            with suppress(EntityExists):
                (etag,) = await self._tables.batch(table, partition, [Insert(row, values)])
                etags[Place(table, partition, row)] = etag
        return etags

    async def drop(self, *places: Place) -> None:
        for table, partition, row in places:
            with suppress(NotFound):
                await self._tables.batch(table, partition, [Delete(row)])

    async def withdraw(self, rows: Iterable[IndexRow]) -> None:
        """Take back what announced a commit that failed. It may have been made all the same, by a
        request whose answer was lost."""
        for row in rows:
            if not await self.stands(row):
                await self.drop(row.place)

    async def in_states(self, states: Iterable[JobState], limit: int) -> list[str]:
        """Jobs that are in one of the states; rows of jobs that left it are deleted on the way."""
        found: set[str] = set()
        for state in states:
            first = ""
            while rows := await self._tables.query(STATES, state.value, first, keys.END, _PAGE):
                for row in rows:
                    if len(found) == limit:
                        return sorted(found)
                    if await self._is_in_state(row):
                        found.add(row.values["job_id"])
                first = rows[-1].key + "!"
        return sorted(found)

    async def _is_in_state(self, row: Row) -> bool:
        head = await self._jobs.head(row.values["job_id"])
        if head is not None and head.job is not None and head.job.state.value == row.partition:
            return True
        if head is None or head.etag != row.values["base"]:
            await self.drop(Place(STATES, row.partition, row.key))
        return False

    async def stands(self, row: IndexRow) -> bool:
        """Whether what the row says is so. To be asked after its base was fenced, if the row is to
        be deleted for it."""
        table, job_id = row.place.table, row.values["job_id"]
        if table == PENDING:
            outbox = await self._jobs.outbox(job_id, row.values["outbox_id"])
            return _names(outbox and outbox.pending, row) and _is_pending(outbox and outbox.state)
        if table == LETTERS:
            return await self._letter_stands(row)
        head = await self._jobs.head(job_id)
        return head is not None and _agrees(head, row)

    async def _letter_stands(self, row: IndexRow) -> bool:
        letter_id, job_id = row.values["letter_id"], row.values["job_id"]
        partition = letter_partition(job_id, letter_id)
        letter = await self._tables.get(JOBS, partition, letter_key(letter_id))
        return letter is not None and _names(letter.values["index"], row)


def _agrees(head: Head, row: IndexRow) -> bool:
    table = row.place.table
    if table == WEBHOOKS:
        return bool(head.ended == row.values["ended"])  # a tombstone still names the end
    if head.job is None:
        return False
    if table == STATES:
        return head.job.state.value == row.place.partition
    if table == ENDED:
        return _names(head.ended, row)
    return _names(head.leash, row) and not head.is_terminal


def _names(place: Place | None, row: IndexRow) -> bool:
    return place == row.place


def _is_pending(state: OutboxState | None) -> bool:
    return state is OutboxState.PENDING
