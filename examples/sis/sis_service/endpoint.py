"""An endpoint that speaks as OpenAI's does: one chat completion, asked for until it comes."""

import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn, Self

import httpx
from lucius_sdk import ErrorCode, NonRetryableError, RetryableError, StepContext
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_before_delay,
    wait_exponential,
    wait_random,
)

from sis_service import settings as variables
from sis_service.settings import EndpointSettings

Message = Mapping[str, str]

TRIES = 4
RETRY_SECONDS = 60.0
"""From the first request of a question to the last one that is begun."""
MOST_BYTES = 1_000_000
_MASK = "***"
_pause = wait_exponential(multiplier=0.25, max=8) + wait_random(0, 0.25)


class _PassingFault(Exception):
    """Another request may succeed."""

    def __init__(self, code: ErrorCode, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after


class Endpoint:
    """May be used by several threads at once. No error has anything in it that the endpoint said:
    it may have repeated the document, or the key."""

    def __init__(self, settings: EndpointSettings) -> None:
        self._settings = settings
        self._client = httpx.Client(
            headers=_headers(settings),
            follow_redirects=False,
            # What may go in the clear stays on this machine: not over a proxy.
            trust_env=not settings.is_local,
        )

    @property
    def model(self) -> str:
        return self._settings.model

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def complete(
        self,
        ctx: StepContext[Any],
        messages: Sequence[Message],
        response_format: Mapping[str, Any] | None,
    ) -> str:
        """The text that the model answers. What passes is tried again for a while."""
        body = self._body(messages, response_format)
        retrying = Retrying(
            retry=retry_if_exception_type(_PassingFault),
            stop=stop_after_attempt(TRIES)
            | stop_before_delay(min(RETRY_SECONDS, ctx.seconds_left())),
            wait=_wait,
            sleep=ctx.wait,
            reraise=True,
        )
        try:
            return self._without_key(retrying(self._request, ctx, body))
        except _PassingFault as fault:
            raise RetryableError(fault.code, str(fault)) from fault

    def _body(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._settings.model, "messages": list(messages)}
        if response_format is not None:
            body["response_format"] = response_format
        if self._settings.temperature is not None:
            body["temperature"] = self._settings.temperature
        return body

    def _request(self, ctx: StepContext[Any], body: Mapping[str, Any]) -> str:
        ctx.check()
        seconds = min(self._settings.timeout_seconds, max(ctx.seconds_left(), 1.0))
        url = f"{self._settings.url}/chat/completions"
        try:
            with self._client.stream("POST", url, json=body, timeout=seconds) as response:
                _check_status(response)
                return _content(_read(response, time.monotonic() + seconds))
        except httpx.TimeoutException as error:
            raise _took_too_long(seconds) from error
        except httpx.TransportError as error:
            raise _PassingFault(
                ErrorCode.DEPENDENCY_UNAVAILABLE,
                f"the endpoint of {variables.URL} cannot be reached: {type(error).__name__}",
            ) from error

    def _without_key(self, content: str) -> str:
        key = self._settings.key
        return content.replace(key.get_secret_value(), _MASK) if key else content


def _headers(settings: EndpointSettings) -> dict[str, str]:
    # Without compression the bound on what is read is one on what is kept.
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if settings.key is not None:
        headers["Authorization"] = f"Bearer {settings.key.get_secret_value()}"
    return headers


def _wait(state: RetryCallState) -> float:
    fault = state.outcome.exception() if state.outcome else None
    asked = fault.retry_after if isinstance(fault, _PassingFault) else None
    return _pause(state) if asked is None else asked


def _check_status(response: httpx.Response) -> None:
    status = response.status_code
    if status == httpx.codes.OK:
        return
    if status == httpx.codes.TOO_MANY_REQUESTS:
        raise _PassingFault(
            ErrorCode.RATE_LIMITED,
            f"the endpoint of {variables.URL} asks to slow down",
            _retry_after(response),
        )
    if status == httpx.codes.REQUEST_TIMEOUT:
        raise _PassingFault(ErrorCode.TIMEOUT, f"the endpoint of {variables.URL} timed out")
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        raise _PassingFault(
            ErrorCode.DEPENDENCY_UNAVAILABLE,
            f"the endpoint of {variables.URL} answered {status}",
            _retry_after(response),
        )
    _refuse(status)


def _refuse(status: int) -> NoReturn:
    if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        raise NonRetryableError(
            "SIS_LLM_REFUSED", f"the endpoint answered {status}: look at {variables.KEY}"
        )
    raise NonRetryableError(
        "SIS_LLM_REJECTED",
        f"the endpoint answered {status}: look at {variables.URL} and {variables.MODEL},"
        " and whether the model takes what the README says is sent",
    )


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds or a date, as HTTP allows both; None if it is neither."""
    text = response.headers.get("Retry-After", "")
    if text.isdecimal():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max((until - datetime.now(UTC)).total_seconds(), 0.0)


def _read(response: httpx.Response, until: float) -> bytes:
    """A time limit of httpx is for each piece: an answer that trickles would never reach it."""
    content = bytearray()
    for piece in response.iter_raw():
        content += piece
        if len(content) > MOST_BYTES:
            raise _unreadable(f"it has more than {MOST_BYTES} bytes")
        if time.monotonic() > until:
            raise httpx.ReadTimeout("the answer takes too long")
    return bytes(content)


def _content(body: bytes) -> str:
    """Empty where the model says nothing, as one may that refuses; without half characters."""
    try:
        content = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError) as error:
        raise _unreadable("it is no chat completion") from error
    except RecursionError as error:
        raise _unreadable("it is nested too deep") from error
    if content is not None and not isinstance(content, str):
        raise _unreadable("its content is no text")
    return (content or "").encode(errors="replace").decode()


def _unreadable(reason: str) -> NonRetryableError:
    return NonRetryableError(
        "SIS_LLM_UNREADABLE",
        f"the answer of the endpoint cannot be used, {reason}: look at {variables.URL}",
    )


def _took_too_long(seconds: float) -> _PassingFault:
    return _PassingFault(
        ErrorCode.TIMEOUT,
        f"the endpoint of {variables.URL} took more than {seconds:g} seconds: see"
        f" {variables.TIMEOUT}",
    )
