"""What the service answers, as what it means here."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from azure.core.exceptions import AzureError, HttpResponseError

from lucius_artifacts.errors import Unavailable
from lucius_azure.faults import code_of, told

MANY_TRIES = 8
"""Of what somebody else may spoil."""


@contextmanager
def faults() -> Iterator[None]:
    """What nobody has dealt with."""
    try:
        yield
    except AzureError as error:
        # Without the error itself: what the service says may repeat a signature.
        raise Unavailable(f"Azure Blob Storage: {told(error)}") from None


def is_missing(error: HttpResponseError) -> bool:
    """The blob; without its container there is no storage."""
    return error.status_code == HTTPStatus.NOT_FOUND and code_of(error) != "ContainerNotFound"


def is_leased(error: HttpResponseError) -> bool:
    return code_of(error) in {"LeaseIdMissing", "LeaseIdMismatchWithBlobOperation"}


def is_overtaken(error: HttpResponseError) -> bool:
    """What is there is not what was looked at."""
    changed = error.status_code == HTTPStatus.PRECONDITION_FAILED and not is_leased(error)
    return changed or code_of(error) == "BlobAlreadyExists"
