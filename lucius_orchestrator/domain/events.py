"""What can happen to a job. Events say what was observed; `decide` says what it means."""

from dataclasses import dataclass
from datetime import datetime

import pydantic_core

from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Ack, Outcome, Reply, Result
from lucius_contract.states import OutboxState
from lucius_orchestrator.domain.aggregate import JsonObject

ERROR_MESSAGE_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class OfAttempt:
    step_id: str
    attempt_no: int
    lease_id: str


@dataclass(frozen=True, slots=True)
class Submitted:
    """The job was accepted; its rows are new."""


@dataclass(frozen=True, slots=True)
class AttemptOpened(OfAttempt):
    """The job's workflow opens an attempt, under a lease that it made."""

    lease_expires_at: datetime
    tenant_id: str
    admitted: bool = True
    """Whether the service has room, and nothing waits before it."""


@dataclass(frozen=True, slots=True)
class TurnGranted:
    """The service has room for an attempt that waits for its turn."""

    step_id: str
    attempt_no: int


@dataclass(frozen=True, slots=True)
class WorkflowLost:
    """The job's workflow is closed or missing; `status` is what Temporal says of it."""

    status: str
    by: str | None = None


@dataclass(frozen=True, slots=True)
class OutboxSent(OfAttempt):
    """The bus has accepted the attempt's directive."""


@dataclass(frozen=True, slots=True)
class OutboxFailed(OfAttempt):
    """The attempt's directive can never be published."""

    code: ErrorCode = ErrorCode.DISPATCH_FAILED
    message: str = ""


@dataclass(frozen=True, slots=True)
class OutboxSuperseded(OfAttempt):
    """The attempt's directive was found unpublished when it was no longer wanted."""


@dataclass(frozen=True, slots=True)
class PublishDelayed(OfAttempt):
    """The directive is about to go out so late that its lease would not cover the work."""


@dataclass(frozen=True, slots=True)
class ReplyReceived(OfAttempt):
    tenant_id: str


@dataclass(frozen=True, slots=True)
class AckReceived(ReplyReceived):
    """`capacity`: the instance that sent it and how many slots it has. Nothing is decided by it."""

    capacity: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatReceived(ReplyReceived):
    """`capacity` as in an ACK."""

    progress: JsonObject | None = None
    capacity: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class ResultReceived(ReplyReceived):
    outcome: Outcome
    digest: str
    error_code: str | None = None
    error_message: str | None = None
    artifacts: tuple[JsonObject, ...] = ()
    artifacts_bytes: int = 0
    output_ref: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class AttemptTimer(OfAttempt):
    """A deadline of one attempt has passed; `by` names who noticed, for the audit trail."""

    deadline: datetime
    by: str | None = None


@dataclass(frozen=True, slots=True)
class AckTimedOut(AttemptTimer):
    """`absent`: nothing at all was heard from the service since the directive was sent."""

    absent: bool = False


@dataclass(frozen=True, slots=True)
class LeaseExpired(AttemptTimer):
    pass


@dataclass(frozen=True, slots=True)
class CeilingReached(AttemptTimer):
    pass


@dataclass(frozen=True, slots=True)
class RetryDue(AttemptTimer):
    pass


@dataclass(frozen=True, slots=True)
class DispatchStale(AttemptTimer):
    """A step has been DISPATCHING for long; `row` is the state of its outbox row."""

    row: OutboxState = OutboxState.PENDING


@dataclass(frozen=True, slots=True)
class SlaExceeded:
    deadline: datetime
    by: str | None = None


@dataclass(frozen=True, slots=True)
class CancelRequested:
    by: str | None = None


@dataclass(frozen=True, slots=True)
class PauseRequested:
    by: str | None = None


@dataclass(frozen=True, slots=True)
class ResumeRequested:
    by: str | None = None


TimerOfAttempt = AckTimedOut | LeaseExpired | CeilingReached | RetryDue | DispatchStale
Timer = TimerOfAttempt | SlaExceeded
Command = CancelRequested | PauseRequested | ResumeRequested
ReplyEvent = AckReceived | HeartbeatReceived | ResultReceived
Event = (
    Submitted
    | AttemptOpened
    | TurnGranted
    | WorkflowLost
    | OutboxSent
    | OutboxFailed
    | OutboxSuperseded
    | PublishDelayed
    | ReplyEvent
    | Timer
    | Command
)


def from_reply(reply: Reply) -> ReplyEvent:
    """A message from a service as an event."""
    identity = (reply.step_id, reply.attempt_no, reply.lease_id, reply.tenant_id)
    if isinstance(reply, Result):
        return _from_result(reply)
    capacity = (reply.capacity.instance_id, reply.capacity.slots) if reply.capacity else None
    if isinstance(reply, Ack):
        return AckReceived(*identity, capacity=capacity)
    progress = reply.progress.to_json() if reply.progress else None
    return HeartbeatReceived(*identity, progress=progress, capacity=capacity)


def _from_result(result: Result) -> ResultReceived:
    artifacts = tuple(artifact.to_json() for artifact in result.artifacts)
    error = result.error
    return ResultReceived(
        result.step_id,
        result.attempt_no,
        result.lease_id,
        result.tenant_id,
        outcome=result.outcome,
        digest=result.content_digest(),
        error_code=error.code if error else None,
        error_message=error.message[:ERROR_MESSAGE_LIMIT] if error else None,
        artifacts=artifacts,
        artifacts_bytes=len(pydantic_core.to_json(artifacts)),
        output_ref=result.output_ref.to_json() if result.output_ref else None,
    )
