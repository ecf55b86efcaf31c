"""Error codes, their HTTP status and what the one who meets them should do.

    ContractError            a document or request breaks the contract; `code` says how

`code` is stable and what programs look at; `problems` point at the offending members.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class ErrorCode(StrEnum):
    ENVELOPE_INVALID = "ENVELOPE_INVALID"
    SCHEMA_VERSION_UNSUPPORTED = "SCHEMA_VERSION_UNSUPPORTED"
    REQUEST_TYPE_UNKNOWN = "REQUEST_TYPE_UNKNOWN"
    PAYLOAD_INVALID = "PAYLOAD_INVALID"
    REF_INVALID = "REF_INVALID"
    REF_FORBIDDEN = "REF_FORBIDDEN"
    DOC_ID_REQUIRED = "DOC_ID_REQUIRED"
    MODE_FORBIDDEN = "MODE_FORBIDDEN"
    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    JOB_NOT_FOUND = "JOB_NOT_FOUND"
    STATE_CONFLICT = "STATE_CONFLICT"
    TENANT_SATURATED = "TENANT_SATURATED"
    GLOBAL_SATURATED = "GLOBAL_SATURATED"
    LANE_SATURATED = "LANE_SATURATED"
    STALE_ATTEMPT = "STALE_ATTEMPT"
    RESULT_CONFLICT = "RESULT_CONFLICT"
    TOO_LARGE = "TOO_LARGE"
    ARTIFACT_INVALID = "ARTIFACT_INVALID"
    ARTIFACT_NOT_FOUND = "ARTIFACT_NOT_FOUND"
    ARTIFACT_GONE = "ARTIFACT_GONE"
    UNAVAILABLE = "UNAVAILABLE"

    INPUT_NOT_FOUND = "INPUT_NOT_FOUND"
    INPUT_INVALID = "INPUT_INVALID"
    INPUT_TOO_LARGE = "INPUT_TOO_LARGE"
    INPUT_FORBIDDEN = "INPUT_FORBIDDEN"
    OUTPUT_CONFLICT = "OUTPUT_CONFLICT"
    OUTPUT_FORBIDDEN = "OUTPUT_FORBIDDEN"
    OUTPUT_UNSUPPORTED = "OUTPUT_UNSUPPORTED"
    CANCELLED = "CANCELLED"
    INTERNAL = "INTERNAL"
    STORAGE_UNAVAILABLE = "STORAGE_UNAVAILABLE"
    DEPENDENCY_UNAVAILABLE = "DEPENDENCY_UNAVAILABLE"
    RATE_LIMITED = "RATE_LIMITED"
    TIMEOUT = "TIMEOUT"
    SHUTTING_DOWN = "SHUTTING_DOWN"
    CRASH_LOOP = "CRASH_LOOP"

    ACK_TIMEOUT = "ACK_TIMEOUT"
    LEASE_EXPIRED = "LEASE_EXPIRED"
    ATTEMPT_TIMEOUT = "ATTEMPT_TIMEOUT"
    DISPATCH_FAILED = "DISPATCH_FAILED"
    DIRECTIVE_TOO_LARGE = "DIRECTIVE_TOO_LARGE"
    SLA_EXCEEDED = "SLA_EXCEEDED"


class WrittenBy(StrEnum):
    """Who puts the code where a reader meets it."""

    API = "API"
    SERVICE = "SERVICE"
    ORCHESTRATOR = "ORCHESTRATOR"


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    code: ErrorCode
    written_by: tuple[WrittenBy, ...]
    http_status: int | None
    retryable: bool
    meaning: str


def _api(code: ErrorCode, http_status: int, meaning: str, *, retryable: bool = False) -> ErrorInfo:
    return ErrorInfo(code, (WrittenBy.API,), http_status, retryable, meaning)


def _step(
    written_by: WrittenBy, code: ErrorCode, meaning: str, *, retryable: bool = False
) -> ErrorInfo:
    return ErrorInfo(code, (written_by,), None, retryable, meaning)


def _table() -> tuple[ErrorInfo, ...]:
    c, service, orchestrator = ErrorCode, WrittenBy.SERVICE, WrittenBy.ORCHESTRATOR
    return (
        _api(c.ENVELOPE_INVALID, 400, "The document breaks its schema; the pointers say where."),
        _api(c.SCHEMA_VERSION_UNSUPPORTED, 400, "Another major version; this one speaks 1."),
        _api(c.REQUEST_TYPE_UNKNOWN, 422, "No protocol has this request type or alias."),
        ErrorInfo(
            c.PAYLOAD_INVALID,
            (WrittenBy.API, service),
            422,
            retryable=False,
            meaning="The payload breaks the step's schema; the pointers say where.",
        ),
        _api(c.REF_INVALID, 422, "A ref is not well-formed, or names no artifact to read."),
        _api(
            c.REF_FORBIDDEN,
            403,
            "A ref breaks policy: scheme, place, tenant, or credentials inside.",
        ),
        _api(c.DOC_ID_REQUIRED, 422, "BURST spreads by document: name one in doc_id."),
        _api(c.MODE_FORBIDDEN, 403, "The tenant may not use this mode."),
        _api(c.IDEMPOTENCY_CONFLICT, 409, "The idempotency key was used with other content."),
        _api(c.UNAUTHENTICATED, 401, "No valid credential came with the request."),
        _api(c.FORBIDDEN, 403, "The credential does not allow this."),
        _api(c.JOB_NOT_FOUND, 404, "No such job, or not one of the caller's tenants."),
        _api(c.STATE_CONFLICT, 409, "The state of what was named does not allow this."),
        _api(
            c.TENANT_SATURATED,
            429,
            "The tenant has too many jobs in flight, or too many uploads open.",
            retryable=True,
        ),
        _api(c.GLOBAL_SATURATED, 429, "Too many jobs are in flight.", retryable=True),
        _api(c.LANE_SATURATED, 429, "The mode, service or lane is at its limit.", retryable=True),
        _api(c.STALE_ATTEMPT, 409, "The reply's attempt or lease is no longer current: stop."),
        _api(c.RESULT_CONFLICT, 409, "Another RESULT was applied for this attempt and lease."),
        _api(c.TOO_LARGE, 413, "The document is over its size limit."),
        _api(c.ARTIFACT_INVALID, 422, "The request can never work; the pointers say why."),
        _api(c.ARTIFACT_NOT_FOUND, 404, "No such upload, artifact, version, file or content."),
        _api(c.ARTIFACT_GONE, 410, "It was deleted: use another version, or upload it again."),
        _api(c.UNAVAILABLE, 503, "A part that is needed cannot be reached.", retryable=True),
        _step(service, c.INPUT_NOT_FOUND, "The input is not where the ref says."),
        _step(service, c.INPUT_INVALID, "The input cannot be read as what it should be."),
        _step(service, c.INPUT_TOO_LARGE, "The input is over the service's limit."),
        _step(service, c.INPUT_FORBIDDEN, "The service may not read where the ref leads."),
        _step(service, c.OUTPUT_CONFLICT, "Newer work, or another tenant's, has published there."),
        _step(service, c.OUTPUT_FORBIDDEN, "The service may not publish where the ref leads."),
        _step(service, c.OUTPUT_UNSUPPORTED, "The service cannot publish to such a ref."),
        _step(service, c.CANCELLED, "The service stopped because cancel was requested."),
        _step(service, c.INTERNAL, "A defect in the service."),
        _step(service, c.STORAGE_UNAVAILABLE, "Storage failed for now.", retryable=True),
        _step(service, c.DEPENDENCY_UNAVAILABLE, "Something it needs failed.", retryable=True),
        _step(service, c.RATE_LIMITED, "Something it needs asked it to wait.", retryable=True),
        _step(service, c.TIMEOUT, "Something it needs took too long.", retryable=True),
        _step(service, c.SHUTTING_DOWN, "The service is stopping.", retryable=True),
        _step(service, c.CRASH_LOOP, "The attempt was taken over too often.", retryable=True),
        _step(orchestrator, c.ACK_TIMEOUT, "No ACK came in time.", retryable=True),
        _step(orchestrator, c.LEASE_EXPIRED, "The lease ran out without a RESULT.", retryable=True),
        _step(orchestrator, c.ATTEMPT_TIMEOUT, "The attempt reached its ceiling.", retryable=True),
        _step(orchestrator, c.DISPATCH_FAILED, "The bus refused the directive.", retryable=True),
        _step(orchestrator, c.DIRECTIVE_TOO_LARGE, "The directive is over its size limit."),
        _step(orchestrator, c.SLA_EXCEEDED, "The job did not end within its SLA."),
    )


ERRORS: dict[ErrorCode, ErrorInfo] = {info.code: info for info in _table()}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where (a JSON pointer; empty for the whole document)."""

    pointer: str
    message: str


class ContractError(Exception):
    """A document or request that breaks the contract. Nothing was created or changed."""

    def __init__(self, code: ErrorCode, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.problems = tuple(problems)

    def __str__(self) -> str:
        where = "".join(f"\n  {p.pointer or '(document)'}: {p.message}" for p in self.problems)
        return f"{self.code}: {self.message}{where}"
