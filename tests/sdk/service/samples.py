"""A directive, and a context around it, as the runtime would make them."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lucius_contract.documents import Artifact
from lucius_contract.messages import Directive
from lucius_sdk.context import Publisher, StepContext, WorkState
from lucius_sdk.workspace_io import (
    Input,
    LocalStorage,
    PriorArtifacts,
    StepFolder,
    Storages,
    Workspace,
)

NOW = datetime(2026, 1, 27, 10, 2, tzinfo=UTC)
STEP_DEADLINE = NOW + timedelta(minutes=15)
LEASE = "0123456789abcdef" * 2


def directive_body(**changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "type": "DIRECTIVE",
        "jobId": "job_1",
        "stepId": "step_01",
        "tenant_id": "tenant-a",
        "attempt_no": 1,
        "lease_id": LEASE,
        "protocol_id": "OCR",
        "step_type": "OCR",
        "input_ref": {"uri": "file:///in/a.pdf"},
        "workspace_ref": {"uri": "file:///work/lucius/tenant-a/job_1/"},
        "output_ref": {"uri": "file:///out/a.txt"},
        "payload": {"dpi": 300},
        "mode": "DEFAULT",
        "lane": 3,
        "routing_key_used": "tenant-a",
        "correlation_id": "corr-1",
        "traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01",
        "lease_expires_at": "2026-01-27T10:17:00Z",
        "lease_seconds": 900,
        "heartbeat_seconds": 300,
    }
    return {name: value for name, value in (body | changes).items() if value is not ...}


def directive(**changes: Any) -> Directive:
    return Directive.read(directive_body(**changes))


def artifact(name: str = "output.txt") -> Artifact:
    return Artifact(name=name, uri=f"file:///work/ocr/1/{name}", sha256="0" * 64, size=0)


def published_to(uri: str) -> Publisher:
    def publish(content: Artifact | bytes, media_type: str | None) -> str:
        return uri

    return publish


def context(
    state: WorkState | None = None,
    *,
    root: Path = Path("/nowhere"),
    payload: Any = None,
    changes: Mapping[str, Any] | None = None,
    publisher: Publisher = published_to("file:///out/a.txt"),  # noqa: B008
) -> StepContext[Any]:
    asked = directive(**(changes or {}))
    state = state or WorkState(STEP_DEADLINE)
    reach = Storages(LocalStorage(root)).of_job(asked.tenant_id, asked.job_id)
    folder = StepFolder(reach.workspace, asked.workspace_ref.uri, asked.step_type, 1, 1)
    return StepContext(
        directive=asked,
        payload=payload,
        input=Input(reach, asked.input_ref.uri, state.check),
        prior=PriorArtifacts(reach, asked.prior_artifacts, state.check),
        workspace=Workspace(folder, state.check),
        log=logging.LoggerAdapter(logging.getLogger("team"), {}),
        state=state,
        publisher=publisher,
        now=lambda: NOW,
    )
