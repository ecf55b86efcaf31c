"""The server's JSON operations, one method each."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from lucius_artifacts.client.answers import (
    Content,
    JsonObject,
    Session,
    SignedPart,
    content_of,
    parts_of,
    session_of,
)
from lucius_artifacts.client.errors import Unavailable
from lucius_artifacts.client.exchange import check_answer, json_object, reached
from lucius_artifacts.client.patience import Patience

_ROOT = "/v1/artifacts"
_ACCEPTED = 202
_SHORTEST_WAIT = 0.1
_LONGEST_WAIT = 10.0
_READ_SECONDS = 60.0
_READ_RATE = 50e6  # bytes a second, of slow storage


class Completion(NamedTuple):
    """`wait` is None once it is known what became of the upload; else seconds to ask again in."""

    session: Session
    wait: float | None


class Api:
    """What may be done twice is done again while the server is not available."""

    def __init__(self, http: httpx.Client, patience: Patience) -> None:
        self._http = http
        self._patience = patience

    def check(self) -> None:
        self._send("GET", "/healthz/live")

    def initiate(
        self, tenant_id: str | None, digest: str, length: int, part_size: int | None
    ) -> Session:
        wanted = {"digest": digest, "length": length, "part_size": part_size}
        body = _given({"tenant_id": tenant_id, **wanted})
        return session_of(self._again("POST", f"{_ROOT}/uploads", body=body))

    def upload(self, upload_id: str) -> Session:
        return session_of(self._again("GET", _upload(upload_id)))

    def sign(self, upload_id: str, numbers: Sequence[int]) -> list[SignedPart]:
        body = {"parts": list(numbers)}
        return parts_of(self._again("POST", f"{_upload(upload_id)}:sign", body=body))

    def dedupe(self, session: Session, proof: str) -> Session:
        """The server reads all of the content before it answers, so it is asked once and has more
        time for more bytes."""
        path, body = f"{_upload(session.upload_id)}:dedupe", {"proof": proof}
        seconds = _READ_SECONDS + session.length / _READ_RATE
        return session_of(_body(self._send("POST", path, body=body, seconds=seconds)))

    def complete(self, upload_id: str) -> Completion:
        ask = partial(self._send, "POST", f"{_upload(upload_id)}:complete")
        response = self._patience.insist(ask)
        session = session_of(_body(response))
        is_pending = response.status_code == _ACCEPTED
        return Completion(session, _wait(response.headers) if is_pending else None)

    def abort(self, upload_id: str) -> Session:
        return session_of(self._again("POST", f"{_upload(upload_id)}:abort"))

    def content(self, uri: str, tenant: str | None, job_id: str | None) -> Content:
        params = _given({"uri": uri, "tenant_id": tenant, "job_id": job_id})
        return content_of(self._again("GET", f"{_ROOT}/content", params=params))

    def artifacts(self, tenant: str | None, limit: int | None, cursor: str | None) -> JsonObject:
        params = _given({"tenant_id": tenant, "limit": limit, "cursor": cursor})
        return self._again("GET", _ROOT, params=params)

    def versions(
        self, name: str, tenant: str | None, limit: int | None, cursor: str | None
    ) -> JsonObject:
        params = _given({"tenant_id": tenant, "limit": limit, "cursor": cursor})
        return self._again("GET", _versions(name), params=params)

    def version(self, name: str, number: int, tenant: str | None) -> JsonObject:
        return self._again("GET", _version(name, number), params=_given({"tenant_id": tenant}))

    def publish(self, name: str, body: Mapping[str, Any]) -> JsonObject:
        """Content that the newest version has makes no new one, so this may be repeated."""
        return self._again("POST", _versions(name), body=_given(body))

    def command(self, name: str, number: int, verb: str, body: Mapping[str, Any]) -> JsonObject:
        """Once: what was done already is refused."""
        path = f"{_version(name, number)}:{verb}"
        return _body(self._send("POST", path, body=_given(body)))

    def run(self, *, dry_run: bool) -> JsonObject:
        return _body(self._send("POST", f"{_ROOT}/runs", body={"dry_run": dry_run}))

    def _again(
        self,
        method: str,
        path: str,
        params: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> JsonObject:
        return _body(self._patience.insist(lambda: self._send(method, path, params, body)))

    def _send(
        self,
        method: str,
        path: str,
        params: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        seconds: float | None = None,
    ) -> httpx.Response:
        timeout = self._http.timeout if seconds is None else httpx.Timeout(seconds)
        with reached("LUCIUS"):
            response = self._http.request(method, path, params=params, json=body, timeout=timeout)
        check_answer(response)
        return response


def _given(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _upload(upload_id: str) -> str:
    return f"{_ROOT}/uploads/{quote(upload_id, safe='')}"


def _versions(name: str) -> str:
    return f"{_ROOT}/{quote(name, safe='')}/versions"


def _version(name: str, number: int) -> str:
    return f"{_versions(name)}/{number}"


def _body(response: httpx.Response) -> JsonObject:
    body = json_object(response)
    if body is None:
        raise Unavailable("what answers is not LUCIUS")
    return body


def _wait(headers: Mapping[str, str]) -> float:
    asked = headers.get("retry-after", "")
    wait = float(asked) if asked.isdecimal() else 1.0
    return min(max(wait, _SHORTEST_WAIT), _LONGEST_WAIT)
