"""Attacks on the HTTP API with queries, cursors, bodies and headers, over a socket."""

import base64
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lucius_bus.memory import MemoryBus
from lucius_contract.documents import Document
from lucius_contract.messages import Message, Reply
from lucius_orchestrator.adapters.ledger import cursors
from lucius_orchestrator.api import Check
from lucius_orchestrator.api.examples import EXAMPLES
from lucius_orchestrator.api.operation import Guard, Operation
from lucius_orchestrator.api.operations import OPERATIONS
from lucius_orchestrator.security.authentication import AnyAuthenticator
from lucius_orchestrator.security.keys import KeyAuthenticator, KeyFile
from tests.api.artifact_stage import ArtifactStage, artifact_stage
from tests.api.serving import address, served
from tests.api.stage import FOREIGN, LIFE, Stage, code, pointers
from tests.engine.plane import OCR, TENANT, Plane, ack, heartbeat, request, result
from tests.invoker.stage import KEY, InvokerStage
from tests.ledger.backends import Backend, Clock, MemoryBackend, PostgresBackend, SqliteBackend
from tests.names import unique
from tests.runner.deadlines import DEADLINE
from tests.security.issuer import Issuer, authenticator_of

REPLIES: dict[str, Callable[[Message], Reply]] = {
    "ack": ack,
    "result": result,
    "heartbeat": heartbeat,
}
IDS = {
    "{jobId}": "job_1",
    "{protocolId}": "ocr",
    "{uploadId}": "up_1",
    "{name}": "invoices",
    "{version}": "1",
    "{key}": "o1",
    "{number}": "1",
}
DEPTHS = (150, 300, 1530, 20_000)


def filled(path: str) -> str:
    for name, value in IDS.items():
        path = path.replace(name, value)
    return path


