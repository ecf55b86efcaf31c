"""What S3 answers, as what it means for a step.

Messages name the status and S3's code for it, never the request.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    NoCredentialsError,
    PartialCredentialsError,
    ReadTimeoutError,
)

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError, RetryableError, StepError
from lucius_sdk.workspace_io.uris import shown

Fault: TypeAlias = BotoCoreError | ClientError
Meaning = Callable[[Fault, str], StepError]

BAD_REQUEST = 400
NOT_FOUND = 404
CONFLICT = 409
PRECONDITION_FAILED = 412
NOT_IMPLEMENTED = 501
NO_BUCKET = "NoSuchBucket"
NO_RANGE = "InvalidRange"
_TIMEOUTS = (ConnectTimeoutError, ReadTimeoutError)
_WITHOUT_CREDENTIALS = (NoCredentialsError, PartialCredentialsError)
_PASSING = {408: ErrorCode.TIMEOUT, 429: ErrorCode.RATE_LIMITED}
# Of statuses that mean something lasting, the cases that pass.
_MAY_PASS = frozenset({NO_BUCKET, "BadDigest", "OperationAborted", "RequestTimeout"})
_SLOW_DOWN = frozenset({"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded"})


def reading(error: Fault, uri: str) -> StepError:
    status, code = status_of(error), code_of(error)
    if status == PRECONDITION_FAILED:
        replaced = f"{shown(uri)} was replaced while it was read"
        return RetryableError(ErrorCode.STORAGE_UNAVAILABLE, replaced)
    if code in _MAY_PASS:
        return unavailable(error, uri)
    if status == NOT_FOUND:
        return NonRetryableError(ErrorCode.INPUT_NOT_FOUND, f"there is nothing at {shown(uri)}")
    if status == BAD_REQUEST:
        return NonRetryableError(ErrorCode.INPUT_INVALID, _told(error, uri))
    return unavailable(error, uri)


def writing(error: Fault, uri: str) -> StepError:
    status, code = status_of(error), code_of(error)
    if code in _MAY_PASS:
        return unavailable(error, uri)
    if status in (CONFLICT, PRECONDITION_FAILED):
        return NonRetryableError(ErrorCode.OUTPUT_CONFLICT, _told(error, uri))
    if status == BAD_REQUEST:
        return NonRetryableError(ErrorCode.INTERNAL, _told(error, uri))
    if status == NOT_IMPLEMENTED:
        told = f"{_told(error, uri)}: the store has no conditional writes, so nothing is published"
        return NonRetryableError(ErrorCode.OUTPUT_UNSUPPORTED, told)
    return unavailable(error, uri)


def unavailable(error: Fault, uri: str) -> StepError:
    """Away, busy, broken, without rights: time or an operator may mend it."""
    if isinstance(error, _TIMEOUTS):
        return RetryableError(ErrorCode.TIMEOUT, f"{shown(uri)} took too long")
    if code_of(error) in _SLOW_DOWN:
        return RetryableError(ErrorCode.RATE_LIMITED, _told(error, uri))
    code = _PASSING.get(status_of(error) or 0, ErrorCode.STORAGE_UNAVAILABLE)
    return RetryableError(code, _told(error, uri))


@contextmanager
def faults(meaning: Meaning, uri: str) -> Iterator[None]:
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise meaning(error, uri) from error


def status_of(error: Fault) -> int | None:
    if not isinstance(error, ClientError):
        return None
    status: int | None = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status


def code_of(error: Fault) -> str:
    """S3's own name for what is wrong, if it has answered."""
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else ""


def _told(error: Fault, uri: str) -> str:
    if isinstance(error, _WITHOUT_CREDENTIALS):
        return f"{shown(uri)}: no credentials for S3 were found"
    if isinstance(error, ClientError):
        return f"{shown(uri)}: {status_of(error)} {code_of(error)}"
    return f"{shown(uri)}: {type(error).__name__}"
