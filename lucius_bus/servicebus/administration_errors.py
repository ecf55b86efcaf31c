"""What went wrong with the administration, in the words of the port."""

from collections.abc import Iterator
from contextlib import contextmanager

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceNotFoundError,
)

from lucius_bus.port import BusError, BusUnavailable, Misused

_MANAGE = (
    "the credential may not manage the namespace: a shared access policy needs the Manage claim,"
    " an identity the role Azure Service Bus Data Owner"
)
_WRONG = (400, 403, 405)


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except AzureError as error:
        raise _bus_error(error) from error


def _bus_error(error: AzureError) -> BusError:
    if isinstance(error, ClientAuthenticationError) and error.response is None:
        return Misused(f"no token could be had for the credential: {error.message}")
    if isinstance(error, ClientAuthenticationError):
        return Misused(_MANAGE)
    if isinstance(error, ResourceNotFoundError):
        return BusUnavailable("an entity is being deleted or created by somebody else: try again")
    if isinstance(error, HttpResponseError) and error.status_code in _WRONG:
        return Misused(f"the service refused it: {error.message}")
    return BusUnavailable(f"the service cannot be reached or asks to wait: {error.message}")
