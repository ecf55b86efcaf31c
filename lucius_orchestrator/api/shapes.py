"""The shape of answers, for the OpenAPI document. Answers are made in the modules of their nouns;
tests hold the two together."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lucius_contract.audit import DeadLetterKind, Verdict
from lucius_contract.routing import LANES
from lucius_orchestrator.domain.aggregate import ReplyVia
from lucius_orchestrator.engine.service_load import Presence

Pointer = Annotated[str, Field(pattern="^(/.*)?$")]


class Shape(BaseModel):
    """Members that have no value are null, not absent."""

    model_config = ConfigDict(use_attribute_docstrings=True, validate_by_name=True)


class ProblemPlace(Shape):
    """One thing that is wrong, and where."""

    pointer: Pointer
    """A JSON pointer into the body; `/query/…` and `/header/…` for what is not in the body."""
    message: str


class Problem(Shape):
    """Problem details (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    """Stable; programs look at it."""
    errors: list[ProblemPlace]
    correlation_id: str | None
    """Find the request in the logs with it."""


class DeadLetterView(Shape):
    id: str
    kind: DeadLetterKind
    tenant_id: str | None
    job_id: str | None = Field(alias="jobId")
    step_id: str | None = Field(alias="stepId")
    attempt_no: int | None
    code: str
    message: str
    first_at: datetime
    last_at: datetime
    redriven_by: str | None


class ProtocolStepView(Shape):
    step_type: str
    service: str
    payload_key: str
    """The member of a request's payload that belongs to this step."""
    payload_schema: dict[str, Any]
    ack_timeout_seconds: float
    lease_seconds: float
    heartbeat_seconds: float
    timeout_seconds: float
    max_attempts: int
    backoff_seconds: list[float]
    reply_via: ReplyVia


class ProtocolView(Shape):
    protocol_id: str
    version: str
    request_type: str
    aliases: list[str]
    steps: list[ProtocolStepView]


class LaneBacklog(Shape):
    lane: Annotated[int, Field(ge=0, lt=LANES)]
    waiting: int


class ServiceView(Shape):
    """A service, as all processes of the control plane together see it."""

    service: str
    presence: Presence
    """ABSENT: a directive was not acknowledged in time, and nothing was heard since it was sent."""
    heard_at: datetime | None
    """When it last sent anything."""
    waiting: int
    """Directives that are not published yet."""
    oldest_waiting_at: datetime | None
    oldest_waiting_seconds: float | None
    unacknowledged: int
    """Directives that were published and not acknowledged."""
    working: int
    """Directives that were acknowledged and have no RESULT yet."""
    window: int
    """How many directives may be unacknowledged at a time."""
    capacity: int | None
    """On how many directives it works at a time, as far as that is known."""
    instances: int
    """Those that state how much they work on at a time."""
    rate_per_second: float
    """Directives that it finishes, in the last seconds."""
    has_backlog: bool
    """A dispatcher holds directives back, since the window is full."""
    lanes: list[LaneBacklog]
    """Where directives wait."""


class ServicePage(Shape):
    items: list[ServiceView]
    next_cursor: None


class DeadLetterPage(Shape):
    items: list[DeadLetterView]
    next_cursor: str | None


class ProtocolPage(Shape):
    items: list[ProtocolView]
    next_cursor: None


class ReplyVerdict(Shape):
    """What became of a reply."""

    verdict: Literal[Verdict.APPLIED, Verdict.DUPLICATE]
    lease_expires_at: datetime | None
    cancel_requested: bool
    """Stop working, and answer FAILED_FINAL with the code CANCELLED."""


class Liveness(Shape):
    status: Literal["live"]


class CheckView(Shape):
    name: str
    ok: bool
    detail: str | None
    """For callers with the role operate or admin and all tenants; null for others."""


class Readiness(Shape):
    status: Literal["ready", "not ready"]
    checks: list[CheckView]
