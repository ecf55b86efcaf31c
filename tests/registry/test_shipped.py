"""What is shipped: six protocols that share their schemas, and examples of the other files."""

import re
from pathlib import Path
from typing import Any

import pytest

from lucius_contract import timeouts
from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.registry import YamlRegistry
from lucius_orchestrator.adapters.registry.sources import SHIPPED
from lucius_orchestrator.domain.aggregate import StepPolicy
from lucius_orchestrator.engine.payload_check import quick_check
from lucius_orchestrator.ports.registry import GlobalConfig

SNAPSHOT = YamlRegistry(None).load()
STEPS = {step.step_type: step for found in SNAPSHOT.protocols.values() for step in found.steps}
PROMPT = {"name": "total", "prompt": "What is the total?", "output": "text"}


def test_the_six_protocols() -> None:
    found = SNAPSHOT.protocols.values()
    assert {p.request_type: [step.step_type for step in p.steps] for p in found} == {
        "OCR": ["OCR"],
        "EMBEDDING": ["EMBEDDING"],
        "SIS": ["SIS"],
        "OCR_EMBEDDING": ["OCR", "EMBEDDING"],
        "EMBEDDING_SIS": ["EMBEDDING", "SIS"],
        "OCR_EMBEDDING_SIS": ["OCR", "EMBEDDING", "SIS"],
    }


def test_arrows_lead_to_the_composed_ones() -> None:
    found = SNAPSHOT.protocol_of("OCR→EMBEDDING→SIS")
    assert found is SNAPSHOT.protocols["ocr_embedding_sis"]


def test_a_step_type_is_the_same_in_all_files() -> None:
    for protocol in SNAPSHOT.protocols.values():
        for step in protocol.steps:
            assert step == STEPS[step.step_type]


def test_every_step_has_the_default_policy_and_the_service_of_its_name() -> None:
    for step in STEPS.values():
        assert step.policy == StepPolicy()
        assert step.service == step.payload_key


def test_only_jobs_in_flight_are_limited_and_no_tenant_has_a_place() -> None:
    assert SNAPSHOT.defaults == GlobalConfig(
        max_inflight=10_000, max_inflight_per_tenant=1_000, job_sla=timeouts.JOB_SLA
    )
    assert SNAPSHOT.tenants == {}


_MEMBER_OR_ITEM = re.compile(r"(# )?( *[a-zA-Z_]+:( .*)?| +- .*)")


def test_the_commented_examples_are_right(tmp_path: Path) -> None:
    for name in ("defaults.yaml", "tenants.yaml"):
        lines = (SHIPPED / name).read_text().splitlines()
        example = [line.removeprefix("# ") for line in lines if _MEMBER_OR_ITEM.fullmatch(line)]
        (tmp_path / name).write_text("\n".join(example))
    snapshot = YamlRegistry(tmp_path).load()
    assert snapshot.defaults.max_inflight_per_mode == {Mode.DEFAULT: 8000, Mode.BURST: 4000}
    assert snapshot.defaults.input_places == ("az://inbox/{tenant}/",)
    assert snapshot.defaults.output_places == ("az://outbox/{tenant}/",)
    acme = snapshot.tenant("acme")
    assert acme.max_inflight == 2000
    assert acme.input_places == ("az://scans-of-acme/",)
    assert acme.output_places == ("s3://acme-results/2026/",)


@pytest.mark.parametrize(
    ("step_type", "payload"),
    [
        ("OCR", {}),
        ("OCR", {"languages": ["eng", "deu"], "dpi": 72, "pages": [1, 3]}),
        ("OCR", {"dpi": 600}),
        ("EMBEDDING", {}),
        ("EMBEDDING", {"chunk_size": 512, "overlap": 0, "model": "small"}),
        ("SIS", {"prompt_set": [PROMPT]}),
        ("SIS", {"prompt_set": [{**PROMPT, "output": "json", "schema": {"type": "object"}}]}),
    ],
)
def test_a_good_payload_is_accepted_without_the_slow_validator(
    step_type: str, payload: dict[str, Any]
) -> None:
    quick = quick_check(STEPS[step_type].payload_schema)
    assert quick is not None
    assert quick(payload)


@pytest.mark.parametrize(
    ("step_type", "payload", "pointer"),
    [
        ("OCR", {"dpi": 71}, "/dpi"),
        ("OCR", {"dpi": 601}, "/dpi"),
        ("OCR", {"dpi": "300"}, "/dpi"),
        ("OCR", {"languages": []}, "/languages"),
        ("OCR", {"languages": [""]}, "/languages/0"),
        ("OCR", {"pages": [0]}, "/pages/0"),
        ("OCR", {"colour": True}, ""),
        ("EMBEDDING", {"chunk_size": 0}, "/chunk_size"),
        ("EMBEDDING", {"overlap": -1}, "/overlap"),
        ("EMBEDDING", {"model": ""}, "/model"),
        ("SIS", {}, ""),
        ("SIS", {"prompt_set": []}, "/prompt_set"),
        ("SIS", {"prompt_set": [{"name": "a", "prompt": "b"}]}, "/prompt_set/0"),
        ("SIS", {"prompt_set": [{**PROMPT, "output": "xml"}]}, "/prompt_set/0/output"),
        ("SIS", {"prompt_set": [{**PROMPT, "schema": "x"}]}, "/prompt_set/0/schema"),
        ("SIS", {"prompt_set": [PROMPT], "temperature": 1}, ""),
    ],
)
def test_a_bad_payload_is_refused(step_type: str, payload: dict[str, Any], pointer: str) -> None:
    check = STEPS[step_type].check
    assert check is not None
    assert [problem.pointer for problem in check(payload)] == [pointer]
