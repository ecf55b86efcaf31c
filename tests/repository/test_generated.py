"""What is generated from the code is what the code says, and is what it claims to be."""

import json
from pathlib import Path

import jsonschema
import pytest
from jsonschema.validators import validator_for

from docs.generator import ROOT, outputs
from docs.generator.asyncapi import document
from docs.generator.schemas import DOCUMENTS, schema_of
from lucius_contract.documents import Document
from tests.components import require

ASYNCAPI_SCHEMAS = ROOT / "tools/node/node_modules/@asyncapi/specs/schemas"
OUTPUTS = outputs()


@pytest.mark.parametrize("path", OUTPUTS, ids=lambda path: path.name)
def test_a_generated_file_is_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == OUTPUTS[path], "run `make generate`"


@pytest.mark.parametrize("model", DOCUMENTS)
def test_a_schema_is_a_schema(model: type[Document]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema_of(model))


def test_the_asyncapi_document_is_one() -> None:
    official = ASYNCAPI_SCHEMAS / "3.0.0-without-$id.json"
    require(official.exists(), "the AsyncAPI schema from npm (make setup)")
    schema = json.loads(official.read_text(encoding="utf-8"))
    validator_for(schema)(schema).validate(document())


def test_every_reference_in_the_asyncapi_document_leads_somewhere() -> None:
    whole = document()
    text = json.dumps(whole)
    references = {part.split('"')[0] for part in text.split('"$ref": "#/')[1:]}
    assert references
    for reference in references:
        place: object = whole
        for name in reference.split("/"):
            assert isinstance(place, dict)
            assert name in place, reference
            place = place[name]
