"""One face for the two who judge replies: the mock, and the orchestrator that it plays."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from lucius_contract.messages import CallbackUrls, Directive
from lucius_orchestrator.domain.aggregate import Aggregate, ReplyVia
from orchestrator_mock import Fault, Recording

SERVICE, STEP_TYPE, TENANT = "ocr", "OCR", "acme"
ACK_TIMEOUT = LEASE = timedelta(seconds=60)
HEARTBEAT = timedelta(seconds=20)
MAX_ATTEMPTS = 3
AT_ONCE = (timedelta(0),)


class Outgoing(NamedTuple):
    """A directive as the bus carries it; `lives` is for how many seconds yet."""

    message_id: str
    partition_key: str | None
    properties: Mapping[str, Any]
    lives: int
    raw: bytes


class AttemptSeen(NamedTuple):
    """What a ledger has of one attempt; of ids, times and digests only whether there is one."""

    attempt_no: int
    is_sent: bool
    is_acknowledged: bool
    is_completed: bool
    outcome: str | None
    ended_by: str | None
    error_code: str | None
    has_result: bool
    ignored_replies: int


class Seen(NamedTuple):
    """What a ledger has of a job; `events` is how many it has recorded."""

    job: str
    step: str
    events: int
    refusals: int
    error_code: str | None
    stray_replies: int
    progress: Any
    artifacts: int
    attempts: tuple[AttemptSeen, ...]

    @property
    def states(self) -> tuple[str, str]:
        return self.job, self.step


def seen(aggregate: Aggregate) -> Seen:
    job, (step,) = aggregate
    attempts = tuple(
        AttemptSeen(
            each.attempt_no,
            each.sent_at is not None,
            each.acknowledged_at is not None,
            each.completed_at is not None,
            each.outcome,
            each.ended_by,
            each.error_code,
            each.result_digest is not None,
            each.ignored_replies,
        )
        for each in step.attempts
    )
    return Seen(
        job.state,
        step.state,
        job.seq,
        job.refusals,
        job.error_code,
        step.stray_replies,
        step.progress,
        len(step.artifacts),
        attempts,
    )


class Target(Protocol):
    """Jobs have one step, of the policy above, and one tenant, so all are on one lane."""

    recording: Recording
    """What came to the callbacks where faults strike."""

    @property
    def connection_string(self) -> str:
        """Of its bus, for a service."""

    def faulty_urls(self, directive: Directive) -> CallbackUrls:
        """Where faults strike: before the orchestrator that is another address than the
        directive's own."""

    def now(self) -> datetime:
        """By the clock that its leases are counted with."""

    async def submit(
        self, via: ReplyVia = ReplyVia.HTTP, *, lease: timedelta = LEASE, marked: bool = True
    ) -> Directive:
        """The directive of a new job, as a service reads it. Not `marked`: it is out, and its
        sender does not know that yet."""

    def message(self, job_id: str) -> Outgoing:
        """The last directive of the job."""

    async def expire(self, job_id: str) -> bool:
        """The ACK timeout or the lease of the attempt runs out and is noticed. False if there is
        no attempt that could."""

    async def outlive_lease(self, job_id: str) -> None:
        """The lease is over, and nobody has noticed."""

    async def next_attempt(self, job_id: str) -> Directive | None:
        """The directive of the attempt that follows a failed one; None if none does."""

    async def cancel(self, job_id: str) -> bool:
        """Whether that was allowed."""

    async def seen(self, job_id: str) -> Seen: ...

    @property
    def taken(self) -> int:
        """How many replies came over the bus and were dealt with."""

    async def expect(self, job_id: str) -> int:
        """A reply of the job is about to be sent over the bus; the number by which to ask for its
        verdict."""

    async def verdict(self, number: int) -> str:
        """What became of the reply of this number, once it was dealt with: a verdict, or the code
        of a refusal."""

    async def add_fault(self, fault: Fault) -> None: ...

    async def clear_faults(self) -> None: ...
