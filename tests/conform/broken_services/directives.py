"""Directives as they come from the bus."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

MAJOR = "1"


class Malformed(Exception):
    """It cannot be read, and never will be."""


@dataclass(frozen=True, slots=True)
class Directive:
    """`lease_expires_at` is in seconds since the epoch. Without `callback_urls` it is answered on
    the reply topic of its lane."""

    job_id: str
    step_id: str
    tenant_id: str
    attempt_no: int
    lease_id: str
    step_type: str
    input_uri: str
    workspace: Path
    payload: Mapping[str, Any]
    lane: int
    correlation_id: str
    traceparent: str
    lease_expires_at: float
    lease_seconds: float
    heartbeat_seconds: float
    callback_urls: Mapping[str, str] | None = None
    callback_token: str = field(default="", repr=False)

    @property
    def identity(self) -> dict[str, Any]:
        """What every reply repeats."""
        return {
            "jobId": self.job_id,
            "stepId": self.step_id,
            "tenant_id": self.tenant_id,
            "attempt_no": self.attempt_no,
            "lease_id": self.lease_id,
            "correlation_id": self.correlation_id,
        }


def json_object(raw: bytes) -> dict[str, Any]:
    """`Malformed`."""
    try:
        found = json.loads(raw)
    except ValueError as error:
        raise Malformed(f"it is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Malformed("it is not an object")
    return found


def check_version(body: Mapping[str, Any]) -> None:
    """`Malformed`. A minor version adds fields, and those are not looked at."""
    version = str(body.get("schema_version", MAJOR))
    if version.partition(".")[0] != MAJOR:
        raise Malformed(f"schema_version {version} is not known here")


def directive_of(body: Mapping[str, Any]) -> Directive:
    """`Malformed`."""
    try:
        return _directive(body)
    except (KeyError, TypeError, ValueError) as error:
        raise Malformed(f"a field is missing or wrong: {error!r}") from error


def _directive(body: Mapping[str, Any]) -> Directive:
    urls = body.get("callback_urls")
    return Directive(
        job_id=_text(body["jobId"]),
        step_id=_text(body["stepId"]),
        tenant_id=_text(body["tenant_id"]),
        attempt_no=int(body["attempt_no"]),
        lease_id=_text(body["lease_id"]),
        step_type=_text(body["step_type"]),
        input_uri=_text(body["input_ref"]["uri"]),
        workspace=Path(unquote(urlsplit(_text(body["workspace_ref"]["uri"])).path)),
        payload=dict(body["payload"]),
        lane=int(body["lane"]),
        correlation_id=_text(body["correlation_id"]),
        traceparent=_text(body["traceparent"]),
        lease_expires_at=datetime.fromisoformat(body["lease_expires_at"]).timestamp(),
        lease_seconds=float(body["lease_seconds"]),
        heartbeat_seconds=float(body["heartbeat_seconds"]),
        callback_urls=None if urls is None else dict(urls),
        callback_token=str(body.get("callback_token") or ""),
    )


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not a text")
    return value
