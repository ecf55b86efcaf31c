"""What an answer of the service means to a ledger."""

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

from lucius_azure.faults import code_of, is_forbidden, told
from lucius_orchestrator.adapters.ledger.tables.store import (
    EntityExists,
    EtagMismatch,
    Insert,
    NotFound,
    Operation,
    StoreError,
    StoreUnavailable,
)
from lucius_orchestrator.ports.ledger import LedgerUnavailable, TooLarge

FAULTS = (AzureError, OSError, ValueError)
"""What calls of the client may raise; `ValueError` is among what it makes of answers."""

_CONDITIONS: dict[int, type[StoreError]] = {
    HTTPStatus.CONFLICT: EntityExists,
    HTTPStatus.PRECONDITION_FAILED: EtagMismatch,
    HTTPStatus.NOT_FOUND: NotFound,
}
_OF_TABLES = frozenset({"TableNotFound", "TableBeingDeleted"})
_TOO_LARGE = frozenset({HTTPStatus.REQUEST_ENTITY_TOO_LARGE})


def condition(error: BaseException, operations: Sequence[Operation]) -> StoreError | None:
    """The condition of a batch that did not hold, if that is what it was refused for."""
    if not operations or not isinstance(error, HttpResponseError) or is_of_the_table(error):
        return None
    if isinstance(error, TableTransactionError):
        meaning = _CONDITIONS.get(error.status_code or 0)
        return meaning(operations[error.index].row) if meaning else None
    (operation,) = operations
    if isinstance(error, ResourceExistsError):
        return EntityExists(operation.row)
    if isinstance(error, ResourceModifiedError):
        return EtagMismatch(operation.row)
    # What is not found where something is inserted is the table.
    is_row = isinstance(error, ResourceNotFoundError) and not isinstance(operation, Insert)
    return NotFound(operation.row) if is_row else None


def is_of_the_table(error: HttpResponseError) -> bool:
    """It is the table that is missing, not the row."""
    return code_of(error) in _OF_TABLES


def unavailable(error: BaseException) -> LedgerUnavailable:
    """Without the request, which may carry a signature."""
    if isinstance(error, HttpResponseError) and error.status_code in _TOO_LARGE:
        return TooLarge("the job is larger than the 4 MiB that Azure Tables takes at once")
    if is_forbidden(error):
        return StoreUnavailable(
            f"Azure Tables refuses this process ({told(error)}): give it the role Storage Table"
            " Data Contributor, or a key or signature that may read and write tables"
        )
    return StoreUnavailable(f"Azure Tables: {told(error)}")
