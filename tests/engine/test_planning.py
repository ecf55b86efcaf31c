"""From an envelope to a plan: matched, checked, routed, limited."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lucius_contract.canonical import idempotency_hash
from lucius_contract.envelope import Envelope
from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.routing import DecisionSource, Mode
from lucius_orchestrator.adapters.registry import YamlRegistry
from lucius_orchestrator.domain.aggregate import Engine, StepPolicy
from lucius_orchestrator.domain.creation import new_job
from lucius_orchestrator.engine.planning import PlanSettings, Request, plan_request
from lucius_orchestrator.engine.requests import JobRequest
from lucius_orchestrator.ports.ledger import Limits
from lucius_orchestrator.ports.registry import (
    GlobalConfig,
    ProtocolDefinition,
    ProtocolStep,
    Snapshot,
    TenantConfig,
)
from tests.registry.folder import PROTOCOL, write

SHIPPED = YamlRegistry(None).load()
SETTINGS = PlanSettings("az://workspace/")
PROMPTS = {"prompt_set": [{"name": "total", "prompt": "What is the total?", "output": "text"}]}
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ENVELOPE = {
    "tenant_id": "acme",
    "request_type": "OCR_EMBEDDING_SIS",
    "input_ref": {"uri": "az://inbox/a.pdf"},
    "output_ref": {"uri": "az://outbox/a.json", "note": "kept"},
    "payload": {"ocr": {"dpi": 300}, "sis": PROMPTS},
    "schema_version": "1",
}


def plan(snapshot: Snapshot = SHIPPED, **members: Any) -> Request:
    envelope = Envelope.read(ENVELOPE | members)
    return plan_request(envelope, snapshot, SETTINGS, correlation_id="c-0", traceparent=TRACE)


def configured(
    tenant: TenantConfig | None = None, defaults: GlobalConfig | None = None
) -> Snapshot:
    tenants = {"acme": tenant} if tenant else {}
    found = SHIPPED.protocols, SHIPPED.by_request_type
    return Snapshot(*found, tenants, defaults or GlobalConfig())


def refusal(snapshot: Snapshot = SHIPPED, **members: Any) -> ContractError:
    with pytest.raises(ContractError) as refused:
        plan(snapshot, **members)
    return refused.value


def pointers(**members: Any) -> list[str]:
    error = refusal(**members)
    assert error.code is ErrorCode.PAYLOAD_INVALID
    return [problem.pointer for problem in error.problems]


def payloads(request: Request) -> dict[str, Any]:
    return {step.step_type: step.payload for step in request.steps}


def test_a_plan_has_all_that_a_job_needs() -> None:
    request = plan(
        doc_id="d-1",
        mode="SAFE",
        idempotency_key="k-1",
        callback_urls=["https://example.com/hook"],
        correlation_id="c-1",
    )
    job_plan = request.job_plan("job_1")
    job = new_job(job_plan, datetime(2026, 1, 27, tzinfo=UTC)).job
    assert (job.job_id, job.tenant_id, job.request_type) == ("job_1", "acme", "OCR_EMBEDDING_SIS")
    assert (job.protocol_id, job.protocol_version) == ("ocr_embedding_sis", "1")
    assert (job.doc_id, job.idempotency_key) == ("d-1", "k-1")
    assert (job.correlation_id, job.traceparent) == ("c-1", TRACE)
    assert job.callback_urls == ("https://example.com/hook",)
    assert job.input_ref == ENVELOPE["input_ref"]
    assert job.output_ref == ENVELOPE["output_ref"]
    assert job.idempotency_hash == request.content_hash
    assert job.engine is Engine.LEDGER
    assert job_plan.workspace_ref == {"uri": "az://workspace/lucius/acme/job_1/"}
    assert job_plan.sla == timedelta(hours=24)
    assert [step.service for step in job_plan.steps] == ["ocr", "embedding", "sis"]


def test_the_engine_can_submit_it() -> None:
    request: JobRequest = plan()
    assert request.tenant_id == "acme"


def test_what_the_request_does_not_name_comes_from_the_caller() -> None:
    own_trace = TRACE.replace("4bf9", "aaaa")
    assert (plan().correlation_id, plan().traceparent) == ("c-0", TRACE)
    assert plan(traceparent=own_trace).traceparent == own_trace


def test_an_unknown_request_type_is_told_what_there_is() -> None:
    error = refusal(request_type="ocr_embeding")
    assert error.code is ErrorCode.REQUEST_TYPE_UNKNOWN
    (problem,) = error.problems
    assert problem.pointer == "/request_type"
    assert problem.message.startswith("did you mean OCR_EMBEDDING? known: EMBEDDING, EMBEDDING_SIS")
    (problem,) = refusal(request_type="qqq").problems
    assert problem.message.startswith("known: ")


def test_an_alias_is_the_same_request() -> None:
    arrows = plan(request_type="OCR→EMBEDDING→SIS")
    assert arrows == plan()
    assert arrows.request_type == "OCR_EMBEDDING_SIS"


def test_the_hash_is_the_contracts_own() -> None:
    assert plan().content_hash == idempotency_hash(ENVELOPE)
    assert plan(mode="SAFE", doc_id="d", correlation_id="x").content_hash == plan().content_hash
    assert plan(schema_version="1.1").content_hash != plan().content_hash


def test_a_key_is_the_entry_and_without_one_the_hash() -> None:
    assert plan().entry == f"hash:{plan().content_hash}"
    keyed = plan(idempotency_key="hash:1")
    assert keyed.entry == "key:hash:1"
    assert keyed.content_hash == plan().content_hash


def test_steps_without_an_entry_get_an_empty_object() -> None:
    assert payloads(plan()) == {"OCR": {"dpi": 300}, "EMBEDDING": {}, "SIS": PROMPTS}
    assert payloads(plan(payload={"ocr": None, "sis": PROMPTS}))["OCR"] == {}


@pytest.mark.parametrize(
    ("payload", "given"),
    [
        ({}, {}),
        ({"dpi": 300}, {"dpi": 300}),
        ({"ocr": {"dpi": 300}}, {"dpi": 300}),
        ({"ocr": {}}, {}),
        ({"ocr": None}, {}),
    ],
)
def test_a_single_step_takes_the_object_itself_or_the_keyed_form(
    payload: dict[str, Any], given: dict[str, Any]
) -> None:
    assert payloads(plan(request_type="OCR", payload=payload)) == {"OCR": given}


def test_every_problem_of_every_step_is_named() -> None:
    wrong = {"ocr": {"dpi": 1, "pages": [0]}, "embeding": {}, "embedding": 5, "sis": {}}
    found = ["/payload/embeding", "/payload/ocr/dpi", "/payload/ocr/pages/0"]
    assert sorted(pointers(payload=wrong)) == sorted([*found, "/payload/embedding", "/payload/sis"])


def test_the_pointers_of_a_single_step_follow_the_form_that_was_sent() -> None:
    assert pointers(request_type="OCR", payload={"dpi": 1}) == ["/payload/dpi"]
    assert pointers(request_type="OCR", payload={"ocr": {"dpi": 1}}) == ["/payload/ocr/dpi"]
    assert pointers(request_type="OCR", payload={"ocr": 5}) == ["/payload/ocr"]
    assert pointers(request_type="OCR", payload={"ocr": {}, "dpi": 300}) == ["/payload"]


def test_a_missing_step_is_checked_against_its_schema_too() -> None:
    assert pointers(payload={}) == ["/payload/sis"]


@pytest.mark.parametrize(
    ("requested", "tenant", "default", "mode", "source"),
    [
        ("BURST", Mode.DEFAULT, Mode.DEFAULT, Mode.BURST, DecisionSource.REQUEST),
        ("SAFE", Mode.BURST, Mode.BURST, Mode.DEFAULT, DecisionSource.REQUEST),
        (None, Mode.BURST, Mode.DEFAULT, Mode.BURST, DecisionSource.TENANT_CONFIG),
        (None, None, Mode.BURST, Mode.BURST, DecisionSource.GLOBAL_CONFIG),
        (None, None, Mode.DEFAULT, Mode.DEFAULT, DecisionSource.GLOBAL_CONFIG),
    ],
)
def test_the_mode_is_the_requests_else_the_tenants_else_the_default(
    requested: str | None, tenant: Mode | None, default: Mode, mode: Mode, source: DecisionSource
) -> None:
    snapshot = configured(TenantConfig(mode=tenant), GlobalConfig(mode=default))
    route = plan(snapshot, mode=requested, doc_id="D-1").route
    assert (route.mode, route.decision_source) == (mode, source)
    assert route.routing_key_used == ("acme" if mode is Mode.DEFAULT else "acmed-1")


def test_a_mode_that_the_tenant_may_not_use_is_forbidden() -> None:
    snapshot = configured(TenantConfig(allowed_modes=frozenset({Mode.DEFAULT})))
    assert refusal(snapshot, mode="BURST", doc_id="d").code is ErrorCode.MODE_FORBIDDEN


def test_burst_needs_a_document() -> None:
    assert refusal(mode="BURST").code is ErrorCode.DOC_ID_REQUIRED


def test_a_tenant_names_its_own_places_and_those_of_all() -> None:
    defaults = GlobalConfig(input_places=("az://inbox/{tenant}/",), output_places=("az://out/",))
    tenant = TenantConfig(input_places=("az://scans/",), output_places=("az://results/",))
    snapshot = configured(tenant, defaults)
    for read in ("az://inbox/acme/a", "az://scans/a"):
        for published in ("az://out/a", "az://results/a"):
            refs = {"input_ref": {"uri": read}, "output_ref": {"uri": published}}
            assert plan(snapshot, **refs).input_ref == refs["input_ref"]


def test_all_refs_that_are_not_the_tenants_are_pointed_at() -> None:
    error = refusal(
        configured(TenantConfig(input_places=("az://in/",), output_places=("az://out/",)))
    )
    assert error.code is ErrorCode.REF_FORBIDDEN
    assert [problem.pointer for problem in error.problems] == ["/input_ref/uri", "/output_ref/uri"]


def test_limits_are_the_tenants_the_totals_and_the_modes() -> None:
    defaults = GlobalConfig(
        max_inflight=100, max_inflight_per_tenant=10, max_inflight_per_mode={Mode.BURST: 5}
    )
    assert plan(configured()).limits == Limits()
    assert plan(configured(None, defaults)).limits == Limits(10, 100, None)
    closed = configured(TenantConfig(max_inflight=0), defaults)
    assert plan(closed, mode="BURST", doc_id="d").limits == Limits(0, 100, 5)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=128))
@example("..")
@example("a/../b")
@example("..\\a")
@example("%2E%2E")
@example("a%252Fb")
def test_a_tenant_is_one_segment_of_its_folder_whatever_it_is_called(tenant_id: str) -> None:
    if not tenant_id.strip():
        return
    uri = plan(tenant_id=tenant_id).job_plan("job_1").workspace_ref["uri"]
    assert urlsplit(uri).geturl() == uri
    root, system, tenant, job, end = unquote(urlsplit(uri).path).split("/")
    assert (root, system, job, end) == ("", "lucius", "job_1", "")
    assert tenant.strip(".")
    assert "\\" not in tenant
    assert tenant_id == (unquote(tenant) if "%" in tenant else tenant)


@pytest.mark.parametrize(
    ("tenant_id", "name"),
    [
        ("acme-2.eu_1~x", "acme-2.eu_1~x"),
        ("é", "%C3%A9"),
        ("Acme & Co", "Acme%20%26%20Co"),
        ("...a", "...a"),
        ("..", "%252E%252E"),
        ("Acme Co.", "Acme%2520Co%252E"),
        ("a.b.", "a%252Eb%252E"),
        ("a/b", "a%252Fb"),
        ("a\\b", "a%255Cb"),
        ("a%2Fb", "a%25252Fb"),
    ],
)
def test_the_folder_of_an_unusual_tenant(tenant_id: str, name: str) -> None:
    folder = plan(tenant_id=tenant_id).job_plan("job_1").workspace_ref
    assert folder == {"uri": f"az://workspace/lucius/{name}/job_1/"}


def test_a_request_keeps_the_protocol_that_it_was_planned_with(tmp_path: Path) -> None:
    registry = YamlRegistry(write(tmp_path, a=PROTOCOL))
    members: dict[str, Any] = {"request_type": "TRANSLATE", "payload": {}}
    before = plan(registry.load(), **members)
    write(tmp_path, a=PROTOCOL.replace('"1"', '"2"') + "    lease: 1m\n")
    assert registry.refresh()
    after = plan(registry.snapshot(), **members)
    versions = [request.job_plan("j").protocol_version for request in (before, after)]
    assert versions == ["1", "2"]
    assert [request.steps[0].policy.lease for request in (before, after)] == [
        timedelta(minutes=15),
        timedelta(minutes=1),
    ]


def test_a_step_that_no_registry_compiled_is_checked_as_well() -> None:
    step = ProtocolStep("X", "x", {"required": ["a"]}, StepPolicy())
    protocol = ProtocolDefinition("x", "1", "X", (), (step,))
    snapshot = Snapshot({"x": protocol}, {"X": protocol}, {}, GlobalConfig())
    assert plan(snapshot, request_type="X", payload={"a": 1}).protocol_id == "x"
    assert refusal(snapshot, request_type="X", payload={}).code is ErrorCode.PAYLOAD_INVALID


def test_a_payload_without_canonical_form_is_refused() -> None:
    snapshot = configured()
    prompts = {"prompt_set": [{**PROMPTS["prompt_set"][0], "schema": {"maximum": 2**60}}]}
    error = refusal(snapshot, payload={"sis": prompts})
    assert error.code is ErrorCode.ENVELOPE_INVALID
    assert error.problems[0].pointer == "/payload/sis/prompt_set/0/schema/maximum"
