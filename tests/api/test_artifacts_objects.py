"""The bytes themselves: who may bring and read them, and how many of them pass at once."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.types import Message

from lucius_orchestrator.api.artifacts.objects import PIECE
from lucius_orchestrator.api.artifacts.ranges import Span, asked_span
from lucius_orchestrator.observability.http import MeasuredHttp
from lucius_orchestrator.observability.metrics import PrometheusMetrics
from tests.api.artifact_stage import BASE, LIMITS, ArtifactStage, artifact_stage, digest_of
from tests.api.serving import Wire, address, served, wire
from tests.api.stage import code
from tests.engine.plane import TENANT
from tests.runner.deadlines import DEADLINE

CONTENT = b"ten bytes!"


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def one_part(stage: ArtifactStage, content: bytes = CONTENT) -> tuple[Any, str]:
    """A session with one part, and where to put it."""
    upload = await stage.begin(content, part_size=len(content))
    (part,) = await stage.signed(upload, [1])
    assert part["length"] == len(content)
    return upload, part["url"]


async def readable(stage: ArtifactStage, content: bytes = CONTENT, path: str = "a.txt") -> str:
    """Where a published file can be read."""
    await stage.uploaded(content)
    entry = {"path": path, "digest": digest_of(content), "media_type": "text/html"}
    asked = {"tenant_id": TENANT, "entries": [entry]}
    answer = await stage.post("/v1/artifacts/pages/versions", json=asked)
    located = await stage.located(answer.json()["entries"][0]["uri"])
    url: str = located.json()["url"]
    return url


def altered(url: str, **fields: str) -> str:
    parts = urlsplit(url)
    query = {**dict(parse_qsl(parts.query)), **fields}
    return parts._replace(query=urlencode(query)).geturl()


async def test_a_part_is_put_by_whoever_has_its_address(artifacts: ArtifactStage) -> None:
    upload, url = await one_part(artifacts)
    answer = await artifacts.put(url, CONTENT)
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await artifacts.complete(upload)).status_code == 200


async def test_a_part_may_come_without_saying_how_long_it_is(artifacts: ArtifactStage) -> None:
    upload, url = await one_part(artifacts)
    assert (await artifacts.put(url, pieces(CONTENT[:3], b"", CONTENT[3:]))).status_code == 204
    assert (await artifacts.complete(upload)).status_code == 200


async def test_a_part_must_have_the_length_that_was_signed(artifacts: ArtifactStage) -> None:
    _, url = await one_part(artifacts)
    for wrong in (b"", CONTENT[:-1], CONTENT + b"x"):
        for content in (wrong, pieces(wrong)):
            answer = await artifacts.put(url, content)
            assert code(answer) == (422, "ARTIFACT_INVALID")
            assert answer.headers["connection"] == "close"
    key = urlsplit(url).path.split("/")[4]
    assert await artifacts.objects.parts(key) == {}


async def test_an_altered_address_is_refused(artifacts: ArtifactStage) -> None:
    _, url = await one_part(artifacts)
    read = await readable(artifacts)
    wrong = [
        altered(url, length="11"),
        altered(url, expires="9999999999"),
        altered(url, signature="0" * 64),
        url.replace("/parts/1?", "/parts/2?"),
        url.partition("?")[0],
        url.replace("signature=", "signature=%ff"),
    ]
    for address_ in wrong:
        assert code(await artifacts.put(address_, CONTENT)) == (403, "FORBIDDEN"), address_
    wrong = [
        altered(read, media_type="text/plain"),
        altered(read, file_name="b.txt"),
        altered(read, expires="9999999999"),
        read.partition("?")[0],
    ]
    for address_ in wrong:
        assert code(await artifacts.get(address_, "root")) == (403, "FORBIDDEN"), address_
    for address_ in (f"{read}&a=b", f"{read}&expires=1", url.replace("/parts/1", "")):
        assert code(await artifacts.get(address_, "root")) == (400, "ENVELOPE_INVALID"), address_


async def test_an_address_is_good_for_an_hour(artifacts: ArtifactStage) -> None:
    _, url = await one_part(artifacts)
    read = await readable(artifacts)
    artifacts.plane.later(minutes=59)
    assert (await artifacts.put(url, CONTENT)).status_code == 204
    assert (await artifacts.get(read, None)).status_code == 200
    artifacts.plane.later(minutes=1)
    for answer in (await artifacts.put(url, CONTENT), await artifacts.get(read, None)):
        assert code(answer) == (403, "FORBIDDEN")
        assert "expired" in answer.json()["detail"]


async def test_nothing_can_be_put_into_what_is_committed(artifacts: ArtifactStage) -> None:
    upload, url = await one_part(artifacts)
    await artifacts.put(url, CONTENT)
    await artifacts.complete(upload)
    assert code(await artifacts.put(url, b"TEN BYTES!")) == (410, "ARTIFACT_GONE")
    assert await artifacts.read(f"artifact://blobs/{digest_of(CONTENT)}") == CONTENT


async def test_a_file_is_offered_for_saving_and_never_shown_in_a_page(
    artifacts: ArtifactStage,
) -> None:
    answer = await artifacts.get(await readable(artifacts, path='sub/ä".html'), None)
    assert answer.content == CONTENT
    assert answer.headers["content-type"] == "text/html"
    assert answer.headers["content-length"] == "10"
    assert answer.headers["content-disposition"] == (
        "attachment; filename=\"__.html\"; filename*=UTF-8''%C3%A4%22.html"
    )
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["accept-ranges"] == "bytes"


async def test_a_range_is_read(artifacts: ArtifactStage) -> None:
    url = await readable(artifacts)
    answer = await artifacts.get(url, None, headers={"Range": "bytes=3-6"})
    assert (answer.status_code, answer.content) == (206, CONTENT[3:7])
    assert answer.headers["content-range"] == "bytes 3-6/10"
    assert answer.headers["content-length"] == "4"
    answer = await artifacts.get(url, None, headers={"Range": "bytes=10-"})
    assert code(answer) == (416, "RANGE_NOT_SATISFIABLE")
    assert answer.headers["content-range"] == "bytes */10"


@pytest.mark.parametrize(
    ("asked", "span"),
    [
        (None, Span(0, 10, is_whole=True)),
        (b"bytes=0-0", Span(0, 1)),
        (b"bytes=0-", Span(0, 10)),
        (b"Bytes = 4-", Span(4, 10)),
        (b"bytes=-3", Span(7, 10)),
        (b"bytes=-99", Span(0, 10)),
        (b"bytes=9-" + b"9" * 5000, Span(9, 10)),
        (b"bytes=5-4", Span(0, 10, is_whole=True)),
        (b"bytes=0-1,3-4", Span(0, 10, is_whole=True)),
        (b"bytes=-", Span(0, 10, is_whole=True)),
        (b"items=0-1", Span(0, 10, is_whole=True)),
        (b"bytes=a-b", Span(0, 10, is_whole=True)),
    ],
)
def test_one_range_counts_and_anything_else_asks_for_everything(
    asked: bytes | None, span: Span
) -> None:
    assert asked_span(asked, 10) == span


@pytest.mark.parametrize(("asked", "total"), [(b"bytes=-0", 10), (b"bytes=10-", 10), (b"-1", 0)])
def test_a_range_without_bytes_cannot_be_satisfied(asked: bytes, total: int) -> None:
    asked = asked if total else b"bytes=0-"
    with pytest.raises(HTTPException) as refused:
        asked_span(asked, total)
    assert refused.value.status_code == 416


async def test_an_object_that_was_deleted_is_not_found(artifacts: ArtifactStage) -> None:
    url = await readable(artifacts)
    await artifacts.objects.delete(urlsplit(url).path.split("/")[4])
    assert code(await artifacts.get(url, None)) == (404, "ARTIFACT_NOT_FOUND")


async def test_only_put_and_get_lead_to_objects(artifacts: ArtifactStage) -> None:
    _, url = await one_part(artifacts)
    assert code(await artifacts.post(url, "root")) == (405, "METHOD_NOT_ALLOWED")
    assert code(await artifacts.get(url, "root")) == (405, "METHOD_NOT_ALLOWED")
    strange = f"{BASE}/v1/artifacts/objects/a.b/parts/x"
    assert code(await artifacts.put(strange, b"")) == (404, "ARTIFACT_NOT_FOUND")


class TakesOneChunk:
    """In the place of the storage: it takes one chunk and waits."""

    def __init__(self) -> None:
        self.has_one = asyncio.Event()
        self.go_on = asyncio.Event()

    async def put_part(self, *arguments: Any) -> None:
        async for _ in arguments[-1]:
            self.has_one.set()
            await self.go_on.wait()


async def test_no_more_of_a_body_is_received_than_the_storage_takes(
    artifacts: ArtifactStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, url = await one_part(artifacts)
    storage, received, sent = TakesOneChunk(), 0, list[Message]()
    monkeypatch.setattr(artifacts.objects, "put_part", storage.put_part)

    async def receive() -> Message:
        nonlocal received
        received += 1
        return {"type": "http.request", "body": b"x", "more_body": received < 10}

    async def send(message: Message) -> None:
        sent.append(message)

    parts = urlsplit(url)
    scope = {
        "type": "http",
        "method": "PUT",
        "path": parts.path,
        "query_string": parts.query.encode(),
        "headers": [],
    }
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(artifacts.app(scope, receive, send))
        await storage.has_one.wait()
        assert received == 1
        storage.go_on.set()
    assert received == 10
    assert sent[0]["status"] == 204


class TestOverASocket:
    async def test_a_part_larger_than_any_document_is_put_and_read_whole(
        self, artifacts: ArtifactStage
    ) -> None:
        content = bytes(range(256)) * (3 * PIECE // 256) + b"end"
        assert len(content) > LIMITS.max_body_bytes
        async with served(artifacts.app) as port:
            upload, url = await one_part(artifacts, content)
            async with httpx.AsyncClient(base_url=address(port), timeout=DEADLINE) as client:
                put = await client.put(local(url), content=content)
                assert put.status_code == 204
                assert (await artifacts.complete(upload)).status_code == 200
                located = await artifacts.located(f"artifact://blobs/{digest_of(content)}")
                read = await client.get(local(located.json()["url"]))
        assert read.content == content

    async def test_a_body_that_stands_still_is_given_up(self, tmp_path: Path) -> None:
        hurried = replace(LIMITS, object_idle=timedelta(milliseconds=20))
        async with artifact_stage("memory", tmp_path, hurried) as stage:
            _, url = await one_part(stage)
            async with served(stage.app) as port, wire(port) as client:
                client.send(head(url, content_length="10") + b"five!")
                answer = await client.rest()
            assert b"408 Request Timeout" in answer
            assert await stage.objects.parts(urlsplit(url).path.split("/")[4]) == {}

    async def test_a_body_that_is_too_long_is_refused_before_it_was_all_read(
        self, artifacts: ArtifactStage
    ) -> None:
        _, url = await one_part(artifacts)
        async with served(artifacts.app) as port, wire(port) as client:
            client.send(head(url, transfer_encoding="chunked") + b"b\r\neleven byte\r\n")
            answer = await client.rest()
        assert b"422 " in answer.partition(b"\r\n")[0]
        assert b"ARTIFACT_INVALID" in answer

    async def test_a_client_that_leaves_leaves_nothing_behind(
        self, artifacts: ArtifactStage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _, url = await one_part(artifacts)
        ended = asyncio.Event()
        put_part = artifacts.objects.put_part

        async def watched(*arguments: Any) -> None:
            try:
                await put_part(*arguments)
            finally:
                ended.set()

        monkeypatch.setattr(artifacts.objects, "put_part", watched)
        async with served(artifacts.app) as port:
            async with wire(port) as client:
                await begun(client, url)
            async with asyncio.timeout(DEADLINE):
                await ended.wait()
        key = urlsplit(url).path.split("/")[4]
        assert await artifacts.objects.parts(key) == {}
        assert [file for file in artifacts.folder.rglob("*") if file.is_file()] == []


async def begun(client: Wire, url: str) -> None:
    """The server has taken the head, and waits for the body."""
    client.send(head(url, content_length="10", expect="100-continue"))
    await client.until(b"100 Continue\r\n\r\n")


def local(url: str) -> str:
    return url.removeprefix(BASE)


def head(url: str, **headers: str) -> bytes:
    lines = [f"PUT {local(url)} HTTP/1.1", "Host: api"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


async def test_no_signature_reaches_a_metric_or_a_log(
    artifacts: ArtifactStage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    metrics = PrometheusMetrics()
    transport = httpx.ASGITransport(MeasuredHttp(artifacts.app, metrics))
    _, url = await one_part(artifacts)
    read = await readable(artifacts)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        await client.put(url, content=CONTENT)
        await client.put(url, content=b"wrong")
        await client.get(read)
        await client.get(altered(read, file_name="x"))
    shown = metrics.render().decode()
    assert 'route="/v1/artifacts/objects/{key}/parts/{number}",status="204"' in shown
    assert 'route="/v1/artifacts/objects/{key}",status="403"' in shown
    ours = [record for record in caplog.records if record.name.startswith("lucius")]
    for signed in (url, read):
        signature = dict(parse_qsl(urlsplit(signed).query))["signature"]
        assert signature not in shown
        assert not [record for record in ours if signature in repr(vars(record))]
