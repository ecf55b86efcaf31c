"""The ledger: where jobs live. A port of domain verbs that every backend keeps in the same way.

A job is one unit of consistency: its JOB, STEP, OUTBOX and EVENT rows change together or not at
all. Its *version* is that of the JOB row, which every commit moves; a commit names the version that
it builds on, and fails with `Conflict` if another one came first. Nothing else is atomic: what
leads to jobs from outside (idempotency entries, lists, timers, pending directives, in-flight slots)
may name too much or too early, never too little or too late, and whoever follows it reads the job
before acting. SQL backends do better than that; nobody may rely on it.

Errors, by what the caller should do:

    LedgerError
    ├── Conflict               the job moved: load it, decide again
    ├── IdempotencyConflict    tell the client that the key stands for other content
    ├── Saturated              tell the client to come back later
    ├── InvalidCursor          tell the client to begin at the first page
    ├── UnknownSchema          install the release that made the schema, or migrate it
    └── LedgerUnavailable      try again later; what was asked may or may not have been done
        └── TooLarge           tell the client: another try will not do; nothing was written

No other exception leaves an adapter. Every verb answers only when what it says is durable.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Generic, NamedTuple, Protocol, TypeVar

from lucius_contract.audit import DeadLetterKind
from lucius_contract.routing import LANES, Mode
from lucius_contract.states import JobState, OutboxState
from lucius_orchestrator.domain.aggregate import Aggregate, Job
from lucius_orchestrator.domain.decision import (
    AuditEvent,
    DeadLetter,
    Decision,
    OutboxKind,
    OutboxRow,
)
from lucius_orchestrator.domain.timers import Due, TimerKind, next_due

T = TypeVar("T")

ALL_LANES = range(LANES)

Version = Hashable
"""Opaque: two versions are equal or they are not."""


class LedgerError(Exception):
    """Base of all errors of a ledger."""


class Conflict(LedgerError):
    """The job is not at the version that the commit builds on, or is gone. `found` is what it is
    now, if the ledger has seen it."""

    def __init__(self, job_id: str, found: "Stored | None" = None) -> None:
        super().__init__(f"{job_id} was changed meanwhile")
        self.job_id = job_id
        self.found = found


class IdempotencyConflict(LedgerError):
    """The entry stands for a request with other content."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"the idempotency key belongs to {job_id}, which has other content")
        self.job_id = job_id


class Scope(StrEnum):
    """Whose jobs in flight are counted."""

    TENANT = "TENANT"
    GLOBAL = "GLOBAL"
    MODE = "MODE"


class Saturated(LedgerError):
    """As many jobs are in flight as the limit allows."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(f"the {scope.lower()} limit of jobs in flight is reached")
        self.scope = scope


class InvalidCursor(LedgerError):
    """Not a cursor that this ledger gave."""


class UnknownSchema(LedgerError):
    """The store holds tables of another release."""


class LedgerUnavailable(LedgerError):
    """The backend could not be reached or could not do it now."""


class TooLarge(LedgerUnavailable):
    """The backend cannot hold rows of this size."""


class Stored(NamedTuple):
    """A job as it was read or committed.

    `timer` is what the timer index says of it: at or before its next deadline; None when it is
    terminal.
    """

    aggregate: Aggregate
    version: Version
    timer: Due | None


class Reservation(NamedTuple):
    """An idempotency entry: per tenant, and unique there.

    `entry` has a prefix that says what it is made of (`key:`, `hash:`, `redrive:`); `content_hash`
    tells whether two requests that share it are the same. `job_id` is the id proposed for the job.
    """

    tenant_id: str
    entry: str
    content_hash: str
    job_id: str


class NewJob(NamedTuple):
    """A job to be created: its rows after the first decision, and that decision."""

    aggregate: Aggregate
    decision: Decision


class Limits(NamedTuple):
    """How many jobs may be in flight, the new one included; None: as many as come."""

    tenant: int | None = None
    total: int | None = None
    mode: int | None = None


class Created(NamedTuple):
    """`stored` is None when the entry was there before: then `job_id` is the earlier job's."""

    job_id: str
    stored: Stored | None


class Found(NamedTuple):
    """The job that an idempotency entry stands for."""

    job_id: str
    content_hash: str


