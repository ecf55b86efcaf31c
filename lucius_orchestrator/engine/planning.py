"""From a well-formed request to all that its job will ever need. Pure: no I/O, no clock, no ids."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, NamedTuple

from lucius_contract.canonical import idempotency_hash, pointer_to
from lucius_contract.envelope import Envelope
from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_contract.places import (
    HTTPS,
    STORAGE_SCHEMES,
    Reach,
    TenantPlaces,
    workspace_of,
)
from lucius_contract.refs import tenant_folder
from lucius_contract.routing import Mode, Route, resolve_mode, route
from lucius_orchestrator.domain.aggregate import Engine, JsonObject
from lucius_orchestrator.domain.creation import JobPlan, StepPlan
from lucius_orchestrator.engine.payload_check import payload_check
from lucius_orchestrator.ports.ledger import Limits
from lucius_orchestrator.ports.registry import (
    GlobalConfig,
    ProtocolDefinition,
    ProtocolStep,
    Snapshot,
    TenantConfig,
)

_ANY_INPUT = Reach(schemes=STORAGE_SCHEMES | {HTTPS})
_ANY_OUTPUT = Reach(schemes=STORAGE_SCHEMES)


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """Where jobs have their folders, `<workspace_root>/<system>/<tenant>/<jobId>/`, who drives
    them, and what their refs may name besides the places of their tenants: the defaults let
    everybody name all but the workspace."""

    workspace_root: str
    system: str = "lucius"
    engine: Engine = Engine.LEDGER
    inputs: Reach = _ANY_INPUT
    outputs: Reach = _ANY_OUTPUT


class Request(NamedTuple):
    """A request that was validated, matched with its protocol and routed.

    It holds values alone, so a reload of the registry changes nothing about it.
    """

    tenant_id: str
    entry: str
    content_hash: str
    limits: Limits
    request_type: str
    protocol_id: str
    protocol_version: str
    steps: tuple[StepPlan, ...]
    route: Route
    input_ref: JsonObject
    output_ref: JsonObject
    tenant_folder: str
    correlation_id: str
    traceparent: str
    idempotency_key: str | None
    doc_id: str | None
    callback_urls: tuple[str, ...]
    engine: Engine
    sla: timedelta

    def job_plan(self, job_id: str) -> JobPlan:
        return JobPlan(
            job_id=job_id,
            tenant_id=self.tenant_id,
            request_type=self.request_type,
            protocol_id=self.protocol_id,
            protocol_version=self.protocol_version,
            steps=self.steps,
            route=self.route,
            input_ref=self.input_ref,
            output_ref=self.output_ref,
            workspace_ref={"uri": f"{self.tenant_folder}{job_id}/"},
            idempotency_hash=self.content_hash,
            correlation_id=self.correlation_id,
            traceparent=self.traceparent,
            idempotency_key=self.idempotency_key,
            doc_id=self.doc_id,
            callback_urls=self.callback_urls,
            engine=self.engine,
            sla=self.sla,
        )


def plan_request(
    envelope: Envelope,
    snapshot: Snapshot,
    settings: PlanSettings,
    *,
    correlation_id: str,
    traceparent: str,
) -> Request:
    """Match, check and route a request, or refuse it with ContractError.

    `correlation_id` and `traceparent` count where the request names none.
    """
    input_ref, output_ref = envelope.input_ref.to_json(), envelope.output_ref.to_json()
    check_places(envelope.tenant_id, input_ref, output_ref, snapshot, settings)
    protocol = _protocol_of(envelope, snapshot)
    steps = _steps(envelope.payload, protocol)
    tenant = snapshot.tenant(envelope.tenant_id)
    decision = resolve_mode(
        envelope.requested_mode, tenant.mode, snapshot.defaults.mode, tenant.allowed_modes
    )
    content_hash = idempotency_hash(
        {
            "tenant_id": envelope.tenant_id,
            "request_type": protocol.request_type,
            "input_ref": input_ref,
            "output_ref": output_ref,
            "payload": envelope.payload,
            "schema_version": envelope.schema_version,
        }
    )
    key = envelope.idempotency_key
    return Request(
        tenant_id=envelope.tenant_id,
        entry=f"hash:{content_hash}" if key is None else f"key:{key}",
        content_hash=content_hash,
        limits=limits_of(tenant, snapshot.defaults, decision.mode),
        request_type=protocol.request_type,
        protocol_id=protocol.protocol_id,
        protocol_version=protocol.version,
        steps=steps,
        route=route(envelope.tenant_id, envelope.doc_id, decision),
        input_ref=input_ref,
        output_ref=output_ref,
        tenant_folder=_tenant_folder(settings, envelope.tenant_id),
        correlation_id=envelope.correlation_id or correlation_id,
        traceparent=envelope.traceparent or traceparent,
        idempotency_key=key,
        doc_id=envelope.doc_id,
        callback_urls=tuple(envelope.callback_urls or ()),
        engine=settings.engine,
        sla=snapshot.defaults.job_sla,
    )


def check_places(
    tenant_id: str,
    input_ref: JsonObject,
    output_ref: JsonObject,
    snapshot: Snapshot,
    settings: PlanSettings,
) -> None:
    """Refuse refs that are not the tenant's to name (REF_FORBIDDEN)."""
    tenant, defaults = snapshot.tenant(tenant_id), snapshot.defaults
    workspace = workspace_of(settings.workspace_root, settings.system)
    folder = tenant_folder(tenant_id)
    readable = defaults.input_places + tenant.input_places
    publishable = defaults.output_places + tenant.output_places
    inputs = TenantPlaces(workspace, folder, readable, settings.inputs, is_input=True)
    outputs = TenantPlaces(workspace, folder, publishable, settings.outputs, is_input=False)
    found = {
        "/input_ref/uri": inputs.problem(input_ref["uri"]),
        "/output_ref/uri": outputs.problem(output_ref["uri"]),
    }
    problems = [Problem(pointer, problem) for pointer, problem in found.items() if problem]
    if problems:
        raise ContractError(ErrorCode.REF_FORBIDDEN, "a ref is not the tenant's to name", problems)


