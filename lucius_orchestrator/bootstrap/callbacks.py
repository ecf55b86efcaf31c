"""What the dispatcher adds to a directive: where a service answers over HTTP, and the proof with
which it publishes artifacts."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from lucius_orchestrator.domain.decision import DirectiveRow
from lucius_orchestrator.security.callback_tokens import CallbackTokens

GRACE = timedelta(hours=1)
"""A token outlives the job's SLA by this, so that a late reply is told that it is late."""


class CallbackAddress:
    """The addresses of the API's callbacks, and a token for exactly the row's attempt."""

    def __init__(self, base_url: str, tokens: CallbackTokens, sla: Callable[[], timedelta]) -> None:
        root = f"{base_url.rstrip('/')}/v1/callbacks"
        self._urls = {name: f"{root}/{name}" for name in ("ack", "result", "heartbeat")}
        self._tokens = tokens
        self._sla = sla

    def __call__(self, job_id: str, row: DirectiveRow) -> Mapping[str, Any]:
        expires_at = row.created_at + self._sla() + GRACE
        token = self._tokens.issue(job_id, row.step_id, row.attempt_no, row.lease_id, expires_at)
        return {"callback_urls": self._urls, "callback_token": token}


class ProducerProof:
    """The `artifact_token` of a row's attempt."""

    def __init__(self, tokens: CallbackTokens, sla: Callable[[], timedelta]) -> None:
        self._tokens = tokens
        self._sla = sla

    def __call__(self, job_id: str, row: DirectiveRow) -> str:
        expires_at = row.created_at + self._sla() + GRACE
        tenant_id = row.body["tenant_id"]
        return self._tokens.issue_producer(
            tenant_id, job_id, row.step_id, row.attempt_no, expires_at
        )
