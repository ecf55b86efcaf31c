"""What the blob service answers, as what it means for a step.

Messages name the status and the service's code for it, never the request: its address may hold a
shared access signature.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from azure.core.exceptions import (
    AzureError,
    HttpResponseError,
    ServiceRequestTimeoutError,
    ServiceResponseTimeoutError,
)

from lucius_azure.faults import code_of as service_code
from lucius_azure.faults import told
from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError, RetryableError, StepError
from lucius_sdk.workspace_io.uris import shown

Meaning = Callable[[AzureError, str], StepError]

BAD_REQUEST = 400
FORBIDDEN = 403
NOT_FOUND = 404
CONFLICT = 409
PRECONDITION_FAILED = 412
NO_SUCH_RANGE = 416
BLOCKS_GONE = "InvalidBlockList"
_OTHERS_BLOCKS = "InvalidBlobOrBlock"
_TIMEOUTS = (ServiceRequestTimeoutError, ServiceResponseTimeoutError)
_PASSING: dict[int, ErrorCode] = {408: ErrorCode.TIMEOUT, 429: ErrorCode.RATE_LIMITED}
# Of statuses that mean something lasting, the cases that pass. A wrong checksum has two names.
_MAY_PASS = frozenset(
    {
        BLOCKS_GONE,
        "ContainerBeingDeleted",
        "ContainerNotFound",
        "InvalidOperation",
        "LeaseIdMissing",
        "Md5Mismatch",
    }
)


def reading(error: AzureError, uri: str) -> StepError:
    status = status_of(error)
    if status == PRECONDITION_FAILED:
        replaced = f"{shown(uri)} was replaced while it was read"
        return RetryableError(ErrorCode.STORAGE_UNAVAILABLE, replaced)
    if code_of(error) in _MAY_PASS:
        return unavailable(error, uri)
    if status == NOT_FOUND:
        return NonRetryableError(ErrorCode.INPUT_NOT_FOUND, f"there is nothing at {shown(uri)}")
    if status in (BAD_REQUEST, CONFLICT):
        return NonRetryableError(ErrorCode.INPUT_INVALID, _told(error, uri))
    return unavailable(error, uri)


def writing(error: AzureError, uri: str) -> StepError:
    status, code = status_of(error), code_of(error)
    if code in _MAY_PASS:
        return unavailable(error, uri)
    if code == _OTHERS_BLOCKS:
        taken = f"somebody else's unfinished upload lies at {shown(uri)}; remove it"
        return NonRetryableError(ErrorCode.OUTPUT_CONFLICT, taken)
    if status in (CONFLICT, PRECONDITION_FAILED):
        return NonRetryableError(ErrorCode.OUTPUT_CONFLICT, _told(error, uri))
    if status == BAD_REQUEST:
        return NonRetryableError(ErrorCode.INTERNAL, _told(error, uri))
    return unavailable(error, uri)


def unavailable(error: AzureError, uri: str) -> StepError:
    """Away, busy, broken, without rights: time or an operator may mend it."""
    if isinstance(error, _TIMEOUTS):
        return RetryableError(ErrorCode.TIMEOUT, f"{shown(uri)} took too long")
    code = _PASSING.get(status_of(error) or 0, ErrorCode.STORAGE_UNAVAILABLE)
    return RetryableError(code, _told(error, uri))


def away(error: AzureError, uri: str) -> StepError:
    """Whatever it is, the storage cannot be used."""
    return RetryableError(ErrorCode.STORAGE_UNAVAILABLE, _told(error, uri))


@contextmanager
def faults(meaning: Meaning, uri: str) -> Iterator[None]:
    try:
        yield
    except AzureError as error:
        raise meaning(error, uri) from error


def status_of(error: AzureError) -> int | None:
    return error.status_code if isinstance(error, HttpResponseError) else None


def code_of(error: AzureError) -> str:
    """The service's own name for what is wrong, if it has answered."""
    return service_code(error) if isinstance(error, HttpResponseError) else ""


def _told(error: AzureError, uri: str) -> str:
    return f"{shown(uri)}: {told(error)}"
