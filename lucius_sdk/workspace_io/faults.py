"""Faults of files, as what they mean for a step."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError, RetryableError, StepError
from lucius_sdk.workspace_io.uris import shown

Meaning = Callable[[OSError, str], StepError]

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
_UNREADABLE = frozenset({errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO})
_TAKEN = frozenset({errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ELOOP})


def reading(error: OSError, uri: str) -> StepError:
    if error.errno in _ABSENT:
        return NonRetryableError(ErrorCode.INPUT_NOT_FOUND, f"there is nothing at {shown(uri)}")
    if error.errno in _UNREADABLE:
        return NonRetryableError(ErrorCode.INPUT_INVALID, _told(error, uri))
    return unavailable(error, uri)


def writing(error: OSError, uri: str) -> StepError:
    if error.errno in _TAKEN:
        return NonRetryableError(ErrorCode.OUTPUT_CONFLICT, _told(error, uri))
    if error.errno == errno.ENAMETOOLONG:
        return NonRetryableError(ErrorCode.INTERNAL, _told(error, uri))
    return unavailable(error, uri)


def unavailable(error: OSError, uri: str) -> StepError:
    """Full, read-only, without rights, broken: an operator or time may mend it."""
    return RetryableError(ErrorCode.STORAGE_UNAVAILABLE, _told(error, uri))


@contextmanager
def faults(meaning: Meaning, uri: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise meaning(error, uri) from error


def _told(error: OSError, uri: str) -> str:
    return f"{shown(uri)}: {error.strerror or type(error).__name__}"
