"""A caller sees and touches its own tenants only, on every route that there is."""

from collections.abc import Callable

import httpx
import pytest
from fastapi import FastAPI

from lucius_contract.audit import DeadLetterKind
from lucius_contract.messages import Message, Reply
from lucius_orchestrator.api.artifacts import operations as artifacts
from lucius_orchestrator.api.operations import OPERATIONS
from lucius_orchestrator.ports.ledger import DeadLetterRow
from tests.api.stage import FOREIGN, Stage, code, pointers
from tests.engine.plane import OCR, TENANT, ack, heartbeat, request, result

NOBODYS = "job_" + "0" * 32
OF_A_JOB = {
    ("GET", "/v1/jobs/{jobId}"),
    ("GET", "/v1/jobs/{jobId}/steps"),
    ("GET", "/v1/jobs/{jobId}/events"),
    ("GET", "/v1/jobs/{jobId}/stream"),
    ("POST", "/v1/jobs/{jobId}:cancel"),
    ("POST", "/v1/jobs/{jobId}:pause"),
    ("POST", "/v1/jobs/{jobId}:resume"),
    ("POST", "/v1/jobs/{jobId}:redrive"),
}
LISTS = {("GET", "/v1/jobs"), ("GET", "/v1/dead-letters")}
SUBMITS = {("POST", "/v1/orchestrate"), ("POST", "/v1/commands")}
CALLBACKS = {
    ("POST", "/v1/callbacks/ack"),
    ("POST", "/v1/callbacks/result"),
    ("POST", "/v1/callbacks/heartbeat"),
}
REPLIES: dict[str, Callable[[Message], Reply]] = {
    "ack": ack,
    "result": result,
    "heartbeat": heartbeat,
}
WITHOUT_TENANTS = {("GET", "/v1/protocols"), ("GET", "/v1/protocols/{protocolId}")}
FOR_ALL_TENANTS = {("GET", "/metrics"), ("GET", "/v1/services")}
OF_ARTIFACTS = {(operation.method, operation.path) for operation in artifacts.OPERATIONS}
"""Tested in `test_artifacts_isolation`."""
PUBLIC = {
    ("GET", "/healthz/live"),
    ("GET", "/healthz/ready"),
    ("GET", "/openapi.json"),
    ("HEAD", "/openapi.json"),
}


def routes_of(app: FastAPI) -> set[tuple[str, str]]:
    return {
        (method, getattr(route, "path", repr(route)))
        for route in app.routes
        for method in getattr(route, "methods", None) or {"?"}
    }


def test_every_route_is_tested_here(stage: Stage) -> None:
    tested = OF_A_JOB | LISTS | SUBMITS | CALLBACKS | WITHOUT_TENANTS | FOR_ALL_TENANTS | PUBLIC
    assert routes_of(stage.app) == tested | OF_ARTIFACTS


def test_every_operation_of_the_table_has_a_route(stage: Stage) -> None:
    described = {(operation.method, operation.path) for operation in OPERATIONS}
    assert described == {route for route in routes_of(stage.app) if "openapi" not in route[1]}


def without_ids(answer: httpx.Response, job_id: str) -> tuple[int, str, list[tuple[str, str]]]:
    """All that a client could tell two answers apart by."""
    identity = answer.headers["x-correlation-id"]
    text = answer.text.replace(job_id, "JOB").replace(identity, "ID")
    headers = [
        (name, value) for name, value in answer.headers.items() if name != "x-correlation-id"
    ]
    return answer.status_code, text, headers


@pytest.mark.parametrize(("method", "path"), sorted(OF_A_JOB))
async def test_a_job_of_another_tenant_is_one_that_does_not_exist(
    stage: Stage, method: str, path: str
) -> None:
    job_id = await stage.plane.failed()
    version = (await stage.plane.stored(job_id)).version
    foreign = await stage.ask(method, path.replace("{jobId}", job_id), "mallory")
    nobodys = await stage.ask(method, path.replace("{jobId}", NOBODYS), "mallory")
    assert code(foreign) == (404, "JOB_NOT_FOUND")
    assert without_ids(foreign, job_id) == without_ids(nobodys, NOBODYS)
    assert (await stage.plane.stored(job_id)).version == version
    own = await stage.ask(method, path.replace("{jobId}", job_id), "ada")
    assert own.status_code != 404


