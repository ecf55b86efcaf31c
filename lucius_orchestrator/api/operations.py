"""Every operation of the API as data: the routes and the OpenAPI document are made from it."""

from lucius_contract.documents import Document
from lucius_contract.envelope import Envelope
from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Ack, Heartbeat, Result
from lucius_orchestrator.api import job_shapes, paths, shapes
from lucius_orchestrator.api.artifacts import operations as artifacts
from lucius_orchestrator.api.operation import Code, Guard, Operation
from lucius_orchestrator.api.problems import HttpCode
from lucius_orchestrator.security.callers import Verb

E = ErrorCode


_BODY: tuple[Code, ...] = (E.ENVELOPE_INVALID, E.TOO_LARGE, HttpCode.REQUEST_TIMEOUT)
_LIMITS: tuple[Code, ...] = (E.TENANT_SATURATED, E.GLOBAL_SATURATED, E.LANE_SATURATED)
_SUBMIT: tuple[Code, ...] = (
    *_BODY,
    E.SCHEMA_VERSION_UNSUPPORTED,
    E.REQUEST_TYPE_UNKNOWN,
    E.PAYLOAD_INVALID,
    E.REF_INVALID,
    E.REF_FORBIDDEN,
    E.DOC_ID_REQUIRED,
    E.MODE_FORBIDDEN,
    E.IDEMPOTENCY_CONFLICT,
    *_LIMITS,
)
_REPLY: tuple[Code, ...] = (
    *_BODY,
    E.SCHEMA_VERSION_UNSUPPORTED,
    E.JOB_NOT_FOUND,
    E.STALE_ATTEMPT,
    E.RESULT_CONFLICT,
)
_NOT_MODIFIED = (304, "The job is as the client knows it.")


def _submit(path: str, id: str, summary: str) -> Operation:
    return Operation(
        "POST",
        path,
        id,
        summary,
        job_shapes.Accepted,
        status=202,
        verb=Verb.SUBMIT,
        codes=_SUBMIT,
        body=Envelope,
        headers=("Idempotency-Key", "traceparent"),
        answers_with=("Location",),
    )


def _callback(path: str, id: str, summary: str, body: type[Document]) -> Operation:
    return Operation(
        "POST",
        path,
        id,
        summary,
        shapes.ReplyVerdict,
        guard=Guard.CALLBACK_TOKEN,
        codes=_REPLY,
        body=body,
        headers=("traceparent",),
    )


def _command(verb: Verb, summary: str) -> Operation:
    return Operation(
        "POST",
        f"{paths.JOB}:{verb}",
        f"{verb}Job",
        summary,
        job_shapes.JobStanding,
        verb=verb,
        codes=(E.JOB_NOT_FOUND, E.STATE_CONFLICT),
    )


