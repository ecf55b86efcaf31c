"""What an answer of the service means, and when it is worth another try."""

from collections.abc import Sequence
from http import HTTPStatus

from azure.core.exceptions import (
    AzureError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import TableTransactionError

from lucius_orchestrator.adapters.ledger.tables.store import (
    EntityExists,
    EtagMismatch,
    NotFound,
    Operation,
    StoreError,
    StoreUnavailable,
)

FAULTS = (AzureError, OSError, TimeoutError, ValueError)
"""What calls of the client may raise; `ValueError` is among what it makes of answers."""

_CONDITIONS: dict[int, type[StoreError]] = {
    HTTPStatus.CONFLICT: EntityExists,
    HTTPStatus.PRECONDITION_FAILED: EtagMismatch,
    HTTPStatus.NOT_FOUND: NotFound,
}
_PASSING = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
_TABLE_CODES = frozenset({"TableNotFound", "TableBeingDeleted", "TableAlreadyExists"})


def condition(error: BaseException, operations: Sequence[Operation]) -> StoreError | None:
    """The condition of a batch that did not hold, if that is what it was refused for."""
    if not isinstance(error, HttpResponseError) or code_of(error) in _TABLE_CODES:
        return None
    if isinstance(error, TableTransactionError):
        meaning = _CONDITIONS.get(error.status_code or 0)
        return meaning(operations[error.index].row) if meaning else None
    if isinstance(error, ResourceExistsError):
        return EntityExists(operations[0].row)
    if isinstance(error, ResourceModifiedError):
        return EtagMismatch(operations[0].row)
    return NotFound(operations[0].row) if isinstance(error, ResourceNotFoundError) else None


def is_passing(error: BaseException) -> bool:
    """Throttling, a server that is busy or moving, a connection that broke: another try may do."""
    if isinstance(error, HttpResponseError):
        return error.status_code in _PASSING
    return isinstance(error, AzureError | OSError | TimeoutError)


def asked_to_wait(error: BaseException | None) -> float:
    """Seconds, by the header Retry-After; 0 if it does not say."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    try:
        return max(0.0, float(headers.get("Retry-After", 0)))
    except (TypeError, ValueError):
        return 0.0  # a date: Azure sends seconds


def unavailable(error: BaseException) -> StoreUnavailable:
    """Without the request, which may carry a signature."""
    if isinstance(error, HttpResponseError):
        return StoreUnavailable(f"Azure Tables answered {error.status_code} {code_of(error)}")
    return StoreUnavailable(f"Azure Tables: {type(error).__name__}")


def code_of(error: HttpResponseError) -> str:
    return str(getattr(error, "error_code", None) or error.reason or "")
