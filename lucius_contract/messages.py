"""The four messages between the orchestrator and a platform service.

Members have the contract's exact names on the wire (`jobId`, `stepId`, the rest in snake case) and
Python's names in code. Unknown members are kept and written back.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, cast

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from lucius_contract import CONTRACT_VERSION
from lucius_contract.canonical import digest
from lucius_contract.documents import (
    Artifact,
    Document,
    Instant,
    Name,
    Ref,
    SchemaVersion,
    read_object,
)
from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_contract.ids import message_id
from lucius_contract.routing import LANES, Mode

REPLY_LIMIT = 64 * 1024
DIRECTIVE_LIMIT = 192 * 1024


class MessageType(StrEnum):
    DIRECTIVE = "DIRECTIVE"
    ACK = "ACK"
    RESULT = "RESULT"
    HEARTBEAT = "HEARTBEAT"


class ResultStatus(StrEnum):
    """What a service may write. FAILED is the older spelling, made precise by failure_class."""

    SUCCEEDED = "SUCCEEDED"
    FAILED_RETRY = "FAILED_RETRY"
    FAILED_FINAL = "FAILED_FINAL"
    FAILED = "FAILED"


class FailureClass(StrEnum):
    RETRYABLE = "RETRYABLE"
    NON_RETRYABLE = "NON_RETRYABLE"


class Outcome(StrEnum):
    """What a RESULT says, however it is spelled."""

    SUCCEEDED = "SUCCEEDED"
    FAILED_RETRY = "FAILED_RETRY"
    FAILED_FINAL = "FAILED_FINAL"


AttemptNo = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]


class Message(Document):
    """What every message says about itself: which attempt of which step of which job."""

    job_id: Name = Field(alias="jobId")
    """The job; opaque text."""
    step_id: Name = Field(alias="stepId")
    """The step within the job; opaque text."""
    tenant_id: Name
    """Whose job it is; a reply that names another tenant is refused."""
    attempt_no: AttemptNo
    """Counts the attempts of the step, from 1."""
    lease_id: Name
    """Secret of the attempt; a reply counts only with the lease of the current attempt."""
    schema_version: SchemaVersion = CONTRACT_VERSION
    """Absent means 1; another major version is not read."""


class CallbackUrls(Document):
    """Where to send replies over HTTP."""

    ack: str
    result: str
    heartbeat: str


class Directive(Message):
    """Work for a platform service: one attempt of one step."""

    type: Literal[MessageType.DIRECTIVE] = MessageType.DIRECTIVE
    protocol_id: Name
    """The protocol that the job follows."""
    step_type: Name
    """What kind of work it is; a service owns certain kinds."""
    input_ref: Ref
    """What the first step reads; later steps read `prior_artifacts`."""
    workspace_ref: Ref
    """The job's folder; a step writes below `<step type in lower case>/<attempt_no>/`."""
    output_ref: Ref
    """Where the last step publishes."""
    payload: dict[str, Any]
    """Parameters of this step, valid against its schema in the protocol."""
    mode: Mode
    """For information; it was already used to choose the lane."""
    lane: Annotated[int, Field(strict=True, ge=0, lt=LANES)]
    """Number of the directive topic, and of the reply topic."""
    routing_key_used: str
    """What the lane was computed from."""
    correlation_id: str
    """The client's; replies echo it."""
    traceparent: str
    """W3C trace context; replies continue the trace."""
    lease_expires_at: Instant
    """After this, unless extended by an answer, the work must not be started."""
    lease_seconds: Annotated[float, Field(gt=0)]
    """How long an ACK or HEARTBEAT keeps the lease."""
    heartbeat_seconds: Annotated[float, Field(gt=0)]
    """How often to send a HEARTBEAT while working."""
    prior_artifacts: dict[str, list[Artifact]] = Field(default_factory=dict)
    """What the steps before produced, by step type."""
    callback_urls: CallbackUrls | None = None
    """Present: reply over HTTP. Absent: reply on the reply topic of `lane`."""
    callback_token: str | None = Field(default=None, repr=False)
    """Bearer token for `callback_urls`, valid for this attempt only."""
    artifact_token: str | None = Field(default=None, repr=False)
    """Proves to the API of artifacts that this attempt publishes a version, however it replies.
    Present where `output_ref` names an artifact."""


