"""The API of a server, for the commands that use it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from lucius_cli.failures import EnvironmentFailed, Unreachable, Unsuitable
from lucius_cli.problems import PROBLEM_TYPE, refusal
from lucius_cli.server_events import ServerEvent, server_events
from lucius_outbox.redaction import without_url_credentials

DEFAULT_URL = "http://127.0.0.1:8080"
MAX_PAGE = 200

_TIMEOUT = httpx.Timeout(40.0, connect=5.0)
_SILENCE = httpx.Timeout(40.0, connect=5.0, read=60.0)  # of a stream, which sends signs of life
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

JsonObject = dict[str, Any]


class Page(NamedTuple):
    """`cursor` asks for what follows; None: there is nothing more."""

    items: list[JsonObject]
    cursor: str | None


class Look(NamedTuple):
    """An answer that is looked at rather than used."""

    status: int
    body: JsonObject


class Api:
    """Verbs of the HTTP API. Answers that are not the expected ones are `CommandFailed`. `url` is
    for messages."""

    def __init__(self, http: httpx.Client, url: str) -> None:
        self.url = without_url_credentials(url)
        self._http = http

    def job(self, job_id: str) -> JsonObject:
        return self._send("GET", _job_path(job_id))

    def submit(self, envelope: Mapping[str, Any]) -> JsonObject:
        return self._send("POST", "/v1/orchestrate", body=envelope)

    def command(self, job_id: str, verb: str, idempotency_key: str | None = None) -> JsonObject:
        if idempotency_key is not None and not _fits_a_header(idempotency_key):
            raise Unsuitable("an idempotency key of a redrive holds printable ASCII alone")
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return self._send("POST", f"{_job_path(job_id)}:{verb}", headers=headers)

    def listed(
        self, path: str, filters: Mapping[str, str | None], limit: int | None, cursor: str | None
    ) -> Page:
        """As many items as asked for, over as many pages as that takes; None: all of them."""
        items: list[JsonObject] = []
        while limit is None or len(items) < limit:
            size = MAX_PAGE if limit is None else min(MAX_PAGE, limit - len(items))
            asked = {**filters, "limit": str(size), "cursor": cursor}
            body = self._send("GET", path, {k: v for k, v in asked.items() if v is not None})
            items += body["items"]
            cursor = body.get("next_cursor")
            if cursor is None:
                break
        return Page(items, cursor)

    def services(self) -> JsonObject:
        return self._send("GET", "/v1/services")

    def stream(self, job_id: str, after: str) -> Iterator[ServerEvent]:
        """Events of a job after the one named, until the server ends the stream."""
        path = f"{_job_path(job_id)}/stream"
        headers = {"Accept": "text/event-stream", "Last-Event-ID": after}
        with (
            self._reached(),
            self._http.stream("GET", path, headers=headers, timeout=_SILENCE) as response,
        ):
            if response.is_success:
                yield from server_events(response.iter_bytes())
                return
            response.read()
            self._answer(response)

    def look(self, path: str) -> Look:
        """Whatever status the answer has; `body` is empty when it is not a JSON object."""
        with self._reached():
            response = self._http.get(path)
        return Look(response.status_code, _object(response) or {})

    def _send(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        with self._reached():
            response = self._http.request(method, path, params=params, json=body, headers=headers)
        return self._answer(response)

    def _answer(self, response: httpx.Response) -> JsonObject:
        body = _object(response)
        if not response.is_success:
            is_problem = PROBLEM_TYPE in response.headers.get("content-type", "")
            raise refusal(
                response.status_code,
                body if is_problem else None,
                response.headers.get("retry-after"),
                with_key="authorization" in self._http.headers,
            )
        if body is None:
            raise EnvironmentFailed(f"what answers at {self.url} is not LUCIUS: set LUCIUS_URL")
        return body

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Unreachable(
                f"no LUCIUS at {self.url}: start one with `lucius up`, or set LUCIUS_URL"
            ) from error
        except httpx.TimeoutException as error:
            raise Unreachable(f"LUCIUS at {self.url} did not answer in time") from error
        except httpx.RequestError as error:
            raise Unreachable(
                f"the connection to LUCIUS at {self.url} broke; doing the same again is safe"
            ) from error


@contextmanager
def connected(environ: Mapping[str, str]) -> Iterator[Api]:
    """The server that LUCIUS_URL names, asked with the key in LUCIUS_API_KEY."""
    url, key = server_url(environ), api_key(environ)
    with httpx.Client(
        base_url=url,
        headers={"Authorization": f"Bearer {key}"} if key else {},
        timeout=_TIMEOUT,
        # A proxy for the world outside does not lead back to this machine.
        trust_env=httpx.URL(url).host not in _LOOPBACK,
    ) as http:
        yield Api(http, url)


def server_url(environ: Mapping[str, str]) -> str:
    text = environ.get("LUCIUS_URL", "").strip().rstrip("/") or DEFAULT_URL
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise EnvironmentFailed("LUCIUS_URL is not an address") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise EnvironmentFailed(f"LUCIUS_URL must be like {DEFAULT_URL}, not {text}")
    return text


def api_key(environ: Mapping[str, str]) -> str:
    """Empty if none is set."""
    key = environ.get("LUCIUS_API_KEY", "").strip()
    if not _fits_a_header(key):
        raise EnvironmentFailed("LUCIUS_API_KEY holds characters that no key has")
    return key


def _fits_a_header(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _job_path(job_id: str) -> str:
    return f"/v1/jobs/{quote(job_id, safe='')}"


def _object(response: httpx.Response) -> JsonObject | None:
    try:
        body = json.loads(response.content)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
