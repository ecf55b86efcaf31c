"""The service takes the payloads that its protocol allows, and no others."""

from importlib import resources
from typing import Any

import pytest
from pydantic import ValidationError

from ocr_service.payload import Payload

yaml = pytest.importorskip("yaml")
jsonschema = pytest.importorskip("jsonschema")

ALLOWED: list[dict[str, Any]] = [
    {},
    {"languages": ["eng"]},
    {"languages": ["deu", "eng", "script/Latin"]},
    {"languages": ["x" * 32] * 20},
    {"dpi": 72},
    {"dpi": 600},
    {"dpi": 200.0},
    {"pages": [1]},
    {"pages": [3, 1, 1, 1_000_000]},
]
REFUSED: list[dict[str, Any]] = [
    {"languages": []},
    {"languages": "eng"},
    {"languages": [""]},
    {"languages": [7]},
    {"languages": ["x" * 33]},
    {"languages": ["eng"] * 21},
    {"languages": None},
    {"dpi": 71},
    {"dpi": 601},
    {"dpi": 200.5},
    {"dpi": "200"},
    {"dpi": None},
    {"pages": []},
    {"pages": [0]},
    {"pages": [-1]},
    {"pages": [1.5]},
    {"pages": ["1"]},
    {"pages": [True]},
    {"pages": 1},
    {"pages": None},
    {"page": [1]},
]


@pytest.fixture(scope="module")
def schema() -> Any:
    shipped = resources.files("lucius_orchestrator") / "shipped" / "protocols" / "ocr.yaml"
    (step,) = yaml.safe_load(shipped.read_text(encoding="utf-8"))["steps"]
    return step["payload_schema"]


@pytest.mark.parametrize("payload", ALLOWED, ids=str)
def test_what_the_protocol_allows_is_taken(schema: Any, payload: dict[str, Any]) -> None:
    jsonschema.validate(payload, schema)
    Payload.model_validate(payload)


@pytest.mark.parametrize("payload", REFUSED, ids=str)
def test_what_the_protocol_refuses_is_refused(schema: Any, payload: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(payload, schema)
    with pytest.raises(ValidationError):
        Payload.model_validate(payload)


def test_what_is_left_out_is_english_at_200_dpi_and_every_page() -> None:
    assert Payload().model_dump() == {"languages": ["eng"], "dpi": 200, "pages": []}
