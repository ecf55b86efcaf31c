"""Schemathesis against a real server: no defects, no undocumented statuses, answers that fit.

What it generates is mixed with what exists, so that it gets past the first check: ids of jobs in
several states, requests and replies that the control plane accepts.
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import one_of
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from docs.generator import ROOT
from lucius_contract.messages import Directive
from lucius_orchestrator.api import operations
from tests.api.artifact_stage import ArtifactStage, artifact_stage, digest_of
from tests.api.serving import address, served
from tests.api.stage import LIFE, QUICK
from tests.engine.plane import OCR, TENANT, Plane, ack, request
from tests.runner.deadlines import DEADLINE
from tests.runner.tiers import examples

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
DOCUMENT = ROOT / "docs/reference/openapi.json"  # `test_openapi` holds it to the application
CALLERS = ("root", "ada", "both", "mallory", "reader", "nobody")
NAMED = ("jobId", "stepId", "attempt_no", "lease_id", "tenant_id", "timestamp")
ARTIFACT = "letters"
CONTENT = b"ten bytes!"
Case = schemathesis.Case[Any]


class World(NamedTuple):
    """A server with jobs and artifacts in it."""

    stage: ArtifactStage
    port: int
    moving: list[str]
    ended: list[str]
    open: list[Directive]
    uploads: list[str]
    objects: dict[str, str]
    """Signed addresses, by the method that they are for."""


async def prepared(plane: Plane) -> tuple[list[str], list[str], list[Directive]]:
    ended = [(await plane.succeeded(request(idempotency_key=f"good {n}"))).job_id for n in range(2)]
    ended += [await plane.failed(request(idempotency_key=f"bad {n}")) for n in range(4)]
    working = [await plane.working(request(payload={"dpi": 72 + n})) for n in range(10)]
    waiting = [await plane.submit(request(payload={"dpi": 100 + n})) for n in range(4)]
    return [directive.job_id for directive in working] + waiting, ended, working


async def prepared_artifacts(stage: ArtifactStage) -> tuple[list[str], dict[str, str]]:
    for content in (CONTENT, CONTENT[::-1]):
        await stage.published(ARTIFACT, content)
    await stage.tombstone(ARTIFACT, 1)
    fresh, partial = [await stage.begin(content) for content in (CONTENT, b"never seen")]
    (put, _) = await stage.signed(partial, [1, 2])
    read = (await stage.located(f"artifact://{ARTIFACT}/v2/files/0.txt")).json()["url"]
    uploads = [upload["upload_id"] for upload in (fresh, partial)]
    return uploads, {"PUT": put["url"], "GET": read}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """In a thread of its own: Schemathesis waits for its answers without a loop."""
    folder = tmp_path_factory.mktemp("artifacts")
    ready, done = threading.Event(), threading.Event()
    made: list[World] = []

    async def serve() -> None:
        async with artifact_stage("memory", folder, QUICK) as stage:
            prepared_jobs = await prepared(stage.plane)
            prepared_uploads = await prepared_artifacts(stage)
            async with served(stage.app) as port:
                made.append(World(stage, port, *prepared_jobs, *prepared_uploads))
                ready.set()
                await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(DEADLINE)
    yield made[0]
    done.set()
    thread.join(DEADLINE)


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


schema = schemathesis.openapi.from_dict(json.loads(DOCUMENT.read_text(encoding="utf-8")))
OPERATIONS = {
    found.ok().label: found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)
}


def pick(case: Case, salt: str, choices: Any) -> Any:
    """The same for the same case, whatever the order of the cases is."""
    text = repr((salt, case.path_parameters, case.query, case.headers, case.body))
    return choices[sum(text.encode(errors="replace")) % len(choices)]


def lead(case: Case, world: World) -> None:
    """Point the case at something that exists, two times out of three."""
    if pick(case, "lead", (True, True, False)):
        if "{jobId}" in case.path:
            ids = world.ended if case.path.endswith("/stream") else world.moving + world.ended
            case.path_parameters = {"jobId": pick(case, "id", ids)}
        if "{protocolId}" in case.path:
            case.path_parameters = {"protocolId": "ocr"}
        if case.path.startswith("/v1/artifacts"):
            lead_to_artifacts(case, world)
        if isinstance(case.body, dict):
            case.body = {**case.body, **accepted(case, world)}


def lead_to_artifacts(case: Case, world: World) -> None:
    if "{uploadId}" in case.path:
        case.path_parameters = {"uploadId": pick(case, "upload", world.uploads)}
    if "{name}" in case.path:
        number = pick(case, "version", (1, 2, 2, 3))
        case.path_parameters = {"name": ARTIFACT, "version": number}
    if "{key}" in case.path:
        parts = urlsplit(world.objects.get(case.method, world.objects["GET"]))
        places = parts.path.split("/")
        case.path_parameters = {"key": places[4], "number": "1"}
        case.query = dict(parse_qsl(parts.query))
    elif case.method == "GET" and "{uploadId}" not in case.path:
        uri = f"artifact://{ARTIFACT}/v{pick(case, 'uri', (1, 2))}/files/0.txt"
        case.query = {**(case.query or {}), "tenant_id": TENANT}
        if case.path.endswith("/content"):
            case.query["uri"] = uri


def accepted(case: Case, world: World) -> dict[str, Any]:
    if case.path.startswith("/v1/artifacts"):
        return {"tenant_id": TENANT, "digest": digest_of(CONTENT)}
    if case.path.startswith("/v1/callbacks/"):
        reply = ack(pick(case, "attempt", world.open)).to_json()
        return {name: reply[name] for name in NAMED}
    return OCR | {"idempotency_key": pick(case, "key", (None, "k-1", "k-2"))}


def authorization(case: Case, world: World) -> str:
    """A caller, or the token that fits the reply."""
    body: Any = case.body
    if not (case.path.startswith("/v1/callbacks/") and isinstance(body, dict)):
        return f"Bearer {pick(case, 'caller', CALLERS)}"
    identity: tuple[Any, Any, Any, Any] = (
        body.get("jobId"),
        body.get("stepId"),
        body.get("attempt_no"),
        body.get("lease_id"),
    )
    try:
        token = world.stage.tokens.issue(*identity, world.stage.plane.clock() + LIFE)
    except TypeError:
        return "Bearer of nothing"
    return f"Bearer {token}"


def ask(case: Case, world: World, session: requests.Session) -> None:
    lead(case, world)
    case.call_and_validate(
        base_url=address(world.port),
        session=session,
        headers={"Authorization": authorization(case, world)},
        checks=CHECKS,
        timeout=DEADLINE,
    )


def test_every_operation_is_asked() -> None:
    assert list(OPERATIONS) == [f"{o.method} {o.path}" for o in operations.OPERATIONS]


# Schemathesis has a decorator for this, but its tests all have one id, of which xdist runs one.
@pytest.mark.parametrize("label", OPERATIONS)
def test_no_answer_is_a_surprise(label: str, world: World, session: requests.Session) -> None:
    operation = OPERATIONS[label]

    @settings(
        max_examples=examples(40),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(one_of(*(operation.as_strategy(mode) for mode in GenerationMode)))
    def fuzzed(case: Case) -> None:
        ask(case, world, session)

    fuzzed()


@pytest.mark.check
@pytest.mark.parametrize("label", OPERATIONS)
def test_no_answer_to_an_edge_case_is_a_surprise(
    label: str, world: World, session: requests.Session
) -> None:
    cases = schema.iter_coverage_cases(
        OPERATIONS[label],
        generation_modes=list(GenerationMode),
        generation_config=schema.config.generation,
    )
    for case in cases:
        ask(case, world, session)
