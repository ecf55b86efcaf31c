"""Errors as clients see them: problem details (RFC 9457) with a stable code.

ContractError            status and code from the contract's table
ArtifactsError           the code that says the same; see `of_artifacts`
LedgerUnavailable        503 UNAVAILABLE
InvalidCursor            400 ENVELOPE_INVALID
RequestValidationError   400 ENVELOPE_INVALID
HTTPException            404, 405: raised by the router
BodyTooSlow              408, and the connection is closed
anything else            500 INTERNAL, which says nothing
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple

import pydantic_core
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from lucius_artifacts.errors import (
    ArtifactsError,
    Busy,
    Gone,
    Invalid,
    NotFound,
    Refused,
    Unavailable,
)
from lucius_artifacts.signing import SignatureRefused
from lucius_contract.canonical import pointer_to
from lucius_contract.errors import ERRORS, ContractError, ErrorCode, Problem
from lucius_logs.context import correlation
from lucius_orchestrator.engine.backlogs import LaneSaturated
from lucius_orchestrator.ports.ledger import InvalidCursor, LedgerUnavailable

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:lucius:problem:"


class HttpCode(StrEnum):
    """Refusals of HTTP itself, which the contract has no codes for."""

    NOT_FOUND = "NOT_FOUND"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    REQUEST_TIMEOUT = "REQUEST_TIMEOUT"
    RANGE_NOT_SATISFIABLE = "RANGE_NOT_SATISFIABLE"
    BAD_REQUEST = "BAD_REQUEST"


HTTP_CODES: Mapping[int, HttpCode] = {
    400: HttpCode.BAD_REQUEST,
    404: HttpCode.NOT_FOUND,
    405: HttpCode.METHOD_NOT_ALLOWED,
    408: HttpCode.REQUEST_TIMEOUT,
    416: HttpCode.RANGE_NOT_SATISFIABLE,
}
"""By status."""


class Refusal(NamedTuple):
    status: int
    code: str
    title: str
    detail: str
    problems: Sequence[Problem] = ()
    headers: Mapping[str, str] = {}
    extra: Mapping[str, object] = {}

    def body(self) -> bytes:
        return pydantic_core.to_json(
            {
                "type": TYPE_PREFIX + self.code,
                "title": self.title,
                "status": self.status,
                "detail": self.detail,
                "code": self.code,
                "errors": [{"pointer": p.pointer, "message": p.message} for p in self.problems],
                "correlation_id": correlation.get(),
                **self.extra,
            }
        )


class BodyTooSlow(Exception):
    """The request's body did not arrive in time."""


class BodyTooLarge(ContractError):
    """The request's body is over the limit, and was not read to its end."""

    def __init__(self, limit: int) -> None:
        super().__init__(ErrorCode.TOO_LARGE, f"the body has more than {limit} bytes")


def not_found(detail: str) -> HTTPException:
    return HTTPException(HTTPStatus.NOT_FOUND, detail)


def refusal_of(error: Exception, retry_after: timedelta) -> Refusal | None:
    """How to refuse a request that met this error; None for an error that nobody foresaw."""
    if isinstance(error, ArtifactsError):
        error = of_artifacts(error)
    if isinstance(error, ContractError):
        return _of_contract(error, retry_after)
    if isinstance(error, LedgerUnavailable):
        away = ContractError(ErrorCode.UNAVAILABLE, "the ledger cannot be reached; try again")
        return _of_contract(away, retry_after)
    if isinstance(error, HTTPException):
        return _of_http(error)
    if isinstance(error, BodyTooSlow):
        return _plain(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time", CLOSE)
    problems = _problems_of(error)
    if problems is None:
        return None
    invalid = ContractError(ErrorCode.ENVELOPE_INVALID, "the request is not valid", problems)
    return _of_contract(invalid, retry_after)


CLOSE = {"connection": "close"}
UNFORESEEN = Refusal(
    HTTPStatus.INTERNAL_SERVER_ERROR,
    ErrorCode.INTERNAL,
    HTTPStatus.INTERNAL_SERVER_ERROR.phrase,
    "something went wrong here; the log has more under the correlation id",
)


def _of_contract(error: ContractError, retry_after: timedelta) -> Refusal | None:
    info = ERRORS[error.code]
    if info.http_status is None:
        return None
    if isinstance(error, LaneSaturated):
        retry_after = error.retry_after or retry_after
    headers = waiting(retry_after) if info.retryable else {}
    if error.code is ErrorCode.UNAUTHENTICATED:
        headers["www-authenticate"] = "Bearer"
    if isinstance(error, BodyTooLarge):
        headers |= CLOSE
    return Refusal(
        info.http_status, error.code, info.meaning, error.message, error.problems, headers
    )


def waiting(retry_after: timedelta) -> dict[str, str]:
    """The header that tells a client when to come back."""
    return {"retry-after": str(max(1, round(retry_after.total_seconds())))}


_ARTIFACT_CODES: tuple[tuple[type[ArtifactsError], ErrorCode], ...] = (
    (Invalid, ErrorCode.ARTIFACT_INVALID),
    (NotFound, ErrorCode.ARTIFACT_NOT_FOUND),
    (Gone, ErrorCode.ARTIFACT_GONE),
    (SignatureRefused, ErrorCode.FORBIDDEN),
    (Refused, ErrorCode.STATE_CONFLICT),
    (Busy, ErrorCode.TENANT_SATURATED),
    (Unavailable, ErrorCode.UNAVAILABLE),
)
"""The first one that fits counts."""

_NOT_IN_THE_BODY = {
    "uri": "/query/uri",
    "name": "/path/name",
    "key": "/path/key",
    "part": "",
    "retention": "/retention_seconds",
}


def of_artifacts(error: ArtifactsError) -> ContractError:
    code = next((code for kind, code in _ARTIFACT_CODES if isinstance(error, kind)), None)
    if isinstance(error, Invalid):
        pointer = _NOT_IN_THE_BODY.get(error.field, f"/{error.field}")
        problems = [Problem(pointer, error.problem)]
        return ContractError(ErrorCode.ARTIFACT_INVALID, str(error), problems)
    if code is ErrorCode.UNAVAILABLE:  # why is for the log
        return ContractError(code, "artifacts cannot be reached; try again")
    return ContractError(code or ErrorCode.INTERNAL, str(error))


def _of_http(error: HTTPException) -> Refusal:
    status = HTTPStatus(error.status_code)
    own = error.detail != status.phrase
    detail = error.detail if own else f"{status.description or status.phrase}"
    return _plain(status, detail, error.headers or {})


def _plain(status: HTTPStatus, detail: str, headers: Mapping[str, str]) -> Refusal:
    known = HTTP_CODES.get(status, HttpCode.BAD_REQUEST)
    return Refusal(status, known, status.phrase, detail, headers=headers)


def _problems_of(error: Exception) -> list[Problem] | None:
    if isinstance(error, RequestValidationError):
        return [Problem(pointer_to(tuple(e["loc"])), e["msg"]) for e in error.errors()]
    if isinstance(error, InvalidCursor):
        return [Problem("/query/cursor", f"{error}; begin at the first page")]
    return None
