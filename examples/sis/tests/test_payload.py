"""What may be asked, and what is refused before anything is read."""

from importlib.resources import files
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from lucius_sdk.testing import run_step
from pydantic import ValidationError

from sis_service.execute import service
from sis_service.payload import Payload

TEXT = {"name": "total", "prompt": "What is the total?", "output": "text"}
JSON = {"name": "total", "prompt": "What is the total?", "output": "json"}


def with_schema(schema: Any) -> dict[str, Any]:
    return {"prompt_set": [JSON | {"schema": schema}]}


WRONG = {
    "nothing": ({}, "/payload/prompt_set Field required"),
    "no prompt": ({"prompt_set": []}, "/payload/prompt_set List should have at least 1 item"),
    "a stranger": ({"prompt_set": [TEXT], "top": 3}, "/payload/top Extra inputs"),
    "a stranger within": ({"prompt_set": [TEXT | {"top": 3}]}, "/payload/prompt_set/0/top Extra"),
    "another output": ({"prompt_set": [TEXT | {"output": "xml"}]}, "/payload/prompt_set/0/output"),
    "an empty name": ({"prompt_set": [TEXT | {"name": ""}]}, "/payload/prompt_set/0/name"),
    "an empty prompt": ({"prompt_set": [TEXT | {"prompt": ""}]}, "/payload/prompt_set/0/prompt"),
    "a name twice": ({"prompt_set": [TEXT, JSON]}, "prompts 0 and 1 have the same name"),
    "a schema for text": (
        {"prompt_set": [TEXT | {"schema": {}}]},
        "/payload/prompt_set/0 Value error, a schema needs the output json",
    ),
    "a schema that is none": (
        with_schema({"properties": {"total": {"type": "money"}}}),
        "/payload/prompt_set/0/schema Value error, is no JSON Schema:"
        " /properties/total/type breaks the rule",
    ),
    "a schema of no draft": (with_schema({"$schema": []}), "/$schema breaks the rule type"),
    "a schema that is a list": (with_schema([]), "/payload/prompt_set/0/schema"),
    "a regular expression that is none": (
        with_schema({"type": "string", "pattern": "("}),
        "is no JSON Schema: /pattern breaks the rule format",
    ),
    "a schema of another server": (
        with_schema({"$ref": "http://127.0.0.1:1/schema.json"}),
        "/payload/prompt_set/0/schema Value error, has a $ref that is no entry of its own",
    ),
    "a reference to nothing": (
        with_schema({"$ref": "#/$defs/absent"}),
        "has a $ref that is no entry",
    ),
    "a definition that is no schema": (
        with_schema(
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "$ref": "#/$defs/money",
                "$defs": {"money": {"type": 7}},
            }
        ),
        "is no JSON Schema: /type breaks the rule",
    ),
    "a reference to itself": (with_schema({"$ref": "#"}), "has a $ref that is no entry"),
}


@pytest.mark.parametrize(("payload", "told"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_payload_is_refused_for_good_with_a_pointer(
    payload: dict[str, Any], told: str
) -> None:
    done = run_step(service, payload, b"The total is 7.")
    assert (done.status, done.code) == ("FAILED_FINAL", "PAYLOAD_INVALID")
    assert done.error
    assert told in done.error.message
    assert done.files == {}


def test_a_schema_may_refer_to_its_own_definitions() -> None:
    schema = {"$ref": "#/$defs/money", "$defs": {"money": {"type": "number"}}}
    done = run_step(service, with_schema(schema), b"The total is EUR 7.50.")
    assert done.json("result.json")["answers"][0]["answer"] == 7.5


def test_a_schema_that_is_nested_too_deep_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(150):
        schema = {"not": schema}
    done = run_step(service, with_schema(schema), b"text")
    assert done.error
    assert done.error.message.endswith("it is nested too deep")


AGREED = [case[0] for case in WRONG.values()] + [
    {"prompt_set": [TEXT]},
    with_schema({"type": "object"}),
]


@pytest.mark.parametrize("payload", AGREED)
def test_what_the_protocol_refuses_the_service_refuses_too(payload: dict[str, Any]) -> None:
    protocol = files("lucius_orchestrator").joinpath("shipped/protocols/sis.yaml").read_text()
    schema = yaml.safe_load(protocol)["steps"][0]["payload_schema"]
    is_allowed = Draft202012Validator(schema).is_valid(payload)
    try:
        Payload.model_validate(payload)
    except ValidationError:
        return
    assert is_allowed
