"""The golden vectors hold here as they must hold in every other language."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import lucius_contract
from docs.generator.schemas import schema_of
from lucius_contract.canonical import (
    canonical_json,
    canonical_request,
    idempotency_hash,
    read_json,
    resolve_arrows,
)
from lucius_contract.envelope import Envelope, parse_envelope
from lucius_contract.errors import ContractError
from lucius_contract.messages import (
    Ack,
    Directive,
    Heartbeat,
    Reply,
    Result,
    parse_directive,
    parse_reply,
)
from lucius_contract.refs import RefPolicy
from lucius_contract.routing import (
    Mode,
    directive_topic,
    lane_of,
    partition_key,
    reply_topic,
    routing_key,
)

VECTORS = Path(lucius_contract.__file__).parent / "vectors"


def vectors(name: str, part: str) -> list[Any]:
    cases = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))[part]
    return [pytest.param(case, id=case["name"]) for case in cases]


def parse(kind: str, raw: bytes) -> Envelope | Directive | Reply:
    if kind == "envelope":
        return parse_envelope(raw, RefPolicy())
    return parse_directive(raw) if kind == "directive" else parse_reply(raw)


def bytes_of(case: dict[str, Any]) -> bytes:
    text: str = case.get("text") or json.dumps(case["document"], ensure_ascii=False)
    return text.encode()


@pytest.mark.parametrize("case", vectors("lanes", "cases"))
def test_a_tenant_has_its_lane(case: dict[str, Any]) -> None:
    key = routing_key(case["tenant_id"], Mode(case["mode"]), case["doc_id"])
    lane = lane_of(key)
    assert key == case["routing_key_used"]
    assert lane == case["lane"]
    assert directive_topic(lane) == case["directive_topic"]
    assert reply_topic(lane) == case["reply_topic"]
    assert partition_key(key) == case["partition_key"]


@pytest.mark.parametrize("case", vectors("canonical", "values"))
def test_a_value_has_its_canonical_form(case: dict[str, Any]) -> None:
    assert canonical_json(read_json(case["json"])).decode() == case["canonical"]


@pytest.mark.parametrize("case", vectors("canonical", "requests"))
def test_a_request_has_its_idempotency_hash(case: dict[str, Any]) -> None:
    request = read_json(case["json"])
    request["request_type"] = resolve_arrows(request["request_type"])
    assert canonical_request(request).decode() == case["canonical"]
    assert idempotency_hash(request) == case["idempotency_hash"]


@pytest.mark.parametrize("case", vectors("canonical", "invalid"))
def test_a_value_without_canonical_form_is_refused_with_its_place(case: dict[str, Any]) -> None:
    with pytest.raises(ContractError) as refused:
        canonical_json(read_json(case["json"]))
    assert [problem.pointer for problem in refused.value.problems] == [case["pointer"]]


@pytest.mark.parametrize("case", vectors("messages", "valid"))
def test_a_valid_document_is_read_and_written_without_loss(case: dict[str, Any]) -> None:
    document = parse(case["kind"], bytes_of(case))
    again = parse(case["kind"], document.to_bytes())
    assert again == document
    lost = {
        name
        for name, value in case["document"].items()
        if value is not None and name not in document.to_json()
    }
    assert not lost
    if "outcome" in case:
        assert isinstance(document, Result)
        assert document.outcome == case["outcome"]


@pytest.mark.parametrize("case", vectors("messages", "invalid"))
def test_an_invalid_document_is_refused_with_code_and_pointers(case: dict[str, Any]) -> None:
    with pytest.raises(ContractError) as refused:
        parse(case["kind"], bytes_of(case))
    assert refused.value.code == case["code"]
    pointers = {problem.pointer for problem in refused.value.problems}
    assert pointers == set(case["pointers"])
    assert all(problem.message for problem in refused.value.problems)


@pytest.mark.parametrize("case", vectors("messages", "valid"))
def test_a_valid_document_is_valid_against_its_json_schema(case: dict[str, Any]) -> None:
    model = type(parse(case["kind"], bytes_of(case)))
    assert model in (Envelope, Directive, Ack, Result, Heartbeat)
    jsonschema.Draft202012Validator(schema_of(model)).validate(case["document"])
