"""The rows of one job as the ledger holds them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from lucius_contract import timeouts
from lucius_contract.routing import Route
from lucius_contract.states import IN_FLIGHT_STEP_STATES, JobState, StepState
from lucius_contract.transitions import StepTrigger

JsonObject = Mapping[str, Any]


class Engine(StrEnum):
    """Which engine owns the job; each touches only its own."""

    LEDGER = "ledger"
    TEMPORAL = "temporal"


class ReplyVia(StrEnum):
    HTTP = "http"
    BUS = "bus"


class Turn(StrEnum):
    """How the next attempt of a step stands that its workflow asked for when the service had no
    room. It stays until the attempt is opened, also while the job is paused."""

    WAITING = "WAITING"
    GRANTED = "GRANTED"


@dataclass(frozen=True, slots=True)
class StepPolicy:
    """What the protocol says about time and tries, resolved when the job was created."""

    ack_timeout: timedelta = timeouts.ACK_TIMEOUT
    lease: timedelta = timeouts.LEASE
    heartbeat: timedelta | None = None
    ceiling: timedelta = timeouts.ATTEMPT_CEILING
    max_attempts: int = timeouts.MAX_ATTEMPTS
    backoff: timeouts.Delays = timeouts.RETRY_BACKOFF
    dispatch_backoff: timeouts.Delays = timeouts.DISPATCH_BACKOFF
    stale_dispatch: timedelta = timeouts.STALE_DISPATCH
    reply_via: ReplyVia = ReplyVia.HTTP

    @property
    def heartbeat_interval(self) -> timedelta:
        return self.heartbeat or self.lease / timeouts.HEARTBEATS_PER_LEASE

    def dispatch_lease(self) -> timedelta:
        """From the enqueue of a directive: time to publish it, to acknowledge it, to work."""
        return sum(self.dispatch_backoff, timedelta()) + self.ack_timeout + self.lease


class Attempt(NamedTuple):
    """The history of one attempt; the routing is pinned to it."""

    attempt_no: int
    lease_id: str
    route: Route
    dispatched_at: datetime
    sent_at: datetime | None = None
    acknowledged_at: datetime | None = None
    completed_at: datetime | None = None
    outcome: StepState | None = None
    ended_by: StepTrigger | None = None
    error_code: str | None = None
    error_message: str | None = None
    result_digest: str | None = None
    ignored_replies: int = 0
    unanswered: bool = False
    """It ended while nothing was heard from the service at all; it does not count as a try."""


# The rows below have no __slots__: `evolve` copies a __dict__ in a microsecond, where building a
# frozen, slotted row of 25 fields anew takes fourteen.


@dataclass(frozen=True)
class Step:
    step_id: str
    step_index: int
    step_type: str
    service: str
    policy: StepPolicy
    route: Route
    input_ref: JsonObject
    workspace_ref: JsonObject
    output_ref: JsonObject
    payload: JsonObject
    directive_bytes: int
    created_at: datetime
    updated_at: datetime
    state: StepState = StepState.PENDING
    attempt_no: int = 0
    lease_id: str | None = None
    lease_expires_at: datetime | None = None
    ack_deadline: datetime | None = None
    ceiling_at: datetime | None = None
    next_attempt_at: datetime | None = None
    attempts: tuple[Attempt, ...] = ()
    stray_replies: int = 0
    progress: JsonObject | None = None
    artifacts: tuple[JsonObject, ...] = ()
    artifacts_bytes: int = 0
    result_ref: JsonObject | None = None
    last_error_code: str | None = None
    last_error_message: str | None = None
    completed_at: datetime | None = None
    turn: Turn | None = None

    @property
    def in_flight(self) -> bool:
        return self.state in IN_FLIGHT_STEP_STATES

    @property
    def unanswered(self) -> int:
        """Return how many attempts ended while the service was absent."""
        return sum(attempt.unanswered for attempt in self.attempts)

    @property
    def stale_at(self) -> datetime:
        """When a step that is still DISPATCHING is to be looked after, since it last moved."""
        return self.updated_at + self.policy.stale_dispatch

    def attempt(self, attempt_no: int) -> Attempt | None:
        """Attempts are numbered from 1 without a gap."""
        return self.attempts[attempt_no - 1] if 1 <= attempt_no <= len(self.attempts) else None


@dataclass(frozen=True)
class Job:
    job_id: str
    tenant_id: str
    tenant_bucket: str
    request_type: str
    protocol_id: str
    protocol_version: str
    engine: Engine
    route: Route
    input_ref: JsonObject
    output_ref: JsonObject
    idempotency_hash: str
    correlation_id: str
    traceparent: str
    sla_deadline: datetime
    current_step_id: str
    created_at: datetime
    updated_at: datetime
    state: JobState = JobState.QUEUED
    idempotency_key: str | None = None
    doc_id: str | None = None
    callback_urls: tuple[str, ...] = ()
    redrive_of: str | None = None
    current_step_index: int = 0
    attempts_total: int = 0
    seq: int = 0
    refusals: int = 0
    final_output: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    completed_at: datetime | None = None


class Aggregate(NamedTuple):
    job: Job
    steps: tuple[Step, ...]

    @property
    def active(self) -> Step:
        """The step that is next to move: the first that is not terminal, else the last."""
        return self.steps[self.job.current_step_index]

    def step(self, step_id: str) -> Step | None:
        active = self.active
        if active.step_id == step_id:
            return active
        return next((step for step in self.steps if step.step_id == step_id), None)


Row = TypeVar("Row", Step, Job)


def evolve(row: Row, changes: Mapping[str, Any]) -> Row:
    """A copy of the row with some fields changed."""
    copy = object.__new__(type(row))
    object.__setattr__(copy, "__dict__", {**row.__dict__, **changes})
    return copy