@pytest.mark.parametrize(("method", "path"), sorted(SUBMITS))
async def test_nobody_submits_for_a_foreign_tenant(stage: Stage, method: str, path: str) -> None:
    answer = await stage.ask(method, path, "mallory", json=OCR)
    assert code(answer) == (403, "FORBIDDEN")
    assert pointers(answer) == ["/tenant_id"]
    assert (await stage.get("/v1/jobs", "root")).json()["items"] == []


@pytest.mark.parametrize(("method", "path"), sorted(SUBMITS))
async def test_a_key_of_another_tenant_is_another_key(stage: Stage, method: str, path: str) -> None:
    mine = await stage.ask(method, path, "ada", json=OCR | {"idempotency_key": "k"})
    other = OCR | {"idempotency_key": "k", "tenant_id": FOREIGN, "payload": {}}
    theirs = await stage.ask(method, path, "mallory", json=other)
    assert (theirs.status_code, theirs.json()["duplicate"]) == (202, False)
    assert theirs.json()["jobId"] != mine.json()["jobId"]


async def things_of_two_tenants(stage: Stage) -> tuple[str, str]:
    mine = await stage.plane.failed(request())
    theirs = await stage.plane.failed(request(tenant_id=FOREIGN))
    return mine, theirs


async def listed(stage: Stage, path: str, caller: str, tenant: str | None = None) -> set[str]:
    query = {} if tenant is None else {"tenant_id": tenant}
    answer = await stage.get(path, caller, params=query)
    assert answer.status_code == 200, answer.text
    return {item["jobId"] for item in answer.json()["items"]}


@pytest.mark.parametrize(("method", "path"), sorted(LISTS))
async def test_a_list_shows_the_tenants_of_the_caller(stage: Stage, method: str, path: str) -> None:
    mine, theirs = await things_of_two_tenants(stage)
    assert await listed(stage, path, "ada") == {mine}
    assert await listed(stage, path, "ada", TENANT) == {mine}
    assert await listed(stage, path, "mallory") == {theirs}
    assert await listed(stage, path, "both", TENANT) == {mine}
    assert await listed(stage, path, "both", "initech") == set()
    assert await listed(stage, path, "root") == {mine, theirs}
    assert await listed(stage, path, "root", FOREIGN) == {theirs}


@pytest.mark.parametrize(("method", "path"), sorted(LISTS))
async def test_a_list_of_a_foreign_tenant_is_forbidden(
    stage: Stage, method: str, path: str
) -> None:
    await things_of_two_tenants(stage)
    for caller in ("mallory", "both"):
        tenant = TENANT if caller == "mallory" else FOREIGN
        answer = await stage.get(path, caller, params={"tenant_id": tenant})
        assert code(answer) == (403, "FORBIDDEN")
        assert pointers(answer) == ["/query/tenant_id"]
        unknown = await stage.get(path, caller, params={"tenant_id": "nobody"})
        assert code(unknown) == (403, "FORBIDDEN")


@pytest.mark.parametrize(("method", "path"), sorted(LISTS))
async def test_a_caller_with_several_tenants_says_whose_list(
    stage: Stage, method: str, path: str
) -> None:
    answer = await stage.get(path, "both")
    assert code(answer) == (400, "ENVELOPE_INVALID")
    assert pointers(answer) == ["/query/tenant_id"]


@pytest.mark.parametrize(("method", "path"), sorted(LISTS))
async def test_a_cursor_leads_into_no_foreign_list(stage: Stage, method: str, path: str) -> None:
    for number in range(2):
        await stage.plane.failed(request(idempotency_key=str(number)))
    await stage.plane.failed(request(tenant_id=FOREIGN))
    cursor = (await stage.get(path, "ada", params={"limit": 1})).json()["next_cursor"]
    assert cursor is not None
    page = await stage.get(path, "mallory", params={"cursor": cursor})
    assert {item["tenant_id"] for item in page.json()["items"]} <= {FOREIGN}


