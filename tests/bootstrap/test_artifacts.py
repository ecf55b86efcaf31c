"""Artifacts as settings make them: where they are kept, who is told, what is off."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from psycopg import AsyncConnection

from lucius_artifacts.errors import Busy, Unavailable
from lucius_artifacts.telemetry import RUNS, Telemetry
from lucius_bus.topology import SubscriptionSettings, Topology
from lucius_orchestrator.adapters.registry import YamlRegistry
from lucius_orchestrator.api.health import Check
from lucius_orchestrator.bootstrap import running
from lucius_orchestrator.bootstrap.artifacts import catalogue_file, why_off
from lucius_orchestrator.bootstrap.checks import diagnose
from lucius_orchestrator.bootstrap.collecting import Collections
from lucius_orchestrator.bootstrap.plane import ControlPlane, control_plane
from lucius_orchestrator.bootstrap.roles import ServeRole
from lucius_orchestrator.bootstrap.topology import topology_of
from lucius_orchestrator.settings import load_settings
from lucius_outbox.sqlite.store import SqliteStore
from tests.azurite import Azurite
from tests.bootstrap.planes import ADDRESS, OCR, client, plane
from tests.engine.plane import Recorder
from tests.runner.deadlines import DEADLINE

CONTENT = b"ten bytes!"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
URI = f"artifact://blobs/{DIGEST}"
TOPIC = "artifact-events"


async def upload(http: httpx.AsyncClient, storage: httpx.AsyncClient | None = None) -> Any:
    """All the way; parts are brought to where their addresses lead."""
    asked = {"tenant_id": "acme", "digest": DIGEST, "length": len(CONTENT)}
    begun = (await http.post("/v1/artifacts/uploads", json=asked)).json()
    signed = await http.post(begun["links"]["sign"], json={"parts": [1]})
    (part,) = signed.json()["parts"]
    put = await (storage or http).put(part["url"], content=CONTENT, headers=part["headers"])
    assert put.is_success, put.text
    completed = await http.post(begun["links"]["complete"])
    assert completed.status_code == 200, completed.text
    return completed.json()


async def locate(http: httpx.AsyncClient, uri: str = URI) -> httpx.Response:
    return await http.get("/v1/artifacts/content", params={"uri": uri, "tenant_id": "acme"})


async def checks(made: ControlPlane) -> dict[str, Check]:
    async with client(made) as http:
        found = (await http.get("/healthz/ready")).json()["checks"]
    return {check["name"]: Check(**check) for check in found}


@pytest.mark.parametrize("storage", ["memory", "sqlite"])
async def test_content_is_kept_as_long_as_the_ledger_keeps_jobs(
    tmp_path: Path, storage: str
) -> None:
    async with plane(tmp_path, LUCIUS_STORAGE_BACKEND=storage) as made, client(made) as http:
        assert (await upload(http))["uri"] == URI
        url = (await locate(http)).json()["url"]
        assert (await http.get(url)).content == CONTENT
        submitted = await http.post("/v1/orchestrate", json={**OCR, "input_ref": {"uri": URI}})
        assert submitted.status_code == 202
    async with plane(tmp_path, LUCIUS_STORAGE_BACKEND=storage) as made, client(made) as http:
        if storage == "sqlite":
            assert (await http.get(url)).content == CONTENT, "the key is the same, and the files"
        else:
            assert (await locate(http)).status_code == 404
    left = [file for file in (tmp_path / "data").rglob("artifacts*/**/*") if file.is_file()]
    assert bool(left) is (storage == "sqlite")


async def test_content_is_kept_on_postgresql_with_its_events(
    tmp_path: Path, postgres_uri: str
) -> None:
    async with await AsyncConnection.connect(postgres_uri, autocommit=True) as connection:
        await connection.execute("CREATE SCHEMA bootstrap_artifacts")
    url = f"{postgres_uri}&options={quote('-c search_path=bootstrap_artifacts')}"
    async with await AsyncConnection.connect(url, autocommit=True) as connection:
        variables = {"LUCIUS_STORAGE_BACKEND": "postgres", "LUCIUS_DATABASE_URL": url}
        async with plane(tmp_path, **variables) as made, client(made) as http:
            await upload(http)
            assert (await locate(http)).status_code == 200
            await until_delivered(connection)


async def until_delivered(connection: AsyncConnection[Any]) -> None:
    statement = "SELECT status FROM lucius_outbox_messages WHERE namespace = 'lucius.artifacts'"
    async with asyncio.timeout(DEADLINE):
        while True:
            rows = await (await connection.execute(statement)).fetchall()
            if rows and {status for (status,) in rows} == {"delivered"}:
                return
            await asyncio.sleep(0.01)


async def test_bytes_go_to_azure_and_not_through_the_api(
    tmp_path: Path, azure_storage: Azurite
) -> None:
    variables = {
        "LUCIUS_ARTIFACTS_STORE": "azure_blob",
        "LUCIUS_ARTIFACTS_CONNECTION": azure_storage.connection,
        "LUCIUS_ARTIFACTS_CONTAINER": "bootstrap-artifacts",
    }
    async with (
        plane(tmp_path, **variables) as made,
        client(made) as http,
        httpx.AsyncClient(timeout=DEADLINE) as storage,
    ):
        await upload(http, storage)
        url = (await locate(http)).json()["url"]
        assert (await storage.get(url)).content == CONTENT
        assert not (tmp_path / "data" / "artifacts").exists()
        here = await http.get("/v1/artifacts/objects/ob_1")
        assert (here.status_code, here.json()["code"]) == (404, "ARTIFACT_NOT_FOUND")
        assert (await checks(made))["artifact store"].ok


@pytest.mark.parametrize(
    ("variables", "base"),
    [
        ({}, ADDRESS),
        ({"LUCIUS_CALLBACK_BASE_URL": "http://inside:8080"}, "http://inside:8080"),
        (
            {
                "LUCIUS_CALLBACK_BASE_URL": "http://inside:8080",
                "LUCIUS_ARTIFACTS_BASE_URL": "https://outside.example/api",
            },
            "https://outside.example/api",
        ),
    ],
)
async def test_addresses_lead_to_where_clients_reach_the_api(
    tmp_path: Path, variables: dict[str, str], base: str
) -> None:
    async with plane(tmp_path, **variables) as made, client(made) as http:
        asked = {"tenant_id": "acme", "digest": DIGEST, "length": 10}
        begun = (await http.post("/v1/artifacts/uploads", json=asked)).json()
        signed = await http.post(begun["links"]["sign"], json={"parts": [1]})
        assert signed.json()["parts"][0]["url"].startswith(f"{base}/v1/artifacts/objects/ob_")


async def test_what_settings_allow_is_what_an_upload_may_be(tmp_path: Path) -> None:
    variables = {"LUCIUS_ARTIFACTS_MAX_BYTES": "9", "LUCIUS_ARTIFACTS_SESSION_HOURS": "2"}
    async with plane(tmp_path, **variables) as made, client(made) as http:
        asked = {"tenant_id": "acme", "digest": DIGEST, "length": 10}
        answer = await http.post("/v1/artifacts/uploads", json=asked)
        assert answer.json()["code"] == "ARTIFACT_INVALID"
        begun = (await http.post("/v1/artifacts/uploads", json=asked | {"length": 9})).json()
        began, ends = (datetime.fromisoformat(begun[at]) for at in ("created_at", "expires_at"))
        assert ends - began == timedelta(hours=2)


async def test_where_they_are_off_it_is_said_what_to_set(tmp_path: Path) -> None:
    async with plane(tmp_path, LUCIUS_ARTIFACTS_STORE="off") as made, client(made) as http:
        answer = await http.get("/v1/artifacts?tenant_id=acme")
        assert (answer.status_code, answer.json()["code"]) == (503, "UNAVAILABLE")
        assert "LUCIUS_ARTIFACTS_STORE" in answer.json()["detail"]
        assert "artifact store" not in await checks(made)
    tables = {
        "LUCIUS_STORAGE_BACKEND": "azure_tables",
        "LUCIUS_TABLE_CONNECTION": "AccountName=a;AccountKey=YSBrZXk=",
    }
    assert "LUCIUS_ARTIFACTS_CATALOGUE" in why_off(load_settings(tables))


async def test_a_process_that_neither_serves_nor_keeps_house_opens_none(tmp_path: Path) -> None:
    """It would only hold connections."""
    settings = load_settings(
        {
            "LUCIUS_DATA_DIR": str(tmp_path),
            "LUCIUS_SERVICEBUS_CONNECTION": "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=a;"
            "SharedAccessKey=b;UseDevelopmentEmulator=true;",
        }
    )
    async with control_plane(settings, ADDRESS, ServeRole.REPLIES):
        assert not catalogue_file(settings).exists()


async def test_storage_that_is_away_is_told_and_jobs_go_on(tmp_path: Path) -> None:
    async with plane(tmp_path) as made, client(made) as http:
        await upload(http)
        with out_of_the_way(tmp_path / "data" / "artifacts"):
            found = (await checks(made))["artifact store"]
            assert found.ok
            assert found.detail.startswith("away, so that only what needs no artifacts works")
            assert (await http.get("/healthz/ready")).status_code == 200
            assert (await http.post("/v1/orchestrate", json=OCR)).status_code == 202


@contextmanager
def out_of_the_way(folder: Path) -> Iterator[None]:
    """A file stands where the folder was."""
    aside = folder.rename(folder.with_name("aside"))
    folder.write_text("in the way")
    try:
        yield
    finally:
        folder.unlink()
        aside.rename(folder)


async def test_a_doctor_looks_at_the_catalogue_and_the_store(tmp_path: Path) -> None:
    settings = load_settings({"LUCIUS_DATA_DIR": str(tmp_path / "data"), "LUCIUS_BUS_PORT": "0"})
    before = {check.name: check for check in await diagnose(settings)}
    assert "none yet" in before["artifact catalogue"].detail
    assert "none yet" in before["artifact store"].detail
    async with plane(tmp_path) as made, client(made) as http:
        await upload(http)
    after = {check.name: check for check in await diagnose(settings)}
    assert "answers" in after["artifact catalogue"].detail
    assert "can be written" in after["artifact store"].detail
    catalogue_file(settings).write_bytes(b"no database" * 100)
    broken = {check.name: check for check in await diagnose(settings)}
    assert not broken["artifact catalogue"].ok


async def test_events_go_to_the_topic_that_is_set(tmp_path: Path) -> None:
    async with plane(tmp_path, LUCIUS_ARTIFACTS_TOPIC=TOPIC) as made, client(made) as http:
        assert made.bus is not None
        await made.bus.topology.apply(Topology({TOPIC: (SubscriptionSettings("mine"),)}))
        uploaded = await upload(http)
        bus = made.bus.bus
        (delivery,) = await bus.receive(TOPIC, "mine", 1, timedelta(seconds=DEADLINE))
        await bus.complete(delivery)
    body = json.loads(delivery.message.body)
    assert body["type"] == "upload.committed"
    assert (body["upload_id"], body["tenant_id"]) == (uploaded["upload_id"], "acme")
    assert delivery.message.message_id == body["event_id"]
    assert delivery.message.properties == {"type": "upload.committed", "tenant_id": "acme"}
    assert "challenge" not in body


async def test_events_that_nobody_wants_do_not_pile_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with plane(tmp_path) as made, client(made) as http:
        uploaded = await upload(http)
        settings = load_settings({"LUCIUS_DATA_DIR": str(tmp_path / "data")})
        async with (
            SqliteStore(catalogue_file(settings), "lucius.artifacts") as store,
            asyncio.timeout(DEADLINE),
        ):
            while not (await store.stats(delivered=True))[0].delivered:
                await asyncio.sleep(0.01)
    (record,) = [each for each in caplog.records if each.msg == "artifact.upload.committed"]
    assert vars(record)["upload_id"] == uploaded["upload_id"]
    assert vars(record)["digest"] == DIGEST[:12]


def test_the_topic_of_events_is_part_of_the_topology() -> None:
    snapshot = YamlRegistry(None).load()
    assert TOPIC not in topology_of(snapshot).topics
    assert topology_of(snapshot, TOPIC).topics[TOPIC] == ()


class TestCollections:
    async def test_a_plane_collects_and_counts(self, tmp_path: Path) -> None:
        async with plane(tmp_path) as made, client(made) as http, asyncio.timeout(DEADLINE):
            while (
                'lucius_artifact_gc_runs_total{outcome="done"} 1.0'
                not in (await http.get("/metrics")).text
            ):
                await asyncio.sleep(0.01)

    async def test_none_run_where_they_are_switched_off(self, tmp_path: Path) -> None:
        async with plane(tmp_path, LUCIUS_ARTIFACTS_GC_SECONDS="0") as made:
            assert not [part for part in made.parts if isinstance(part, Collections)]

    async def test_one_that_fails_or_finds_another_at_it_is_survived(self) -> None:
        told = Recorder()
        collector = ScriptedCollector([Busy("another"), Unavailable("away"), ValueError("odd")])
        part = Collections(collector, Telemetry(told), timedelta(0))  # type: ignore[arg-type]
        async with asyncio.timeout(DEADLINE), running([part]):
            await collector.is_through.wait()
        assert told.count(RUNS, outcome="busy") == 1
        assert told.count(RUNS, outcome="failed") == 2

    async def test_a_stop_does_not_wait_for_one_that_is_under_way(self) -> None:
        collector = ScriptedCollector([])
        part = Collections(collector, Telemetry(), timedelta(hours=1))  # type: ignore[arg-type]
        async with asyncio.timeout(DEADLINE), running([part]):
            await collector.is_through.wait()
        assert collector.was_cancelled


class ScriptedCollector:
    """Fails as it is told to, then collects without end."""

    def __init__(self, errors: list[Exception]) -> None:
        self._errors = iter(errors)
        self.is_through = asyncio.Event()
        self.was_cancelled = False

    async def collect(self) -> None:
        for error in self._errors:
            raise error
        self.is_through.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
