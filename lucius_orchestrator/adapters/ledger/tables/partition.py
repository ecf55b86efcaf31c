"""The partition of a job: all that one batch can change together.

    EVENT!0000000007      lines of its history, some together, named after the last of them
    JOB                   the head: every commit replaces it on its ETag, which is the job's version
    JOB!STEP!00           a step; JOB and its steps are one range, so that a load reads no events
    LETTER!<id>           a dead letter; outlives the job
    OUTBOX!<id>           something to send, and where in the index of such rows its own stands

Values are the domain's own objects: how they are spelled is for a store that keeps text to say.

Where a job will never be, or is no more, a JOB row without a job may stand: a tombstone. It is
final. Whoever finds one knows that no job of this id will come, and so does a creator that was
stalled for long: its insert fails. A row in the table `graves`, written before the tombstone, leads
back to it when it may be pruned.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from lucius_contract.states import TERMINAL_JOB_STATES, OutboxState
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.store import (
    EntityExists,
    EtagMismatch,
    Insert,
    Merge,
    NotFound,
    Operation,
    Row,
    Tables,
    Values,
)
from lucius_orchestrator.domain.aggregate import Aggregate, Job
from lucius_orchestrator.domain.decision import (
    AuditEvent,
    Decision,
    DirectiveRow,
    OutboxRow,
)
from lucius_orchestrator.domain.timers import Due
from lucius_orchestrator.ports.ledger import LedgerUnavailable, Stored

JOBS = "jobs"
GRAVES = "graves"
GRAVE = "GRAVE"
JOB = "JOB"
AGGREGATE = ("JOB", 'JOB"')
STEP_ROWS, EVENT_ROWS, LETTER_ROWS, OUTBOX_ROWS = map(
    keys.below, ("JOB", "EVENT", "LETTER", "OUTBOX")
)
ABSENT = ""
"""What a creation builds on: the ETag of a JOB row that was never written."""

RACES = 100
"""How often a write that others overtook is tried again. Each time, one of the others got on."""

_MOST_ROWS = 100
"""Of a job with its steps, and one more."""

_EVENTS_IN_A_ROW = 10
"""One event in a row would not leave room for a burst of replies in a batch."""


class Place(NamedTuple):
    """Where a row stands."""

    table: str
    partition: str
    row: str


class IndexRow(NamedTuple):
    """A row that leads to the job from outside its partition."""

    place: Place
    values: Values


class TableVersion(NamedTuple):
    """`leash` is where the job's row of the timer index stands."""

    etag: str
    leash: Place


class Head(NamedTuple):
    """The JOB row. Without a job it is a tombstone; `token` names the commit that wrote it last."""

    etag: str
    job: Job | None
    token: str
    timer: Due | None
    leash: Place | None
    ended: Place | None
    tenant_id: str
    entry: str

    @property
    def is_tombstone(self) -> bool:
        return self.job is None

    @property
    def is_terminal(self) -> bool:
        return self.job is not None and self.job.state in TERMINAL_JOB_STATES


class Read(NamedTuple):
    """A JOB row, and the job if it holds one."""

    head: Head | None
    stored: Stored | None


class Written(NamedTuple):
    """The new ETags: of the JOB row, and of all that were written."""

    etag: str
    etags: Mapping[Place, str | None]


class Outgoing(NamedTuple):
    """An OUTBOX row. The state is that of a directive: what a workflow is told of is PENDING for as
    long as its index row is there, and nobody marks it."""

    etag: str
    row: OutboxRow
    state: OutboxState
    pending: Place