async def test_dead_letters_of_no_tenant_are_for_callers_with_all(stage: Stage) -> None:
    """As of a reply that could not be read."""
    now = stage.plane.clock()
    row = DeadLetterRow(
        "stray", DeadLetterKind.REPLY, None, None, None, None, "X", "unreadable", now, now
    )
    await stage.plane.ledger.bury(row)
    seen = (await stage.get("/v1/dead-letters", "root")).json()["items"]
    assert [letter["id"] for letter in seen] == ["stray"]
    assert (await stage.get("/v1/dead-letters", "ada")).json()["items"] == []


@pytest.mark.parametrize(("method", "path"), sorted(CALLBACKS))
async def test_a_callback_takes_no_caller_and_only_its_own_token(
    stage: Stage, method: str, path: str
) -> None:
    """Tokens are bound to an attempt, so the tenant is that of the job; see `test_callbacks`."""
    mine = await stage.plane.working(request())
    theirs = await stage.plane.working(request(tenant_id=FOREIGN))
    make = REPLIES[path.rsplit("/", 1)[1]]
    assert code(await stage.reply(make(mine), attempt=theirs)) == (403, "FORBIDDEN")
    spoken = make(theirs.model_copy(update={"job_id": mine.job_id}))
    assert code(await stage.reply(spoken, attempt=theirs)) == (403, "FORBIDDEN")


@pytest.mark.parametrize(("method", "path"), sorted(FOR_ALL_TENANTS))
async def test_what_counts_all_tenants_is_for_callers_with_all(
    stage: Stage, method: str, path: str
) -> None:
    assert code(await stage.get(path, "ada")) == (403, "FORBIDDEN")
    assert (await stage.get(path, "root")).status_code == 200


@pytest.mark.parametrize(("method", "path"), sorted(WITHOUT_TENANTS))
async def test_protocols_are_the_same_for_all(stage: Stage, method: str, path: str) -> None:
    address = path.replace("{protocolId}", "ocr")
    answers = {(await stage.get(address, name)).content for name in ("ada", "mallory", "root")}
    assert len(answers) == 1


@pytest.mark.parametrize(("method", "path"), sorted(PUBLIC))
async def test_what_is_public_says_nothing_of_tenants(stage: Stage, method: str, path: str) -> None:
    job_id = await stage.submitted()
    answer = await stage.ask(method, path, None)
    assert answer.status_code == 200
    assert job_id not in answer.text


@pytest.mark.parametrize(
    ("method", "path"),
    sorted(OF_A_JOB | LISTS | SUBMITS | WITHOUT_TENANTS | FOR_ALL_TENANTS),
)
async def test_nothing_else_is_open_to_strangers(stage: Stage, method: str, path: str) -> None:
    job_id = await stage.submitted()
    address = path.replace("{jobId}", job_id).replace("{protocolId}", "ocr")
    for caller in (None, "stranger"):
        answer = await stage.ask(method, address, caller, params={"limit": "wrong"})
        assert code(answer) == (401, "UNAUTHENTICATED")
        assert answer.headers["www-authenticate"] == "Bearer"
    stage.callers.away = True
    answer = await stage.ask(method, address, "root")
    assert code(answer) == (503, "UNAVAILABLE")
    assert answer.headers["retry-after"] == "5"


@pytest.mark.parametrize(("method", "path"), sorted(OF_A_JOB | LISTS | SUBMITS))
async def test_roles_say_what_a_caller_may_do(stage: Stage, method: str, path: str) -> None:
    """A reader commands nothing; who may only submit lists nothing."""
    address = path.replace("{jobId}", await stage.plane.failed())
    barred = "reader" if method == "POST" else "submitter"
    answer = await stage.ask(method, address, barred, json=OCR if method == "POST" else None)
    allowed = method == "GET" and (method, path) in OF_A_JOB
    assert (answer.status_code == 403) is not allowed