class Live:
    """The API behind a socket, and a client of it with every right."""

    def __init__(self, stage: ArtifactStage, http: httpx.AsyncClient) -> None:
        self.stage = stage
        self.http = http

    async def ask(self, method: str, path: str, caller: str = "root", **how: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {caller}", **how.pop("headers", {})}
        return await self.http.request(method, path, headers=headers, **how)

    async def reply(self, path: str, **how: Any) -> httpx.Response:
        """A callback that would be taken, to this path and query."""
        given = await self.stage.plane.working(request(idempotency_key=unique("reply")))
        reply = REPLIES[path.partition("?")[0].rpartition("/")[2]](given)
        token = self.stage.tokens.issue(
            reply.job_id,
            reply.step_id,
            reply.attempt_no,
            reply.lease_id,
            self.stage.plane.clock() + LIFE,
        )
        return await self.ask("POST", path, token, content=reply.to_bytes(), **how)


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[Live]:
    async with (
        artifact_stage("memory", tmp_path) as stage,
        served(stage.app) as port,
        httpx.AsyncClient(base_url=address(port), timeout=DEADLINE) as http,
    ):
        yield Live(stage, http)


def routes_of(stage: Stage) -> list[tuple[str, str]]:
    """All that the application has, whether it is described or not."""
    found = [
        (method, route.path)  # type: ignore[attr-defined]
        for route in stage.app.routes
        for method in route.methods  # type: ignore[attr-defined]
    ]
    assert len(found) > len(OPERATIONS)
    return sorted(found)


async def test_every_route_refuses_a_query_parameter_that_it_does_not_know(live: Live) -> None:
    for method, path in routes_of(live.stage):
        asked = f"{filled(path)}?frob=1"
        is_callback = path.startswith("/v1/callbacks/")
        answer = await (live.reply(asked) if is_callback else live.ask(method, asked))
        assert answer.status_code == 400, (method, path)
        if method != "HEAD":
            assert code(answer) == (400, "ENVELOPE_INVALID"), (method, path)
            assert pointers(answer) == ["/query/frob"]


def with_query() -> Iterator[tuple[Operation, str]]:
    document = json.loads(Path("docs/reference/openapi.json").read_text(encoding="utf-8"))
    for operation in OPERATIONS:
        described = document["paths"][operation.path][operation.method.lower()]
        for parameter in described["parameters"]:
            if parameter.get("in") == "query":
                yield operation, parameter["name"]


async def test_every_parameter_that_is_given_twice_is_refused(live: Live) -> None:
    """Of two values one part of a system may check the first and another use the last."""
    tried = list(with_query())
    assert len(tried) > 25
    for operation, name in tried:
        path = f"{filled(operation.path)}?{name}=1&{name}=2"
        answer = await live.ask(operation.method, path)
        assert code(answer) == (400, "ENVELOPE_INVALID"), path
        assert f"/query/{name}" in pointers(answer)


async def test_a_refusal_names_the_parameters_that_there_are(live: Live) -> None:
    (error,) = (await live.ask("GET", "/v1/jobs?teant_id=x")).json()["errors"]
    known = {*error["message"].partition("known: ")[2].split(", ")}
    assert known == {
        "tenant_id",
        "tenant",
        "state",
        "request_type",
        "since",
        "limit",
        "cursor",
    }
    (error,) = (await live.ask("GET", "/healthz/live?x=1")).json()["errors"]
    assert "no query parameters" in error["message"]


SPELLINGS = [
    "tenantId=zzz",
    "TENANT_ID=zzz",
    "tenant%5Fid=acme&tenant_id=globex",
    "tenant_id[]=zzz",
    "tenant_id=acme&tenant=globex",
    "tenant_id=acme&tenant_id=acme",
    "=zzz",
    "&".join(["x=1"] * 5000),
    "x" * 20_000,
    "%ff%fe=1",
    "a;b=c",
    "state=SUCCEEDED;tenant_id=zzz",
]


async def test_no_spelling_of_a_filter_shows_everything(live: Live) -> None:
    await live.stage.submitted("root")
    for query in SPELLINGS:
        answer = await live.ask("GET", f"/v1/jobs?{query}")
        assert code(answer) == (400, "ENVELOPE_INVALID"), query
        assert len(answer.content) < 20_000


async def test_the_filter_by_tenant_filters_and_its_older_name_does_too(live: Live) -> None:
    mine = await live.stage.submitted("root")
    theirs = await live.stage.submitted("root", tenant_id=FOREIGN)
    for query, seen in {
        "tenant_id=zzz": set(),
        "tenant=zzz": set(),
        f"tenant_id={TENANT}": {mine},
        f"tenant={FOREIGN}": {theirs},
        f"tenant={TENANT}&tenant_id={TENANT}": {mine},
    }.items():
        listed = (await live.ask("GET", f"/v1/jobs?{query}")).json()["items"]
        assert {job["jobId"] for job in listed} == seen, query
    assert code(await live.ask("GET", f"/v1/jobs?tenant_id={FOREIGN}", "ada"))[0] == 403


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


async def test_a_verb_that_there_is_not_is_404_with_every_method(live: Live) -> None:
    job_id = await live.stage.submitted("root")
    for path in (
        f"/v1/jobs/{job_id}:frob",
        f"/v1/jobs/{job_id}:",
        f"/v1/jobs/{job_id}:cancel:cancel",
        f"/v1/jobs/{job_id}:Cancel",
        f"/v1/jobs/{job_id}%3Afrob",
        "/v1/artifacts/uploads/up_1:frob",
        "/v1/artifacts/invoices/versions/1:frob",
        "/v1/protocols/ocr:frob",
        "/v1/jobs/",
        "//v1/jobs",
        "/v1/jobs/../jobs/x/y",
    ):
        for method in METHODS:
            answer = await live.ask(method, path)
            assert answer.status_code == 404, (method, path)
    assert (await live.ask("GET", f"/v1/jobs/{job_id}")).json()["state"] == "DISPATCHING"


async def test_a_method_that_a_path_has_not_is_405_and_is_told_which_it_has(live: Live) -> None:
    has: dict[str, set[str]] = {}
    for method, path in routes_of(live.stage):
        has.setdefault(path, set()).add(method)
    for path, methods in has.items():
        for method in {*METHODS} - methods:
            answer = await live.ask(method, filled(path))
            assert answer.status_code == 405, (method, path)
            assert set(answer.headers["allow"].split(", ")) == methods, path


def cursor_of(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


BAD_CURSORS = [
    *(cursor_of(b"[" * depth) for depth in (1, 250, 1500, 1530)),
    cursor_of(b"[" * 700 + b"]" * 700),
    cursor_of(b'{"a":' * 250 + b"1" + b"}" * 250),
    *map(
        cursor_of,
        (
            b"",
            b"\xff\xfe",
            b"null",
            b"1e999",
            b"9" * 1500,
            b'["job"]',
            b'["job",null]',
            b'["job",["job_1"]]',
            b'["job",{"a":1}]',
            b'["job","a","b"]',
            b'["job","\\u0000"]',
            b'["job","\\ud800"]',
            b'["letter","now","x"]',
            b'["letter","2026-01-01","x"]',
            b'["letter","0001-01-01T00:00:00+23:59","x"]',
            b'["letter","9999-12-31T23:59:59-23:59","x"]',
            b'["letter","2026-01-01T00:00:00Z","\\u0000"]',
            b'["other","x"]',
        ),
    ),
    "%",
    "=" * 20,
    "a",
    "é",
    "' OR 1=1 --",
    "x" * 2048,
    "x" * 5000,
]
LISTS = ("/v1/jobs", "/v1/dead-letters", "/v1/jobs/{job}/events")
OF_ARTIFACTS = ("/v1/artifacts", "/v1/artifacts/invoices/versions")


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
async def test_a_bad_cursor_of_any_kind_is_400(
    request: pytest.FixtureRequest, tmp_path: Path, store: str
) -> None:
    clock = Clock()
    backend: Backend = MemoryBackend(clock)
    if store == "sqlite":
        backend = SqliteBackend(clock, tmp_path)
    elif store == "postgres":
        uri = request.getfixturevalue("postgres_uri")
        backend = PostgresBackend(clock, uri, unique("attacks"))
    await backend.start()
    stage = Stage(Plane.new(backend, MemoryBus(clock)))
    job = await stage.submitted("root")
    for path in LISTS:
        for cursor in BAD_CURSORS:
            answer = await stage.get(path.format(job=job), "root", params={"cursor": cursor})
            assert code(answer) == (400, "ENVELOPE_INVALID"), (path, cursor)
            assert pointers(answer) == ["/query/cursor"]
    await backend.stop()


async def test_a_bad_cursor_of_a_list_of_artifacts_is_400(live: Live) -> None:
    for path in OF_ARTIFACTS:
        for cursor in BAD_CURSORS:
            if path == OF_ARTIFACTS[0] and cursor in ("a",):
                continue  # which is a name
            query = {"tenant_id": TENANT, "cursor": cursor}
            answer = await live.ask("GET", path, params=query)
            assert code(answer) == (400, "ENVELOPE_INVALID"), (path, cursor)


def test_cursors_of_ours_are_read() -> None:
    assert cursors.decode_job(cursors.encode_job("job_1")) == "job_1"


def deep(depth: int, kind: str) -> str:
    if kind == "array":
        return "[" * depth + "]" * depth
    return '{"a":' * depth + "1" + "}" * depth


ODD = [
    *(deep(depth, kind) for depth in DEPTHS for kind in ("array", "object")),
    "[" * 50_000,
    "null",
    "true",
    "1e999",
    "-" + "9" * 5000,
    '"\\ud800"',
    '"\\u0000"',
    '"' + "x" * 70_000 + '"',
    "[1]",
    "{}",
    '""',
    "NaN",
]
WITH_BODY = [operation for operation in OPERATIONS if operation.body is not None]


def bodies(example: dict[str, Any]) -> Iterator[str]:
    """The example with each member in turn, and one more, replaced by something odd."""
    yield from ODD
    for name in (*example, "unheard_of"):
        rest = json.dumps({key: value for key, value in example.items() if key != name})[1:-1]
        for odd in ODD:
            yield "{" + rest + (", " if rest else "") + json.dumps(name) + ": " + odd + "}"


@pytest.mark.check
@pytest.mark.parametrize("operation", WITH_BODY, ids=lambda operation: operation.id)
async def test_no_body_whatever_its_depth_size_and_types_is_an_error_of_ours(
    live: Live, operation: Operation
) -> None:
    body: type[Document] | None = operation.body
    assert body is not None
    caller = "root" if operation.guard is Guard.CALLER else "1.2.3.4"
    for text in bodies(EXAMPLES[body.__name__]):
        answer = await live.ask(
            operation.method, filled(operation.path), caller, content=text.encode()
        )
        assert answer.status_code < 500, (operation.id, text[:80], answer.text)


async def test_a_payload_nested_1530_deep_is_400_and_creates_nothing(live: Live) -> None:
    for depth in DEPTHS:
        for kind in ("array", "object"):
            payload = '{"ocr":' + deep(depth, kind) + "}"
            body = json.dumps(OCR | {"payload": 0}).replace('"payload": 0', f'"payload": {payload}')
            answer = await live.ask("POST", "/v1/orchestrate", content=body)
            assert answer.status_code in (400, 413, 422), (depth, kind, answer.text)
    assert (await live.ask("GET", "/v1/jobs")).json()["items"] == []


def deep_token(depth: int) -> str:
    """A JWT whose header nests."""
    header = b'{"alg":"RS256","kid":' + b"[" * depth + b"]" * depth + b"}"
    return f"{cursor_of(header)}.{cursor_of(b'{}')}.{cursor_of(b'x')}"


async def test_no_authorization_header_is_an_error_of_ours(tmp_path: Path) -> None:
    async with artifact_stage("memory", tmp_path) as artifacts:
        issuer, clock = Issuer(), artifacts.plane.clock
        kinds = AnyAuthenticator(
            [
                KeyAuthenticator(KeyFile(tmp_path / "keys.json", clock)),
                authenticator_of(issuer.url or "http://127.0.0.1:1/jwks", clock),  # type: ignore[arg-type]
            ]
        )
        stage = Stage(artifacts.plane, authenticator=kinds)
        for token in (
            *(deep_token(depth) for depth in (500, 1000, 1530, 10_000)),
            "lk_" + "x" * 10_000,
            "lk_é",
            "." * 1000,
            "\xff\xfe",
        ):
            headers = {b"Authorization": b"Bearer " + token.encode("latin-1")}
            answer = await stage.get("/v1/jobs", None, headers=headers)
            assert code(answer) == (401, "UNAUTHENTICATED"), token[:40]


ODD_HEADERS: dict[str, bytes] = {
    "Idempotency-Key": b"[" * 5000,
    "X-Correlation-Id": b"{" * 5000,
    "traceparent": b"00-" + b"f" * 5000,
    "Last-Event-ID": b"9" * 5000,
    "If-None-Match": b'"' + b"x," * 5000,
    "Content-Length": b"9" * 5000,
    "Range": b"bytes=" + b"9" * 5000 + b"-",
}


async def test_no_header_is_an_error_of_ours(live: Live) -> None:
    job = f"/v1/jobs/{(await live.stage.plane.succeeded()).job_id}"
    for name, value in ODD_HEADERS.items():
        headers = {name.encode(): value}
        for method, path in (("GET", job), ("GET", f"{job}/stream"), ("POST", "/v1/orchestrate")):
            body = OCR if method == "POST" else None
            answer = await live.stage.ask(method, path, "root", json=body, headers=headers)
            assert answer.status_code < 500, (name, path)


SECRET_DETAIL = "tenants.yaml:3: globex: no host db.internal"  # noqa: S105 - what must not be seen


@pytest.mark.parametrize("caller", [None, "stranger", "submitter", "reader", "operator", "ada"])
async def test_why_the_process_is_not_ready_is_told_to_operators_of_all_tenants_alone(
    live: Live, caller: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    live.stage.checks[:] = [Check("protocols", False, SECRET_DETAIL), Check("bus", True, "b")]
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            answer = await live.stage.get("/healthz/ready", caller)
    assert answer.status_code == 503
    assert SECRET_DETAIL not in answer.text
    assert answer.json()["checks"] == [
        {"name": "protocols", "ok": False, "detail": None},
        {"name": "bus", "ok": True, "detail": None},
    ]
    logged = [record for record in caplog.records if record.getMessage() == "health.not_ready"]
    assert [vars(record)["detail"] for record in logged] == [SECRET_DETAIL]
    operator = await live.stage.get("/healthz/ready", "root")
    assert operator.json()["checks"][0]["detail"] == SECRET_DETAIL


async def test_a_probe_is_answered_while_keys_cannot_be_read(live: Live) -> None:
    live.stage.callers.away = True
    answer = await live.stage.get("/healthz/ready", "root")
    assert (answer.status_code, answer.json()["checks"][0]["detail"]) == (200, None)


@pytest.fixture
async def invoker() -> InvokerStage:
    backend = MemoryBackend(Clock())
    await backend.start()
    return InvokerStage(Plane.new(backend, MemoryBus(backend.clock)))


INTERNAL = ("steps/attempt", "publish", "jobs/job_1/events", "jobs/job_1:cancel")


@pytest.mark.parametrize("path", INTERNAL)
async def test_the_internal_api_refuses_unknown_parameters_and_odd_bodies(
    invoker: InvokerStage, path: str
) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    transport = httpx.ASGITransport(invoker.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://invoker") as http:
        address_ = f"/v1/internal/{path}"
        unknown = await http.post(f"{address_}?frob=1", headers=headers, json={})
        assert code(unknown) == (400, "ENVELOPE_INVALID")
        assert pointers(unknown) == ["/query/frob"]
        named = {"jobId": "job_1", "stepId": "s", "tenant_id": TENANT, "attempt_no": 1}
        for text in bodies({**named, "lease_id": "l", "directive": {}, "by": None}):
            answer = await http.post(address_, headers=headers, content=text.encode())
            assert answer.status_code < 500, (path, text[:80])
        for token in ("", "other", KEY[:-1], f"{KEY}x", "é", KEY.upper()):
            wrong = {b"Authorization": b"Bearer " + token.encode()}
            answer = await http.post(f"{address_}?frob=1", headers=wrong, json={})
            assert code(answer) == (401, "UNAUTHENTICATED"), token