class JobQuery(NamedTuple):
    """Newest first. None: any."""

    tenant_id: str | None = None
    state: JobState | None = None
    request_type: str | None = None
    since: datetime | None = None
    limit: int = 50
    cursor: str | None = None


class DeadLetterQuery(NamedTuple):
    """Newest first. None: any."""

    tenant_id: str | None = None
    kind: DeadLetterKind | None = None
    code: str | None = None
    limit: int = 50
    cursor: str | None = None


class Page(NamedTuple, Generic[T]):
    """`cursor` asks for what follows; None: there is nothing more. A page may hold less than was
    asked for, even nothing, and still have a cursor."""

    items: tuple[T, ...]
    cursor: str | None


class DeadLetterRow(NamedTuple):
    """`id` is the same for the same failure, so that it is kept once however often it is reported;
    `first_at` and `last_at` say when it was, `redriven_by` which job took it up again."""

    id: str
    kind: DeadLetterKind
    tenant_id: str | None
    job_id: str | None
    step_id: str | None
    attempt_no: int | None
    code: str
    message: str
    first_at: datetime
    last_at: datetime
    redriven_by: str | None = None


class Claim(NamedTuple):
    """An OUTBOX row that a dispatcher holds for a while. `tries` counts the publishes that failed
    before; `token` is how the ledger knows the claim again; `version` is the job's at the moment of
    the claim and `stored` the job, None if the ledger did not look."""

    job_id: str
    kind: OutboxKind
    row: OutboxRow
    tries: int
    token: object
    version: Version | None = None
    stored: Stored | None = None


class Queue(NamedTuple):
    """Directives of one tenant that wait for one service, in one mode. They leave it in the order
    in which they became due."""

    service: str
    mode: Mode
    tenant_id: str


class Turns(Protocol):
    """Decides which queues are served next. A ledger asks it while it looks for directives; the
    answers cost no I/O."""

    def room(self, service: str) -> int:
        """Return how many more directives of the service may be claimed now."""

    def last(self, service: str, mode: Mode) -> Queue | None:
        """Return the queue that was served last: the list of queues begins behind it. None: at
        the first."""

    def allot(self, service: str, waiting: Sequence[Queue]) -> Mapping[Queue, int]:
        """Return how many directives to claim from each of the waiting queues, which come mode by
        mode, in the ledger's order of tenants, and begin again at the first behind the last one.
        The answer may name the last one too, though there was no room to list it.
        The sum is at most `room`."""


class TrafficReport(NamedTuple):
    """What one process has seen of services lately, for the other processes of the deployment.
    `document` is text of at most `REPORT_LIMIT` characters that only the engine reads."""

    process_id: str
    at: datetime
    document: str


REPORT_LIMIT = 24_000


class Backlog(NamedTuple):
    """Directives of one service in one lane that are not published yet. `oldest` is when the one
    that has waited longest was committed."""

    service: str
    lane: int
    waiting: int
    oldest: datetime


class DirectiveStatus(NamedTuple):
    """`claimable`: PENDING, due, and under no live claim."""

    state: OutboxState
    claimable: bool


class InFlight(NamedTuple):
    """Jobs that are not terminal: of all tenants, by mode, and of the tenant asked for."""

    total: int
    by_mode: dict[Mode, int]
    tenant: int


class Repair(NamedTuple):
    """What an index said, and what was made of it."""

    index_name: str
    key: str
    before: str
    after: str


class Adopter(Protocol):
    """A dispatcher that takes OUTBOX rows as they are committed."""

    def wants(self, row: OutboxRow) -> bool:
        """Return whether it has room for this row."""

    def take(self, claims: Sequence[Claim]) -> None:
        """Rows that this process has committed, claimed at birth, now that they are durable."""