def _protocol_of(envelope: Envelope, snapshot: Snapshot) -> ProtocolDefinition:
    protocol = snapshot.protocol_of(envelope.request_type)
    if protocol is not None:
        return protocol
    known = sorted({protocol.request_type for protocol in snapshot.protocols.values()})
    close = get_close_matches(envelope.request_type.upper(), known, 1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise ContractError(
        ErrorCode.REQUEST_TYPE_UNKNOWN,
        f"no protocol has the request type {envelope.request_type}",
        [Problem("/request_type", f"{hint}known: {', '.join(known)}")],
    )


def _steps(payload: dict[str, Any], protocol: ProtocolDefinition) -> tuple[StepPlan, ...]:
    """Each step with its part of the payload; all problems of all parts are told together."""
    if _is_keyed(payload, protocol):
        problems = list(_strangers(payload, protocol))
        parts = [
            (step, payload.get(step.payload_key), f"/payload{pointer_to((step.payload_key,))}")
            for step in protocol.steps
        ]
    else:
        problems, parts = [], [(protocol.steps[0], payload, "/payload")]
    plans = []
    for step, part, pointer in parts:
        given = {} if part is None else part
        problems += _problems(step, given, pointer)
        plans.append(StepPlan(step.step_type, step.service, given, step.policy))
    if problems:
        message = f"the payload does not fit protocol {protocol.protocol_id}"
        raise ContractError(ErrorCode.PAYLOAD_INVALID, message, problems)
    return tuple(plans)


def _is_keyed(payload: dict[str, Any], protocol: ProtocolDefinition) -> bool:
    return len(protocol.steps) > 1 or payload.keys() == {protocol.steps[0].payload_key}


def _strangers(payload: dict[str, Any], protocol: ProtocolDefinition) -> Iterator[Problem]:
    known = [step.payload_key for step in protocol.steps]
    for key in payload:
        if key not in known:
            reason = f"no step has this name; known: {', '.join(known)}"
            yield Problem(f"/payload{pointer_to((key,))}", reason)


def _problems(step: ProtocolStep, part: Any, pointer: str) -> Iterator[Problem]:
    if not isinstance(part, dict):
        yield Problem(pointer, "must be an object")
        return
    check = step.check or payload_check(step.payload_schema)
    for problem in check(part):
        yield Problem(pointer + problem.pointer, problem.message)


def limits_of(tenant: TenantConfig, defaults: GlobalConfig, mode: Mode) -> Limits:
    own = tenant.max_inflight
    return Limits(
        tenant=defaults.max_inflight_per_tenant if own is None else own,
        total=defaults.max_inflight,
        mode=defaults.max_inflight_per_mode.get(mode),
    )


def _tenant_folder(settings: PlanSettings, tenant_id: str) -> str:
    root, name = settings.workspace_root.rstrip("/"), tenant_folder(tenant_id)
    return f"{root}/{settings.system}/{name}/"
