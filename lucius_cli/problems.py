"""What a server that says no is understood to mean."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from lucius_cli.failures import CommandFailed, EnvironmentFailed, Refused
from lucius_contract.errors import ErrorCode

PROBLEM_TYPE = "application/problem+json"

_SERVER_ERROR = 500
_OTHER_THAN_ANSWERS = range(300, 400)


def refusal(
    status: int, problem: Mapping[str, Any] | None, retry_after: str | None, *, with_key: bool
) -> CommandFailed:
    """The failure that an answer of this status stands for; `problem` is None when the body is not
    problem details, as when a proxy answers in the server's place."""
    if problem is None:
        return _foreign(status)
    text = "\n".join(_lines(problem, status, retry_after, with_key=with_key))
    return EnvironmentFailed(text) if status >= _SERVER_ERROR else Refused(text)


def _foreign(status: int) -> CommandFailed:
    text = f"the server answered {status} {_phrase(status)}"
    if status in _OTHER_THAN_ANSWERS or status >= _SERVER_ERROR:
        return EnvironmentFailed(f"{text}: is LUCIUS_URL the address of LUCIUS itself?")
    return Refused(text)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _lines(
    problem: Mapping[str, Any], status: int, retry_after: str | None, *, with_key: bool
) -> Iterator[str]:
    code, title = problem.get("code"), problem.get("title") or _phrase(status)
    yield f"{code or status}: {title}"
    detail = problem.get("detail")
    if detail and detail != title:
        yield f"  {detail}"
    for error in problem.get("errors") or ():
        yield f"  {error.get('pointer') or '(document)'}: {error.get('message')}"
    yield from _advice(code, retry_after, with_key=with_key)
    if problem.get("correlation_id") and status >= _SERVER_ERROR:
        yield f"  the server's log knows it as correlation_id {problem['correlation_id']}"


def _advice(code: object, retry_after: str | None, *, with_key: bool) -> Iterator[str]:
    if code == ErrorCode.UNAUTHENTICATED:
        what = (
            "the key in LUCIUS_API_KEY was not accepted" if with_key else "this server wants a key"
        )
        yield f"  {what}: set LUCIUS_API_KEY to one made with `lucius keys create`"
    elif code == ErrorCode.FORBIDDEN and with_key:
        yield "  set LUCIUS_API_KEY to a key that has the role and the tenant"
    if retry_after:
        yield f"  try again in {retry_after} s"