class Ledger(Protocol):
    async def create(
        self, reservation: Reservation, build: Callable[[str], NewJob], limits: Limits
    ) -> Created:
        """Reserve the entry, take the in-flight slots and write the job.

        An entry that exists wins over the limits: with the same content the answer is the earlier
        job, with other content `IdempotencyConflict`. Otherwise a full limit is `Saturated`, the
        tenant's before the mode's before the global one. `build` makes the rows for a job id, which
        is the proposed one unless an earlier creator of the same entry left the job unwritten: then
        its id is used, so that both write the same job. Of N concurrent creations of one entry one
        creates, the others find it. In all failures nothing is left that counts.
        """

    async def load(self, job_id: str) -> Stored | None:
        """The job with its steps, or None."""

    async def commit(
        self, stored: Stored, decision: Decision, claim: Claim | None = None
    ) -> Stored:
        """Write all that the decision says, on top of `stored`, or nothing: then `Conflict`.

        That is: changed fields, new OUTBOX rows, marks, events, dead letters; the timer when it
        moves to an earlier moment; and when the job becomes terminal its in-flight slots are given
        back and its timer removed. A mark ends the row that `claim` holds; if the claim was lost,
        the row is left to the one who holds it now, and the rest is committed all the same.

        The webhooks (see `ports.webhooks`) of a job that becomes terminal are enqueued with it.
        """

    async def ready(self) -> None:
        """Wait while a commit would only wait: events that come until then can be committed with
        it. At once where commits do not wait for each other."""

    async def reschedule(self, stored: Stored, due: Due | None = None) -> Stored:
        """Let the timer index say `due`, which may be later than what it said; None: the job's next
        deadline. `Conflict` if the job moved."""

    async def find(self, tenant_id: str, entry: str) -> Found | None:
        """The job behind an idempotency entry, if it was written."""

    async def jobs(self, query: JobQuery) -> Page[Job]:
        """JOB rows, newest first (the order of their ids). A job created between two pages is on
        neither; one that exists is on exactly one, if it matches whenever it is looked at."""

    async def events(self, job_id: str, after: int = 0, limit: int = 100) -> list[AuditEvent]:
        """Events with a `seq` above `after`, in order, without gaps."""

    async def due(
        self, kinds: Collection[TimerKind], before: datetime, limit: int
    ) -> list[tuple[str, Due]]:
        """Job ids whose timer is of one of the kinds and at or before the moment, oldest first. The
        job's deadlines may have moved: load it."""

    async def in_states(self, states: Collection[JobState], limit: int) -> list[str]:
        """Ids of jobs in one of the states, which are among CANCELLING and PAUSING. Load them."""

    async def ended(self, before: datetime, limit: int) -> list[str]:
        """Ids of jobs that became terminal before the moment, oldest first."""

    async def remove(self, stored: Stored) -> None:
        """Remove a terminal job with all its rows, its idempotency entry first. Dead letters stay,
        and so do webhooks. `Conflict` if it moved; removing what is gone is nothing."""

    async def lead(self, lanes: Collection[int], lease: timedelta) -> frozenset[int]:
        """Of these lanes, those in which this ledger object alone should claim for as long as the
        lease; called again, for longer. Where claimers do not get in each other's way, all. Nobody
        is kept from claiming elsewhere: it only spares others the trouble."""

    async def claim(
        self,
        kind: OutboxKind,
        size: int,
        lease: timedelta,
        lanes: Collection[int] = ALL_LANES,
    ) -> list[Claim]:
        """Take up to `size` PENDING rows of the kind that are due, the oldest first, for the lease.
        No two claims hold a row at once; a lease is measured by the ledger's own clock. `lanes` are
        those that `lead` gave; a ledger that gives all need not look at them."""

    async def claim_in_turn(
        self, turns: Turns, lease: timedelta, lanes: Collection[int] = ALL_LANES
    ) -> list[Claim]:
        """Claim DIRECTIVE and TURN rows that are due, for the lease, as `turns` allots them to
        queues, in which both kinds stand together.

        Rows whose claim has lapsed are claimed first, whatever the room: their directives may be
        out already. Then every service with PENDING directives is asked for its `room`; where
        there is some, up to as many queues of each mode are listed behind the `last` one and handed
        to `allot`. A queue gives its oldest due rows, perhaps fewer than were allotted. Costs
        O(services + rows claimed), however many rows wait. `lanes` as in `claim`; rows of an older
        release that names no queue belong to the service "".
        """

    async def take(
        self, job_id: str, step_id: str, attempt_no: int, lease: timedelta
    ) -> Claim | None:
        """Claim the INVOCATION of an attempt by name, due or not, for as long as the lease. None:
        there is none, it is not PENDING, or another holds it."""

    def adopt(self, kind: OutboxKind, lease: timedelta, adopter: Adopter) -> Callable[[], None]:
        """Until the answer is called, claim rows of this kind that come with commits of this ledger
        object at once for the adopter, if it wants them. There is one adopter for a kind. A
        shortcut, which a ledger may leave out: `claim` finds every row that nobody was given. An
        INVOCATION is never claimed in these ways, and a TURN only in turn."""

    async def release(self, claims: Sequence[Claim]) -> None:
        """Nobody tried to publish them: due at once. Claims that were lost are passed over."""

    async def postpone(self, claims: Sequence[Claim], error: str) -> None:
        """The bus could not take them: due again after the dispatch backoff, without end. Claims
        that were lost are passed over."""

    async def discard(self, claims: Sequence[Claim]) -> None:
        """Nothing is left to do for them: end the rows. Claims that were lost are passed over."""

    async def directive(self, job_id: str, step_id: str, attempt_no: int) -> DirectiveStatus | None:
        """How the OUTBOX row of an attempt stands. A row that ended long ago may be gone."""

    async def in_flight(self, tenant_id: str | None = None) -> InFlight:
        """The counters that the limits look at."""

    async def backlog(self) -> dict[int, int]:
        """How many directives of each lane are not published yet, INVOCATIONs and TURNs among
        them; lanes without any are left out."""

    async def backlogs(self) -> list[Backlog]:
        """Return the DIRECTIVE and TURN rows that are PENDING, by service and lane. Costs
        O(backlog): for gauges, not for decisions on one job."""

    async def publish_report(self, report: TrafficReport) -> None:
        """Replace the report of this process."""

    async def reports(self, since: datetime) -> list[TrafficReport]:
        """Return the reports that were published at or after the moment, one per process. `prune`
        removes those that are older than its own moment."""

    async def withdraw_report(self, process_id: str) -> None:
        """Remove the report of a process that stops. Idempotent."""

    async def dead_letters(self, query: DeadLetterQuery) -> Page[DeadLetterRow]:
        """Dead letters, newest `first_at` first."""

    async def bury(self, letter: DeadLetterRow) -> bool:
        """Keep a dead letter that no commit wrote. One with its id: only `last_at` moves, False."""

    async def mark_redriven(self, job_id: str, by: str) -> int:
        """The job's dead letters were taken up by the job `by`; returns how many were marked. A
        letter that is marked already stays as it is."""

    async def repair(self, limit: int) -> list[Repair]:
        """Mend up to `limit` entries of indexes that no commit will mend, and say what was done. A
        writer that was stalled between an index row and its commit fails afterwards, or has
        succeeded: it is never half undone."""

    async def prune(self, before: datetime, limit: int) -> int:
        """Delete up to `limit` rows that ended before the moment and that no verb needs any more;
        returns how many. Jobs are not among them: see `remove`."""

    async def check(self) -> None:
        """Whether the ledger can be used: reachable, and of a schema that this release knows."""

    async def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` after commits of this or other processes that may have brought OUTBOX rows.
        Runs until cancelled; it may miss some, so polling stays necessary."""

    async def close(self) -> None:
        """Give back what it holds; closing twice is nothing."""


def timer_after(on_record: Due | None, aggregate: Aggregate) -> Due | None:
    """What the timer index must say after a commit: a later deadline is not worth a write."""
    due = next_due(aggregate)
    if due is None or on_record is None or due.at < on_record.at:
        return due
    return on_record


def dead_letter_rows(job: Job, letters: Sequence[DeadLetter]) -> list[DeadLetterRow]:
    """The rows of the dead letters that a decision writes; the same failure twice is one."""
    rows: dict[str, DeadLetterRow] = {}
    for letter in letters:
        letter_id = f"{job.job_id}.{letter.step_id or '-'}.{letter.attempt_no or 0}.{letter.kind}"
        first_at = rows[letter_id].first_at if letter_id in rows else letter.at
        rows[letter_id] = DeadLetterRow(
            letter_id,
            letter.kind,
            job.tenant_id,
            job.job_id,
            letter.step_id,
            letter.attempt_no,
            letter.code,
            letter.message,
            first_at,
            letter.at,
        )
    return list(rows.values())