class JobPartitions:
    def __init__(self, tables: Tables, clock: Callable[[], datetime]) -> None:
        self._tables = tables
        self._clock = clock

    async def head(self, job_id: str) -> Head | None:
        row = await self._tables.get(JOBS, keys.part(job_id), JOB)
        return _head(row) if row else None

    async def load(self, job_id: str) -> Stored | None:
        return (await self.read(job_id)).stored

    async def read(self, job_id: str) -> Read:
        """The job and its head, as of one moment."""
        return _read(await self._tables.query(JOBS, keys.part(job_id), *AGGREGATE, _MOST_ROWS))

    async def load_with_outbox(self, job_id: str, outbox_id: str) -> tuple[Read, Outgoing | None]:
        """The same with one of its OUTBOX rows."""
        key = outbox_key(outbox_id)
        partition = keys.part(job_id)
        rows = await self._tables.query(JOBS, partition, *AGGREGATE, _MOST_ROWS, also=key)
        if not rows or rows[-1].key != key:
            return _read(rows), None
        return _read(rows[:-1]), outgoing(rows[-1])

    async def outbox(self, job_id: str, outbox_id: str) -> Outgoing | None:
        row = await self._tables.get(JOBS, keys.part(job_id), outbox_key(outbox_id))
        return outgoing(row) if row else None

    async def events(self, job_id: str, after: int, limit: int) -> list[AuditEvent]:
        first, end = event_key(after + 1), EVENT_ROWS[1]
        rows = await self._tables.query(JOBS, keys.part(job_id), first, end, limit)
        events = (event for row in rows for event in row.values["events"] if event.seq > after)
        return list(islice(events, limit))

    async def write(self, job_id: str, operations: Sequence[Operation]) -> Written:
        """All rows or none; the first is JOB."""
        etags = await self._tables.batch(JOBS, keys.part(job_id), operations)
        assert etags[0] is not None, "JOB is written, not deleted"
        rows = zip(operations, etags, strict=True)
        partition = keys.part(job_id)
        places = {Place(JOBS, partition, operation.row): etag for operation, etag in rows}
        return Written(etags[0], places)

    async def fence(self, job_id: str, base: str) -> None:
        """See to it that no commit on top of `base` can come any more: it came, or never will."""
        for _ in range(RACES):
            head = await self.head(job_id)
            if head is None and base == ABSENT:
                await self.entomb(job_id)
            elif head is None or head.etag != base:
                return
            else:
                await self._touch(job_id, head.etag)
        raise LedgerUnavailable(f"{job_id} is written too often to be fenced")

    async def entomb(self, job_id: str) -> bool:
        """Put a tombstone where no job is. Whether there is one now."""
        await self.dig(job_id)
        try:
            await self.write(job_id, [Insert(JOB, {})])
        except EntityExists:
            head = await self.head(job_id)
            return head is not None and head.is_tombstone
        return True

    async def dig(self, job_id: str) -> None:
        """Let the tombstone that is to come be found by who prunes."""
        row = keys.moment(self._clock()) + "!" + keys.part(job_id)
        with suppress(EntityExists):
            await self._tables.batch(GRAVES, GRAVE, [Insert(row, {"job_id": job_id})])

    async def _touch(self, job_id: str, etag: str) -> None:
        with suppress(EtagMismatch, NotFound):
            await self.write(job_id, [Merge(JOB, {"fenced_at": self._clock()}, etag)])


def _head(row: Row) -> Head:
    value = row.values.get
    return Head(
        row.etag,
        value("job"),
        value("token", ""),
        value("timer"),
        value("leash"),
        value("ended"),
        value("tenant_id", ""),
        value("entry", ""),
    )


def _read(rows: Sequence[Row]) -> Read:
    head = _head(rows[0]) if rows and rows[0].key == JOB else None
    if head is None or head.job is None or head.leash is None:
        return Read(head, None)
    aggregate = Aggregate(head.job, tuple(row.values["step"] for row in rows[1:]))
    return Read(head, Stored(aggregate, TableVersion(head.etag, head.leash), head.timer))


def outgoing(row: Row) -> Outgoing:
    values = row.values
    state = values.get("state", OutboxState.PENDING)
    return Outgoing(row.etag, values["row"], state, values["pending"])


def outbox_key(outbox_id: str) -> str:
    return keys.key("OUTBOX", outbox_id)


def event_key(seq: int) -> str:
    return f"EVENT!{seq:010d}"


def letter_key(letter_id: str) -> str:
    return keys.key("LETTER", letter_id)


def step_key(index: int) -> str:
    return f"JOB!STEP!{index:02d}"


def creation(aggregate: Aggregate, head: dict[str, Any]) -> list[Operation]:
    """A new job with its steps."""
    rows: list[Operation] = [Insert(JOB, {**head, "job": aggregate.job})]
    rows += [Insert(step_key(step.step_index), {"step": step}) for step in aggregate.steps]
    return rows


def changes(
    after: Aggregate, decision: Decision, head: dict[str, Any], etag: str
) -> list[Operation]:
    """What a decision changes of the job and its steps."""
    rows: list[Operation] = [Merge(JOB, {**head, "job": after.job}, etag)]
    rows += [Merge(step_key(index), {"step": after.steps[index]}) for index in decision.steps]
    return rows


def additions(decision: Decision, pending: Iterable[IndexRow]) -> list[Operation]:
    """The rows that are new with a decision: what it sends and its events."""
    rows: list[Operation] = [
        Insert(outbox_key(row.outbox_id), _outgoing_values(row, index.place))
        for row, index in zip(decision.outbox, pending, strict=True)
    ]
    for first in range(0, len(decision.events), _EVENTS_IN_A_ROW):
        events = decision.events[first : first + _EVENTS_IN_A_ROW]
        rows.append(Insert(event_key(events[-1].seq), {"events": events}))
    return rows


def _outgoing_values(row: OutboxRow, pending: Place) -> Values:
    values = {"row": row, "pending": pending}
    return {**values, "state": OutboxState.PENDING} if isinstance(row, DirectiveRow) else values
