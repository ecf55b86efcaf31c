"""`decide`: the one function that says what an event means. See the package's own text."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.domain import attempts, commands, publishing, replies, timers
from lucius_orchestrator.domain.aggregate import Aggregate
from lucius_orchestrator.domain.decision import Decision
from lucius_orchestrator.domain.draft import Draft, Fresh, IllegalTransitionError
from lucius_orchestrator.domain.events import (
    AckReceived,
    AckTimedOut,
    AttemptOpened,
    CancelRequested,
    CeilingReached,
    DispatchStale,
    Event,
    HeartbeatReceived,
    LeaseExpired,
    OutboxFailed,
    OutboxSent,
    OutboxSuperseded,
    PauseRequested,
    PublishDelayed,
    ResultReceived,
    ResumeRequested,
    RetryDue,
    SlaExceeded,
    Submitted,
    TurnGranted,
    WorkflowLost,
)
from lucius_orchestrator.domain.workflow import with_signal

_HANDLERS: Mapping[type[Event], Callable[[Draft, Any], Decision]] = {
    Submitted: commands.on_submitted,
    AttemptOpened: attempts.on_attempt_opened,
    TurnGranted: attempts.on_turn_granted,
    WorkflowLost: attempts.on_workflow_lost,
    CancelRequested: commands.on_cancel,
    PauseRequested: commands.on_pause,
    ResumeRequested: commands.on_resume,
    OutboxSent: publishing.on_sent,
    OutboxFailed: publishing.on_failed,
    OutboxSuperseded: publishing.on_superseded,
    PublishDelayed: publishing.on_delayed,
    DispatchStale: publishing.on_stale,
    AckReceived: replies.on_ack,
    HeartbeatReceived: replies.on_heartbeat,
    ResultReceived: replies.on_result,
    AckTimedOut: timers.on_attempt_over,
    LeaseExpired: timers.on_attempt_over,
    CeilingReached: timers.on_attempt_over,
    RetryDue: timers.on_retry_due,
    SlaExceeded: timers.on_sla_exceeded,
}


def decide(aggregate: Aggregate, event: Event, now: datetime, fresh: Fresh) -> Decision:
    """What `event` changes in the job, given that it is `now`.

    Pure: the same arguments give the same decision. It never raises for what a job, a service or a
    caller does; what no transition table allows comes back as a refusal.
    """
    draft = Draft(aggregate, now, fresh, getattr(event, "by", None))
    try:
        decision = _HANDLERS[type(event)](draft, event)
    except IllegalTransitionError as illegal:
        return draft.refused(ErrorCode.STATE_CONFLICT, str(illegal), type(event).__name__)
    return with_signal(aggregate, event, decision, now)
