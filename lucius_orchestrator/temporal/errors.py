"""Errors of the client's library, as the port of workflows has them.

WorkflowError
├── WorkflowNotFound
└── WorkflowsUnavailable
    └── TemporalUnavailable
        └── TemporalRefused
"""

from collections.abc import Iterator
from contextlib import contextmanager

from temporalio.service import RPCError, RPCStatusCode

from lucius_orchestrator.ports.workflows import (
    WorkflowError,
    WorkflowNotFound,
    WorkflowsUnavailable,
)

_REFUSED = frozenset(
    {
        RPCStatusCode.INVALID_ARGUMENT,
        RPCStatusCode.PERMISSION_DENIED,
        RPCStatusCode.UNAUTHENTICATED,
        RPCStatusCode.UNIMPLEMENTED,
    }
)


class TemporalUnavailable(WorkflowsUnavailable):
    """The server could not be reached, or could not do it now."""


class TemporalRefused(TemporalUnavailable):
    """It will be refused again, until somebody mends the server or the settings."""


@contextmanager
def own_errors() -> Iterator[None]:
    """No error of the client's library leaves it."""
    try:
        yield
    except RPCError as error:
        raise _own(error) from error
    except (RuntimeError, OSError) as error:  # it does not connect
        raise TemporalUnavailable(str(error)) from error


def _own(error: RPCError) -> WorkflowError:
    said = f"{error.status.name}: {error.message}"
    if error.status is RPCStatusCode.NOT_FOUND and not _is_about_namespace(error):
        return WorkflowNotFound(said)
    return TemporalRefused(said) if error.status in _REFUSED else TemporalUnavailable(said)


def _is_about_namespace(error: RPCError) -> bool:
    """A namespace that is missing must not look like a workflow that is."""
    return any("Namespace" in detail.type_url for detail in error.grpc_status.details)
