"""One JSON Schema per document on the wire."""

import json
from collections.abc import Mapping
from typing import Any

from lucius_contract import CONTRACT_VERSION
from lucius_contract.documents import Document
from lucius_contract.envelope import Envelope
from lucius_contract.messages import Ack, Directive, Heartbeat, Result

DOCUMENTS: tuple[type[Document], ...] = (Envelope, Directive, Ack, Result, Heartbeat)
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(model: type[Document]) -> dict[str, Any]:
    name = model.__name__.lower()
    return {
        "$schema": DIALECT,
        "$id": f"urn:lucius:contract:{CONTRACT_VERSION}:{name}",
        **model.model_json_schema(),
    }


def files() -> Mapping[str, str]:
    return {
        f"lucius_contract/schemas/{model.__name__.lower()}.schema.json": as_text(schema_of(model))
        for model in DOCUMENTS
    }


def as_text(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
