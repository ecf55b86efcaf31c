"""The OpenAPI document is one, and says what is so."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT202012
from schemathesis.specs.openapi.definitions import OPENAPI_31

from docs.generator import ROOT
from lucius_contract.documents import Document
from lucius_contract.errors import ERRORS, ErrorCode, WrittenBy
from lucius_contract.messages import parse_reply
from lucius_orchestrator.api import operations as ops
from lucius_orchestrator.api.dead_letters import letter_view
from lucius_orchestrator.api.examples import EXAMPLES
from lucius_orchestrator.api.job_shapes import EventView, JobWithSteps
from lucius_orchestrator.api.job_views import event_view, job_with_steps
from lucius_orchestrator.api.operation import Guard
from lucius_orchestrator.api.protocols import protocol_view
from lucius_orchestrator.api.shapes import DeadLetterView, ProtocolView, Shape
from lucius_orchestrator.ports.ledger import DeadLetterQuery
from tests.api.stage import Stage
from tests.engine.plane import request

Node = dict[str, Any]


@pytest.fixture
def document(stage: Stage) -> Node:
    return stage.app.openapi()


def operations(document: Node) -> Iterator[tuple[str, Node]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def bodies(document: Node) -> Iterator[tuple[str, Node]]:
    """Of requests and answers, by media type."""
    for _, operation in operations(document):
        for place in (operation.get("requestBody", {}), *operation["responses"].values()):
            yield from place.get("content", {}).items()


def resolved(document: Node, node: Node) -> Node:
    if "$ref" not in node:
        return node
    place: Any = document
    for name in node["$ref"].removeprefix("#/").split("/"):
        place = place[name]
    found: Node = place
    return found


def test_the_document_is_openapi(document: Node) -> None:
    assert document["openapi"].startswith("3.1")
    jsonschema.Draft202012Validator(OPENAPI_31).validate(document)


async def test_it_is_served_to_everybody_and_is_the_one_that_is_kept(
    stage: Stage, document: Node
) -> None:
    kept = (ROOT / "docs/reference/openapi.json").read_text(encoding="utf-8")
    assert (await stage.get("/openapi.json", None)).json() == document == json.loads(kept)


def test_every_reference_leads_somewhere(document: Node) -> None:
    references = {part.split('"')[0] for part in json.dumps(document).split('"$ref": "')[1:]}
    assert references
    for reference in references:
        assert resolved(document, {"$ref": reference})


def test_every_operation_has_a_name_of_its_own_and_says_who_may(document: Node) -> None:
    found = dict(operations(document))
    assert len({operation["operationId"] for operation in found.values()}) == len(found)
    schemes = document["components"]["securitySchemes"]
    public = {name for name, operation in found.items() if operation["security"] == []}
    assert public == {"get /healthz/live", "get /healthz/ready"}
    named = {name for o in found.values() for way in o["security"] for name in way}
    assert named == schemes.keys()


def test_every_body_has_an_example_that_fits(document: Node) -> None:
    """Those of answers and of requests, of refusals too."""
    resource = DRAFT202012.create_resource(document)
    registry = Registry[Any]().with_resource("urn:api", resource)
    seen = 0
    for media_type, content in bodies(document):
        found = [resolved(document, e)["value"] for e in content.get("examples", {}).values()]
        found += [content["example"]] if "example" in content else []
        assert found
        if "json" in media_type:
            schema = {"$ref": f"urn:api{content['schema']['$ref']}"}
            for example in found:
                jsonschema.Draft202012Validator(schema, registry=registry).validate(example)
            seen += len(found)
    assert seen > 100


def test_every_code_that_the_api_can_answer_with_is_documented(document: Node) -> None:
    written = {code for code, info in ERRORS.items() if WrittenBy.API in info.written_by}
    documented = document["components"]["examples"].keys()
    assert written | {ErrorCode.INTERNAL} <= documented


@pytest.mark.parametrize("name", ["Envelope", "Ack", "Result", "Heartbeat"])
def test_an_example_of_a_document_is_read_as_it_stands(name: str) -> None:
    models = {o.body.__name__: o.body for o in ops.OPERATIONS if o.body}
    model: type[Document] = models[name]
    assert model.read(EXAMPLES[name]).to_json().items() >= EXAMPLES[name].items()
    if name != "Envelope":
        assert isinstance(parse_reply(json.dumps(EXAMPLES[name]).encode()), model)


def members(shape: type[Shape]) -> set[str]:
    return {field.alias or name for name, field in shape.model_fields.items()}


async def test_what_is_shown_is_what_is_described(stage: Stage) -> None:
    """Member by member, so that neither side can have more than the other."""
    job_id = await stage.plane.failed(request())
    view = job_with_steps((await stage.plane.stored(job_id)).aggregate)
    step = view["steps"][0]
    steps = JobWithSteps.model_fields["steps"].annotation.__args__[0]  # type: ignore[union-attr]
    attempts = steps.model_fields["attempts"].annotation.__args__[0]
    (event, *_) = await stage.plane.ledger.events(job_id, 0)
    (letter, *_) = (await stage.plane.ledger.dead_letters(DeadLetterQuery())).items
    protocol = protocol_view(stage.registry.current.protocols["ocr"])
    protocol_step = ProtocolView.model_fields["steps"].annotation.__args__[0]  # type: ignore[union-attr]
    assert view.keys() == members(JobWithSteps)
    assert step.keys() == members(steps)
    assert step["attempts"][0].keys() == members(attempts)
    assert event_view(event).keys() == members(EventView)
    assert letter_view(letter).keys() == members(DeadLetterView)
    assert protocol.keys() == members(ProtocolView)
    assert protocol["steps"][0].keys() == members(protocol_step)


def test_only_what_is_public_asks_for_no_role() -> None:
    for operation in ops.OPERATIONS:
        assert (operation.verb is not None) is (operation.guard is Guard.CALLER)
