"""What the API of artifacts answers, as what it means for a step."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lucius_artifacts.client.errors import (
    ClientError,
    Conflict,
    ContentDamaged,
    Denied,
    Gone,
    NotFound,
    Refused,
    Unavailable,
)
from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError, RetryableError, StepError
from lucius_sdk.workspace_io.uris import shown

Meaning = Callable[[ClientError, str], StepError]

_TOO_MANY = 429


def reading(error: ClientError, uri: str) -> StepError:
    if isinstance(error, (Gone, NotFound)):
        return NonRetryableError(ErrorCode.INPUT_NOT_FOUND, _told(error, uri))
    if _may_pass(error):
        return unavailable(error, uri)
    return NonRetryableError(ErrorCode.INPUT_INVALID, _told(error, uri))


def uploading(error: ClientError, uri: str) -> StepError:
    """Nothing is published yet: another attempt makes another outcome, and brings it anew."""
    if isinstance(error, Refused) and not _may_pass(error):
        return NonRetryableError(ErrorCode.INTERNAL, _told(error, uri))
    return unavailable(error, uri)


def publishing(error: ClientError, uri: str) -> StepError:
    if isinstance(error, Conflict):
        return NonRetryableError(ErrorCode.OUTPUT_CONFLICT, _told(error, uri))
    if isinstance(error, (Gone, NotFound)):
        # The outcome was brought a moment ago, and is gone already.
        return unavailable(error, uri)
    return uploading(error, uri)


def unavailable(error: ClientError, uri: str) -> StepError:
    """Away, busy, broken, without rights: time or an operator may mend it."""
    if isinstance(error, Denied):
        told = f"{_told(error, uri)}: give LUCIUS_ARTIFACTS_KEY the roles and the tenant"
        return RetryableError(ErrorCode.STORAGE_UNAVAILABLE, told)
    answer = error.answer if isinstance(error, Unavailable) else None
    is_busy = answer is not None and answer.status == _TOO_MANY
    code = ErrorCode.RATE_LIMITED if is_busy else ErrorCode.STORAGE_UNAVAILABLE
    return RetryableError(code, _told(error, uri))


@contextmanager
def faults(meaning: Meaning, uri: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise meaning(error, uri) from error


def _may_pass(error: ClientError) -> bool:
    return isinstance(error, (Conflict, ContentDamaged, Denied, Unavailable))


def _told(error: ClientError, uri: str) -> str:
    return f"{shown(uri)}: {error}"