class Capacity(Document):
    """What one instance of the service can bear: it works on at most so many directives at once.
    The orchestrator adds up the instances it has heard of lately. A hint, never a promise."""

    instance_id: Name
    """Which process says so; new at every start."""
    slots: Annotated[int, Field(strict=True, ge=1, le=100_000)]
    """How many directives it works on at once, at most."""


def _ignored_if_invalid(value: Any, read: ValidatorFunctionWrapHandler) -> Capacity | None:
    """A hint that cannot be read must not cost the reply that brings it."""
    try:
        return cast("Capacity | None", read(value))
    except ValidationError:
        return None


CapacityHint = Annotated[Capacity | None, WrapValidator(_ignored_if_invalid)]


class Ack(Message):
    """A service has picked up a directive."""

    type: Literal[MessageType.ACK] = MessageType.ACK
    status: Literal["ACKED"] = "ACKED"
    timestamp: Instant
    """When it was written; information, never input to a decision."""
    capacity: CapacityHint = None
    """What the sending instance can bear; one that cannot be read counts as absent."""
    correlation_id: str | None = None
    traceparent: str | None = None


class StepError(Document):
    """Why a step failed."""

    code: Name
    """A standard code, or one of the service's own that begins with its name."""
    message: str = ""


class Result(Message):
    """How an attempt ended; sent until it is answered, always with the same content."""

    type: Literal[MessageType.RESULT] = MessageType.RESULT
    status: ResultStatus
    """FAILED is the older spelling of a failure."""
    timestamp: Instant
    """When it was written; information, never input to a decision."""
    failure_class: FailureClass | None = None
    """On failure. Decides only for the older status FAILED."""
    error: StepError | None = None
    artifacts: list[Artifact] = Field(default_factory=list)
    """What the next steps find in `prior_artifacts`."""
    output_ref: Ref | None = None
    """Where the step published, if it did."""
    correlation_id: str | None = None
    traceparent: str | None = None

    @property
    def outcome(self) -> Outcome:
        """`status` decides; the older FAILED asks failure_class, and without one is retryable."""
        if self.status is not ResultStatus.FAILED:
            return Outcome(self.status.value)
        if self.failure_class is FailureClass.NON_RETRYABLE:
            return Outcome.FAILED_FINAL
        return Outcome.FAILED_RETRY

    def content_digest(self) -> str:
        """Equal for two RESULTs exactly when they say the same."""
        return digest(self.to_json())


class Progress(Document):
    """How far the work is, for people."""

    fraction: Annotated[float, Field(ge=0, le=1)] | None = None
    note: str | None = None


class Heartbeat(Message):
    """A service is still at work; extends the lease."""

    type: Literal[MessageType.HEARTBEAT] = MessageType.HEARTBEAT
    timestamp: Instant
    """When it was written; information, never input to a decision."""
    progress: Progress | None = None
    capacity: CapacityHint = None
    """What the sending instance can bear; one that cannot be read counts as absent."""
    correlation_id: str | None = None
    traceparent: str | None = None


Reply = Ack | Result | Heartbeat

_REPLIES: dict[str, type[Ack] | type[Result] | type[Heartbeat]] = {
    MessageType.ACK: Ack,
    MessageType.RESULT: Result,
    MessageType.HEARTBEAT: Heartbeat,
}


def parse_directive(raw: bytes) -> Directive:
    return Directive.read(read_object(raw, DIRECTIVE_LIMIT))


def parse_reply(raw: bytes) -> Reply:
    value = read_object(raw, REPLY_LIMIT)
    model = _REPLIES.get(str(value.get("type")))
    if model is None:
        raise ContractError(
            ErrorCode.ENVELOPE_INVALID,
            "not a reply",
            [Problem("/type", f"must be one of {', '.join(_REPLIES)}")],
        )
    return model.read(value)


def bus_message_id(message: Directive | Reply) -> str:
    return message_id(
        message.job_id, message.step_id, message.attempt_no, message.lease_id, message.type
    )


PROPERTY_TYPES: dict[str, type[str] | type[int]] = {
    "type": str,
    "step_type": str,
    "service": str,
    "mode": str,
    "lane": int,
    "tenant_id": str,
    "jobId": str,
    "stepId": str,
    "attempt_no": int,
    "traceparent": str,
}
"""Application properties of a directive: subscriptions filter on them, people read them."""


def directive_properties(body: Mapping[str, Any], service: str) -> dict[str, str | int]:
    """All of them but `service` stand in the DIRECTIVE itself."""
    return {name: body[name] if name != "service" else service for name in PROPERTY_TYPES}
