"""What may go wrong in a step, and what a RESULT says about it.

    StepError                    what a handler raises, or meets in a call on its context
    ├── RetryableError           a later attempt may succeed: FAILED_RETRY
    ├── NonRetryableError        no attempt will: FAILED_FINAL
    │   └── StepCancelled        the job was cancelled, and the work stopped for it
    └── WorkStopped              nobody waits for this work any more; it is never reported

Any other exception is classified by its kind: see `classify`.
"""

import re
from enum import StrEnum
from typing import ClassVar, NamedTuple, Self

from pydantic import ValidationError

from lucius_contract.canonical import pointer_to
from lucius_contract.errors import ERRORS, ErrorCode, WrittenBy
from lucius_contract.messages import FailureClass, ResultStatus
from lucius_logs.masking import shown_text
from lucius_outbox.redaction import MAX_ERROR
from lucius_sdk.faults import code_of

__all__ = [
    "Failure",
    "NonRetryableError",
    "RetryableError",
    "StepCancelled",
    "StepError",
    "StopReason",
    "WorkStopped",
    "check_code",
    "classify",
    "code_prefix",
]

MESSAGE_LIMIT = MAX_ERROR
"""Characters of a message; the masking of texts cuts longer ones there."""
_LOOKED_AT = 8 * MESSAGE_LIMIT
_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,127}")
_NOT_IN_NAME = re.compile(r"[^A-Z0-9]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class StopReason(StrEnum):
    """Why work must end although nobody asked to cancel the job."""

    LEASE_LOST = "LEASE_LOST"
    SUPERSEDED = "SUPERSEDED"
    DEADLINE_PASSED = "DEADLINE_PASSED"
    SHUTTING_DOWN = "SHUTTING_DOWN"


class StepError(Exception):
    """`code` is for programs, `message` for people."""

    failure_class: ClassVar[FailureClass]

    def __init__(self, code: ErrorCode | str, message: str = "") -> None:
        super().__init__(code, message)
        self.code = str(code)
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code


class RetryableError(StepError):
    """The attempt failed; a later one may succeed."""

    failure_class = FailureClass.RETRYABLE

    def __init__(
        self, code: ErrorCode | str = ErrorCode.DEPENDENCY_UNAVAILABLE, message: str = ""
    ) -> None:
        super().__init__(code, message)


class NonRetryableError(StepError):
    """The step failed for good; no further attempt is made."""

    failure_class = FailureClass.NON_RETRYABLE

    def __init__(self, code: ErrorCode | str = ErrorCode.INTERNAL, message: str = "") -> None:
        super().__init__(code, message)


class StepCancelled(NonRetryableError):
    """The job was cancelled. Clean up what should not stay, and let it pass."""

    def __init__(self, message: str = "the work stopped because the job was cancelled") -> None:
        super().__init__(ErrorCode.CANCELLED, message)
        self.args = (message,)


class WorkStopped(StepError):
    """The result of this work would count for nothing. Let it pass; nothing is reported."""

    failure_class = FailureClass.RETRYABLE

    def __init__(self, reason: StopReason) -> None:
        super().__init__(ErrorCode.SHUTTING_DOWN, f"the work was stopped: {reason}")
        self.reason = reason
        self.args = (reason,)


class Failure(NamedTuple):
    """What a RESULT says of a failed attempt."""

    status: ResultStatus
    failure_class: FailureClass
    code: str
    message: str

    @classmethod
    def of(cls, failure_class: FailureClass, code: str, message: str) -> Self:
        is_retryable = failure_class is FailureClass.RETRYABLE
        status = ResultStatus.FAILED_RETRY if is_retryable else ResultStatus.FAILED_FINAL
        return cls(status, failure_class, str(code), presentable(message))


def check_code(code: str, service: str) -> None:
    """Refuse (ValueError) what is neither a standard code of services nor one of its own."""
    if _CODE.fullmatch(code) is None:
        raise ValueError(f"{code[:60]!r} is no code: capitals, digits and underscores make one")
    standard = code in ERRORS and WrittenBy.SERVICE in ERRORS[ErrorCode(code)].written_by
    if not standard and not code.startswith(code_prefix(service)):
        raise ValueError(f"{code} is not a standard code; own ones begin {code_prefix(service)}")


def code_prefix(service: str) -> str:
    """What the service's own codes begin with: `OCR_` for `ocr`, `PAGE_SPLIT_` for `page-split`."""
    return _NOT_IN_NAME.sub("_", service.upper()).strip("_") + "_"


def presentable(text: str) -> str:
    """Of bounded length, without credentials, and of characters that every store can hold and a
    terminal only shows."""
    return shown_text(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text[:_LOOKED_AT]))


def classify(error: BaseException, service: str) -> Failure:
    """What to report of an exception that left a handler.

    Errors of this module say it themselves. Of the others, faults of networks and storage are
    retryable, and everything else is not, since it would happen again. Of several in a group the
    one that cannot be retried decides.
    """
    if isinstance(error, BaseExceptionGroup):
        return _worst([classify(member, service) for member in error.exceptions])
    if isinstance(error, StepError):
        return _as_said(error, service)
    code = code_of(error)
    failure_class = _class_of(code)
    return Failure.of(failure_class, code, described(error))


def _worst(failures: list[Failure]) -> Failure:
    """The first of those that cannot be retried, else the first."""
    final = (f for f in failures if f.failure_class is FailureClass.NON_RETRYABLE)
    return next(final, failures[0])


def _as_said(error: StepError, service: str) -> Failure:
    """A code that may not be written costs the code, never the decision about a retry."""
    try:
        check_code(error.code, service)
    except ValueError as refusal:
        is_retryable = error.failure_class is FailureClass.RETRYABLE
        code = ErrorCode.DEPENDENCY_UNAVAILABLE if is_retryable else ErrorCode.INTERNAL
        return Failure.of(error.failure_class, code, f"{error} ({refusal})")
    return Failure.of(error.failure_class, error.code, error.message)


def _class_of(code: ErrorCode) -> FailureClass:
    return FailureClass.RETRYABLE if ERRORS[code].retryable else FailureClass.NON_RETRYABLE


def described(error: BaseException) -> str:
    """Kind and message; never raises, as the error may be of any kind."""
    try:
        text = told(error) if isinstance(error, ValidationError) else str(error)
    except Exception:
        return type(error).__name__
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def told(error: ValidationError, pointer: str = "") -> str:
    """The places below `pointer` and the rules, never the values: they are a document's."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{pointer + pointer_to(e['loc']) or '(document)'} {e['msg']}" for e in found)