SUBMIT = _submit(paths.ORCHESTRATE, "submitJob", "Submit a request; it becomes a job.")
SUBMIT_COMMAND = _submit(paths.COMMANDS, "submitCommand", "The older name of submitJob.")
LIST_JOBS = Operation(
    "GET",
    paths.JOBS,
    "listJobs",
    "Jobs, the newest first.",
    job_shapes.JobPage,
    verb=Verb.LIST_JOBS,
    codes=(E.ENVELOPE_INVALID,),
)
READ_JOB = Operation(
    "GET",
    paths.JOB,
    "readJob",
    "A job with its steps.",
    job_shapes.JobWithSteps,
    verb=Verb.READ_JOB,
    codes=(E.JOB_NOT_FOUND,),
    headers=("If-None-Match",),
    answers_with=("ETag",),
    others=(_NOT_MODIFIED,),
)
READ_STEPS = Operation(
    "GET",
    paths.STEPS,
    "readSteps",
    "The steps of a job with the history of their attempts.",
    job_shapes.StepPage,
    verb=Verb.READ_JOB,
    codes=(E.JOB_NOT_FOUND,),
    headers=("If-None-Match",),
    answers_with=("ETag",),
    others=(_NOT_MODIFIED,),
)
READ_EVENTS = Operation(
    "GET",
    paths.EVENTS,
    "readEvents",
    "The history of a job, the oldest event first.",
    job_shapes.EventPage,
    verb=Verb.READ_JOB,
    codes=(E.JOB_NOT_FOUND, E.ENVELOPE_INVALID),
)
STREAM_EVENTS = Operation(
    "GET",
    paths.STREAM,
    "streamEvents",
    "The events of a job as they happen, until it ends (server-sent events). A last event `closed`"
    " says that the credential does not count any more.",
    None,
    verb=Verb.READ_JOB,
    codes=(E.JOB_NOT_FOUND,),
    headers=("Last-Event-ID",),
    others=((204, "The job has ended, and the client knows all of it."),),
)
CANCEL = _command(Verb.CANCEL, "Let the active step finish, then end the job as CANCELLED.")
PAUSE = _command(Verb.PAUSE, "Start nothing further until the job is resumed.")
RESUME = _command(Verb.RESUME, "Go on as if the job had never been paused.")
REDRIVE = Operation(
    "POST",
    f"{paths.JOB}:redrive",
    "redriveJob",
    "Make a new job from one that is FAILED_FINAL, which stays as it is.",
    job_shapes.Accepted,
    status=202,
    verb=Verb.REDRIVE,
    codes=(
        E.ENVELOPE_INVALID,
        E.JOB_NOT_FOUND,
        E.STATE_CONFLICT,
        E.REF_INVALID,
        E.REF_FORBIDDEN,
        E.IDEMPOTENCY_CONFLICT,
        *_LIMITS,
    ),
    headers=("Idempotency-Key",),
    answers_with=("Location",),
)
LIST_DEAD_LETTERS = Operation(
    "GET",
    paths.DEAD_LETTERS,
    "listDeadLetters",
    "What failed for good, the newest first.",
    shapes.DeadLetterPage,
    verb=Verb.LIST_DEAD_LETTERS,
    codes=(E.ENVELOPE_INVALID,),
)
LIST_PROTOCOLS = Operation(
    "GET",
    paths.PROTOCOLS,
    "listProtocols",
    "The protocols in force.",
    shapes.ProtocolPage,
    verb=Verb.READ_PROTOCOLS,
)
READ_PROTOCOL = Operation(
    "GET",
    paths.PROTOCOL,
    "readProtocol",
    "A protocol, with the payload schemas of its steps.",
    shapes.ProtocolView,
    verb=Verb.READ_PROTOCOLS,
    codes=(HttpCode.NOT_FOUND,),
)
LIST_SERVICES = Operation(
    "GET",
    paths.SERVICES,
    "listServices",
    "How services stand: what waits for them, what is with them, what was heard from them.",
    shapes.ServicePage,
    verb=Verb.READ_SERVICES,
)
SEND_ACK = _callback(paths.ACK, "sendAck", "A service has picked up a directive.", Ack)
SEND_RESULT = _callback(paths.RESULT, "sendResult", "How an attempt ended.", Result)
SEND_HEARTBEAT = _callback(
    paths.HEARTBEAT, "sendHeartbeat", "A service is still at work.", Heartbeat
)
LIVE = Operation(
    "GET",
    paths.LIVE,
    "live",
    "Whether the process lives.",
    shapes.Liveness,
    guard=Guard.NOBODY,
)
READY = Operation(
    "GET",
    paths.READY,
    "ready",
    "Whether the process can do its work.",
    shapes.Readiness,
    guard=Guard.NOBODY,
    others=((503, "Something that it needs is away; the checks say what."),),
)
METRICS = Operation(
    "GET",
    paths.METRICS,
    "metrics",
    "What the process has counted, in Prometheus text.",
    None,
    verb=Verb.READ_METRICS,
)

OPERATIONS: tuple[Operation, ...] = (
    SUBMIT,
    SUBMIT_COMMAND,
    SEND_ACK,
    SEND_RESULT,
    SEND_HEARTBEAT,
    LIST_JOBS,
    READ_JOB,
    READ_STEPS,
    READ_EVENTS,
    STREAM_EVENTS,
    CANCEL,
    PAUSE,
    RESUME,
    REDRIVE,
    LIST_DEAD_LETTERS,
    LIST_PROTOCOLS,
    READ_PROTOCOL,
    LIST_SERVICES,
    *artifacts.OPERATIONS,
    LIVE,
    READY,
    METRICS,
)
