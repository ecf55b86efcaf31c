"""Submitting a job. Plain ASGI: it is asked for often."""

from http import HTTPStatus

from starlette.types import Receive, Scope, Send

from lucius_contract.envelope import Envelope, parse_envelope
from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_contract.states import JOB_STATUS
from lucius_logs.context import correlation
from lucius_orchestrator.api.access import Access, require_tenant
from lucius_orchestrator.api.answers import send_json
from lucius_orchestrator.api.artifacts.refs import check_output
from lucius_orchestrator.api.bodies import read_body
from lucius_orchestrator.api.headers import KEY_POINTER, idempotency_key, traceparent
from lucius_orchestrator.api.parameters import read_query
from lucius_orchestrator.api.parts import ApiParts
from lucius_orchestrator.api.paths import job_links, job_path
from lucius_orchestrator.engine.engine import Submission
from lucius_orchestrator.engine.planning import Request, plan_request
from lucius_orchestrator.ports.inputs import HELD, ref_invalid
from lucius_orchestrator.security.callers import Caller, Verb


class Submit:
    def __init__(self, parts: ApiParts, access: Access) -> None:
        self._parts = parts
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = await self._access.caller(scope, Verb.SUBMIT)
        read_query(scope)
        envelope = parse_envelope(await read_body(receive), self._parts.refs)
        request = self._plan(scope, caller, with_key(envelope, idempotency_key(scope)))
        submission = await self._parts.engine.submit(request)
        location = (b"location", job_path(submission.job_id).encode())
        await send_json(send, HTTPStatus.ACCEPTED, accepted(submission), location)

    def _plan(self, scope: Scope, caller: Caller, envelope: Envelope) -> Request:
        parts = self._parts
        require_tenant(caller, envelope.tenant_id, "/tenant_id")
        if envelope.callback_urls:
            parts.check_webhooks(envelope.callback_urls)
        self._check_artifacts(envelope)
        return plan_request(
            envelope,
            parts.registry.snapshot(),
            parts.plan,
            correlation_id=correlation.get() or "",
            traceparent=envelope.traceparent or traceparent(scope, parts.engine.world.entropy),
        )

    def _check_artifacts(self, envelope: Envelope) -> None:
        """Whether the input can be read is found out when it is held."""
        if envelope.input_ref.uri.startswith(HELD):
            self._require_artifacts("/input_ref/uri")
        if envelope.output_ref.uri.startswith(HELD):
            self._require_artifacts("/output_ref/uri")
            check_output(envelope.output_ref.uri, "/output_ref/uri")

    def _require_artifacts(self, pointer: str) -> None:
        if self._parts.artifacts is None:
            raise ref_invalid(pointer, self._parts.artifacts_off)


def with_key(envelope: Envelope, key: str | None) -> Envelope:
    """The header counts like the member; they may not disagree."""
    if key is None or key == envelope.idempotency_key:
        return envelope
    if envelope.idempotency_key is None:
        return envelope.model_copy(update={"idempotency_key": key})
    message = "the header and the member differ; give one of them"
    problems = [Problem(pointer, message) for pointer in ("/idempotency_key", KEY_POINTER)]
    raise ContractError(ErrorCode.ENVELOPE_INVALID, "two idempotency keys", problems)


def accepted(submission: Submission) -> dict[str, object]:
    return {
        "jobId": submission.job_id,
        "state": str(submission.state),
        "status": str(JOB_STATUS[submission.state]),
        "duplicate": submission.duplicate,
        "links": job_links(submission.job_id),
    }
