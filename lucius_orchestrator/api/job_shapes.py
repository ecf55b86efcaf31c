"""The shape of jobs, steps, attempts and events in answers."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from lucius_contract.audit import EventType
from lucius_contract.documents import Artifact, Ref
from lucius_contract.messages import Progress
from lucius_contract.routing import LANES, DecisionSource, Mode
from lucius_contract.states import JobState, JobStatus, StepState, StepStatus
from lucius_contract.transitions import StepTrigger
from lucius_orchestrator.api.shapes import Shape
from lucius_orchestrator.domain.aggregate import Engine


class Links(Shape):
    self: str
    steps: str
    events: str
    stream: str


class JobStanding(Shape):
    """A job and how it stands."""

    job_id: str = Field(alias="jobId")
    state: JobState
    status: JobStatus
    links: Links


class Accepted(JobStanding):
    """A job that was accepted, now or before."""

    duplicate: bool
    """The same request was accepted before, and this is its job."""


class FailureView(Shape):
    code: str
    message: str


class RouteView(Shape):
    mode: Mode
    lane: Annotated[int, Field(ge=0, lt=LANES)]
    routing_key_used: str
    decision_source: DecisionSource
    decision_reason: str


class AttemptView(RouteView):
    """One attempt of a step, with the routing that was pinned to it."""

    attempt_no: int
    dispatched_at: datetime
    sent_at: datetime | None
    acknowledged_at: datetime | None
    completed_at: datetime | None
    outcome: StepState | None
    ended_by: StepTrigger | None
    error: FailureView | None
    ignored_replies: int
    """Replies that changed nothing."""
    unanswered: bool
    """It ended while nothing was heard from the service at all, and does not count as a try."""


class StepView(Shape):
    step_id: str = Field(alias="stepId")
    step_index: int
    step_type: str
    service: str
    state: StepState
    status: StepStatus
    attempt_no: int
    max_attempts: int
    unanswered: int
    """Attempts that do not count, since nothing was heard from the service."""
    lease_expires_at: datetime | None
    next_attempt_at: datetime | None
    progress: Progress | None
    artifacts: list[Artifact]
    result_ref: Ref | None
    error: FailureView | None
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None
    attempts: list[AttemptView]


class JobView(JobStanding, RouteView):
    tenant_id: str
    request_type: str
    protocol_id: str
    protocol_version: str
    engine: Engine
    doc_id: str | None
    input_ref: Ref
    output_ref: Ref
    final_output: str | None
    """Where the result lies, once there is one."""
    error: FailureView | None
    current_step_id: str
    attempts_total: int
    seq: int
    """Of the job's last event."""
    idempotency_key: str | None
    redrive_of: str | None
    """The failed job that this one takes up again."""
    correlation_id: str
    traceparent: str
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None
    sla_deadline: datetime


class JobWithSteps(JobView):
    steps: list[StepView]


class EventView(Shape):
    """One line of a job's history."""

    seq: int
    at: datetime
    type: EventType
    step_id: str | None = Field(alias="stepId")
    attempt_no: int | None
    before: str | None
    after: str | None
    cause: str | None
    implied: bool
    """The state was passed through without being observed."""
    detail: str | None
    by: str | None
    """Who asked for it, or which sweeper did it."""


class JobPage(Shape):
    items: list[JobView]
    next_cursor: str | None
    """Asks for what follows; null: there is nothing more."""


class StepPage(Shape):
    items: list[StepView]
    next_cursor: None


class EventPage(Shape):
    items: list[EventView]
    next_cursor: str | None
