"""`HttpInvoker`: the invoker, over its internal API."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import quote

import aiohttp

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.domain.directive import on_the_wire
from lucius_orchestrator.domain.workflow import Next
from lucius_orchestrator.ports.invoker import (
    AttemptName,
    InvokerRefused,
    InvokerUnavailable,
    Reported,
)

_TRY_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_JOBS = "/v1/internal/jobs/"
_NO_JOB = "none"
_CODES = frozenset(code.value for code in ErrorCode)


class HttpInvoker:
    """Use it as `async with`. Neither its credential nor a lease appears in an error."""

    _session: aiohttp.ClientSession

    def __init__(
        self, base_url: str, credential: str, *, timeout: timedelta = timedelta(seconds=15)
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {credential}", "User-Agent": "lucius"}
        self._timeout = timeout

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            # Whoever calls limits how many calls are under way.
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=self._timeout.total_seconds()),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def check(self) -> None:
        """Returns if an invoker answers there, and to this credential: it says that it does not
        know a job that nobody has."""
        try:
            await self.command(_NO_JOB, "pause", None)
        except InvokerRefused as refused:
            if refused.code is not ErrorCode.JOB_NOT_FOUND:
                raise

    async def open_attempt(self, attempt: AttemptName, lease_expires_at: datetime) -> Next:
        body = {**_identity(attempt), "lease_expires_at": on_the_wire(lease_expires_at)}
        return _next(await self._post("/v1/internal/steps/attempt", body))

    async def publish(self, attempt: AttemptName) -> Next:
        return _next(await self._post("/v1/internal/publish", {"directive": _identity(attempt)}))

    async def report(self, attempt: AttemptName, event: str, deadline: datetime) -> Reported:
        body = {
            "event": event,
            "stepId": attempt.step_id,
            "attempt_no": attempt.attempt_no,
            "lease_id": attempt.lease_id,
            "deadline": on_the_wire(deadline),
        }
        answer = await self._post(f"{_JOBS}{quote(attempt.job_id, safe='')}/events", body)
        return Reported(_next(answer), _moment(answer.get("not_before")))

    async def command(self, job_id: str, verb: str, by: str | None) -> Next:
        return _next(await self._post(f"{_JOBS}{quote(job_id, safe='')}:{verb}", {"by": by}))

    async def _post(self, path: str, body: Mapping[str, object]) -> Mapping[str, Any]:
        posting = self._session.post(f"{self._base_url}{path}", json=body, allow_redirects=False)
        try:
            async with posting as response:
                status, answer = response.status, await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise InvokerUnavailable(f"the invoker: {_reason(error)}") from error
        return _judged(status, _object(status, answer))


def _identity(attempt: AttemptName) -> dict[str, object]:
    return {
        "jobId": attempt.job_id,
        "stepId": attempt.step_id,
        "tenant_id": attempt.tenant_id,
        "attempt_no": attempt.attempt_no,
        "lease_id": attempt.lease_id,
    }


def _object(status: int, answer: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(answer)
    except ValueError as error:
        raise InvokerUnavailable(f"the invoker answered {status}, and no JSON") from error
    if not isinstance(found, dict):
        raise InvokerUnavailable(f"the invoker answered {status}, and no object")
    return found


def _judged(status: int, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """A problem without a code that is known is not the invoker's: a proxy's perhaps."""
    if status == HTTPStatus.OK:
        return answer
    code = answer.get("code")
    said = f"the invoker answered {status}: {code or ''} {answer.get('detail') or ''}".rstrip(" :")
    is_passing = status in _TRY_AGAIN or not 400 <= status < 500
    if is_passing or not isinstance(code, str) or code not in _CODES:
        raise InvokerUnavailable(said)
    following = _next(answer) if answer.get("next") is not None else None
    raise InvokerRefused(ErrorCode(code), said, following)


def _next(answer: Mapping[str, Any]) -> Next:
    following = answer.get("next")
    if not isinstance(following, dict):
        raise InvokerUnavailable("the invoker did not say what comes next")
    return cast(Next, following)


def _moment(text: object) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(str(text))
    except ValueError as error:
        raise InvokerUnavailable("the invoker named no time that can be read") from error


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or str(error.os_error)
    return type(error).__name__
