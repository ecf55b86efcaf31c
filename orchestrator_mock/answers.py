"""Answers to replies, in the form that the orchestrator gives them."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from lucius_contract.errors import ERRORS, ContractError, ErrorCode, Problem

JSON, PROBLEM_JSON = "application/json", "application/problem+json"
_RETRY_AFTER = {"Retry-After": "1"}
_NO_HEADERS: Mapping[str, str] = {}


class Answer(NamedTuple):
    status: int
    body: Mapping[str, Any]
    media_type: str = JSON
    headers: Mapping[str, str] = _NO_HEADERS

    @property
    def said(self) -> str:
        """The verdict, or the code of a refusal."""
        return str(self.body.get("verdict") or self.body.get("code") or "")


def refused(error: ContractError) -> Answer:
    return problem(error.code, error.message, error.problems)


def problem(code: ErrorCode, detail: str, problems: Sequence[Problem] = ()) -> Answer:
    """What has no status of its own is the orchestrator's fault."""
    info = ERRORS[code]
    status = HTTPStatus(info.http_status or HTTPStatus.INTERNAL_SERVER_ERROR)
    body = {
        "type": f"urn:lucius:problem:{code}",
        "title": status.phrase if info.http_status is None else info.meaning,
        "status": int(status),
        "detail": detail,
        "code": code,
        "errors": [{"pointer": p.pointer, "message": p.message} for p in problems],
    }
    headers = dict(_RETRY_AFTER) if info.retryable else {}
    if status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Answer(int(status), body, PROBLEM_JSON, headers)
