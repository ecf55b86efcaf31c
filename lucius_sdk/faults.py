"""Exceptions of others, by what they say about another attempt.

Faults of networks and storage pass; what is wrong with the data or the program stays.
"""

import errno
import json

from pydantic import ValidationError

from lucius_contract.errors import ErrorCode


def code_of(error: BaseException) -> ErrorCode:
    if isinstance(error, (ValidationError, json.JSONDecodeError, UnicodeDecodeError)):
        return ErrorCode.INPUT_INVALID
    known = _known_by_name(error)
    if known is not None:
        return known
    return _of_system(error) if isinstance(error, OSError) else ErrorCode.INTERNAL


_ASK_STATUS = "its status says"
_LIBRARY_FAULTS: dict[str, ErrorCode | str] = {
    "aiohttp.ClientConnectionError": ErrorCode.DEPENDENCY_UNAVAILABLE,
    "aiohttp.ClientPayloadError": ErrorCode.DEPENDENCY_UNAVAILABLE,
    "aiohttp.ClientResponseError": _ASK_STATUS,
    "aiohttp.InvalidURL": ErrorCode.INTERNAL,
    "aiohttp.ServerTimeoutError": ErrorCode.TIMEOUT,
    "anthropic.APIConnectionError": ErrorCode.DEPENDENCY_UNAVAILABLE,
    "anthropic.APIStatusError": _ASK_STATUS,
    "anthropic.APITimeoutError": ErrorCode.TIMEOUT,
    "azure.HttpResponseError": _ASK_STATUS,
    "azure.ServiceRequestError": ErrorCode.DEPENDENCY_UNAVAILABLE,
    "azure.ServiceRequestTimeoutError": ErrorCode.TIMEOUT,
    "azure.ServiceResponseError": ErrorCode.DEPENDENCY_UNAVAILABLE,
    "azure.ServiceResponseTimeoutError": ErrorCode.TIMEOUT,
    "botocore.HTTPClientError": ErrorCode.DEPENDENCY_UNAVAILABLE,
    "httpx.HTTPStatusError": _ASK_STATUS,
    "httpx.TimeoutException": ErrorCode.TIMEOUT,
    "httpx.TransportError": ErrorCode.DEPENDENCY_UNAVAILABLE,
    "httpx.UnsupportedProtocol": ErrorCode.INTERNAL,
    "openai.APIConnectionError": ErrorCode.DEPENDENCY_UNAVAILABLE,
    "openai.APIStatusError": _ASK_STATUS,
    "openai.APITimeoutError": ErrorCode.TIMEOUT,
    "psycopg.OperationalError": ErrorCode.DEPENDENCY_UNAVAILABLE,
    "redis.ConnectionError": ErrorCode.DEPENDENCY_UNAVAILABLE,
    "redis.TimeoutError": ErrorCode.TIMEOUT,
    "requests.ChunkedEncodingError": ErrorCode.DEPENDENCY_UNAVAILABLE,
    "requests.ConnectTimeout": ErrorCode.TIMEOUT,
    "requests.ConnectionError": ErrorCode.DEPENDENCY_UNAVAILABLE,
    "requests.HTTPError": _ASK_STATUS,
    "requests.Timeout": ErrorCode.TIMEOUT,
    "urllib.HTTPError": _ASK_STATUS,
    "urllib.URLError": ErrorCode.DEPENDENCY_UNAVAILABLE,
    "urllib3.HTTPError": ErrorCode.DEPENDENCY_UNAVAILABLE,
    "urllib3.LocationValueError": ErrorCode.INTERNAL,
    "urllib3.TimeoutError": ErrorCode.TIMEOUT,
}
"""Top package and class: none of these libraries needs to be there, so none is imported."""


def _known_by_name(error: BaseException) -> ErrorCode | None:
    """By the nearest of its classes that a table entry names."""
    for kind in type(error).__mro__:
        found = _LIBRARY_FAULTS.get(f"{kind.__module__.partition('.')[0]}.{kind.__name__}")
        if isinstance(found, ErrorCode):
            return found
        if found is not None:
            return _of_status(_status(error))
    return None


def _status(error: BaseException) -> int | None:
    """Libraries keep it on the error or on its response, under one of three names."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int):
                return value
    return None


def _of_status(status: int | None) -> ErrorCode:
    if status is None or status >= 500:
        return ErrorCode.DEPENDENCY_UNAVAILABLE
    if status == 429:
        return ErrorCode.RATE_LIMITED
    return ErrorCode.TIMEOUT if status == 408 else ErrorCode.INTERNAL


_SYSTEM_FAULTS: dict[type[OSError], ErrorCode] = {
    FileNotFoundError: ErrorCode.INPUT_NOT_FOUND,
    TimeoutError: ErrorCode.TIMEOUT,
    ConnectionError: ErrorCode.DEPENDENCY_UNAVAILABLE,
}
_DEFECTS = frozenset(
    {
        errno.E2BIG,
        errno.EBADF,
        errno.ECHILD,
        errno.EEXIST,
        errno.EINVAL,
        errno.EISDIR,
        errno.ENAMETOOLONG,
        errno.ENOEXEC,
        errno.ENOTDIR,
        errno.ENOTEMPTY,
        errno.ESRCH,
    }
)
_NETWORK = frozenset({errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH})


def _of_system(error: OSError) -> ErrorCode:
    """Without a number it is not of the system: image libraries call a broken file an OSError."""
    for kind, code in _SYSTEM_FAULTS.items():
        if isinstance(error, kind):
            return code
    if error.errno is None or error.errno in _DEFECTS:
        return ErrorCode.INTERNAL
    if error.errno in _NETWORK or type(error).__module__ in {"socket", "ssl"}:
        return ErrorCode.DEPENDENCY_UNAVAILABLE
    return ErrorCode.STORAGE_UNAVAILABLE
