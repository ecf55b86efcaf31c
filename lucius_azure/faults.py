"""What an answer of Azure Storage, or that there was none, means to the one who asked."""

from collections.abc import Mapping
from http import HTTPStatus

from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError

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
_FORBIDDEN = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_IN_SECONDS = {"Retry-After": 1.0, "retry-after-ms": 0.001, "x-ms-retry-after-ms": 0.001}


def is_passing(error: BaseException) -> bool:
    """Throttling, a server that is busy or moving, a connection that broke: another try may do.

    Nobody knows whether the call was done. Not even of an error that its name says to be of the
    request: a connection that is cut before the answer is one of these.
    """
    if isinstance(error, ClientAuthenticationError):
        return False
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        is_garbled = error.status_code < HTTPStatus.BAD_REQUEST
        return is_garbled or error.status_code in _PASSING or _is_being_deleted(error)
    return isinstance(error, AzureError | OSError)


def is_forbidden(error: BaseException) -> bool:
    """The identity, the key or the signature is not accepted, or has no right to do that."""
    if isinstance(error, ClientAuthenticationError):
        return True
    return isinstance(error, HttpResponseError) and error.status_code in _FORBIDDEN


def asked_to_wait(error: BaseException) -> float | None:
    """Seconds that the service asks for; None if it does not say."""
    headers = _headers_of(error) if isinstance(error, HttpResponseError) else {}
    for name, unit in _IN_SECONDS.items():
        try:
            return max(0.0, float(headers[name]) * unit)
        except (KeyError, TypeError, ValueError):  # a date: Azure sends numbers
            continue
    return None


def told(error: BaseException) -> str:
    """The status and its code, or what broke; nothing else, since what the service or the client
    says may repeat a signature."""
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        return f"{error.status_code} {code_of(error)}".rstrip()
    inner = error.__cause__
    return type(error).__name__ + (f" ({type(inner).__name__})" if inner else "")


def code_of(error: HttpResponseError) -> str:
    """The code of the service, in one word. Not every call of the clients finds it."""
    code = getattr(error, "error_code", None) or _headers_of(error).get("x-ms-error-code")
    return str(getattr(code, "value", None) or code or error.reason or "")


def _headers_of(error: HttpResponseError) -> Mapping[str, str]:
    """In any letter case."""
    headers: Mapping[str, str] = getattr(error.response, "headers", {})
    return headers


def _is_being_deleted(error: HttpResponseError) -> bool:
    """A table or container that was deleted a moment ago: it can be made again after a while."""
    is_conflict = error.status_code == HTTPStatus.CONFLICT
    return is_conflict and "BeingDeleted" in f"{code_of(error)} {error}"
