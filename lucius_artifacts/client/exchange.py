"""Requests and what became of them."""

import json
import logging
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from lucius_artifacts.client.errors import (
    Answer,
    Conflict,
    Denied,
    Gone,
    NotFound,
    Refused,
    Unavailable,
)

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_PASSING = frozenset({408, 425, 429})
_SERVER_ERROR = 500
_KINDS: Mapping[int, type[Refused]] = {
    401: Denied,
    403: Denied,
    404: NotFound,
    409: Conflict,
    410: Gone,
}
_SIGNATURE = re.compile(r"(?i)(?:^|[&-])(?:sig|signature)=")


def new_http(
    url: str, timeout: httpx.Timeout, tls: ssl.SSLContext, key: str | None = None
) -> httpx.Client:
    """Follows no redirect: what is sent is for the server that was named."""
    if key is not None and not (key.isascii() and key.isprintable()):
        raise ValueError("the key holds characters that no key has")
    headers = {"User-Agent": "lucius-artifacts"}
    return httpx.Client(
        base_url=url,
        headers=headers if key is None else {**headers, "Authorization": f"Bearer {key}"},
        timeout=timeout,
        verify=tls,
        limits=httpx.Limits(max_connections=None),  # each upload limits itself
        # A proxy for the world outside does not lead back to this machine.
        trust_env=httpx.URL(url).host not in _LOOPBACK,
    )


def check_answer(response: httpx.Response) -> None:
    """Its body has been read, unless it is a success."""
    status = response.status_code
    if response.is_success:
        return
    answer = Answer(status, problem_of(response), response.headers.get("retry-after"))
    if status in _PASSING or status >= _SERVER_ERROR:
        raise Unavailable(str(answer), answer)
    raise _KINDS.get(status, Refused)(answer)


def problem_of(response: httpx.Response) -> dict[str, Any] | None:
    if "application/problem+json" not in response.headers.get("content-type", ""):
        return None
    return json_object(response)


def json_object(response: httpx.Response) -> dict[str, Any] | None:
    try:
        body = json.loads(response.content)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


@contextmanager
def reached(what: str) -> Iterator[None]:
    """Faults of the connection; `what` names the other end, without anything secret."""
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise Unavailable(f"{what} cannot be reached") from error
    except httpx.TimeoutException as error:
        raise Unavailable(f"{what} did not answer in time") from error
    except (httpx.HTTPError, httpx.StreamError) as error:
        raise Unavailable(f"the connection to {what} broke: {type(error).__name__}") from error


class WithoutSignatures(logging.Filter):
    """The log of httpx names the address of every request. For as long as somebody uses signed
    ones, their signatures are cut."""

    def __enter__(self) -> None:
        logging.getLogger("httpx").addFilter(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger("httpx").removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(map(_unsigned, record.args))
        return True


def _unsigned(argument: object) -> object:
    if isinstance(argument, httpx.URL) and _SIGNATURE.search(argument.query.decode()):
        return argument.copy_with(query=b"***")
    return argument
