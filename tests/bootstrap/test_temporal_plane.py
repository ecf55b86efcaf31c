"""The parts together where Temporal drives the jobs, in one process beside a real server."""

import asyncio
import json
import uuid
from pathlib import Path

import httpx
import pytest

from lucius_bus.port import BusMessage
from lucius_contract.messages import Directive
from lucius_contract.routing import lane_of, reply_topic
from lucius_orchestrator.bootstrap.bus import keyless_connection
from lucius_orchestrator.bootstrap.checks import diagnose
from lucius_orchestrator.bootstrap.plane import ControlPlane, control_plane
from lucius_orchestrator.bootstrap.roles import ServeRole
from lucius_orchestrator.settings import Settings, load_settings
from tests.api.serving import address, served
from tests.bootstrap.planes import ADDRESS, OCR, client, next_directive, plane, reply
from tests.runner.deadlines import DEADLINE, PROCESS_DEADLINE

KEY = "k" * 32
NO_BUS = keyless_connection("127.0.0.1", 1)


def driven_by(server: str, **variables: str) -> dict[str, str]:
    return {
        "LUCIUS_TEMPORAL_ENABLED": "on",
        "LUCIUS_TEMPORAL_ADDRESS": server,
        "LUCIUS_TEMPORAL_TASK_QUEUE": f"q-{uuid.uuid4().hex}",
        "LUCIUS_INVOKER_KEYS": KEY,
        **variables,
    }


async def answer(made: ControlPlane, directive: Directive, kind: str, **said: str) -> None:
    assert made.bus is not None
    assert directive.callback_urls is None
    body = json.dumps(reply(directive, kind, **said)).encode()
    topic = reply_topic(lane_of(directive.tenant_id))
    assert not await made.bus.bus.publish(topic, [BusMessage(uuid.uuid4().hex, body)])


async def until_ended(http: httpx.AsyncClient, job_id: str) -> dict[str, object]:
    async with http.stream("GET", f"/v1/jobs/{job_id}/stream", timeout=PROCESS_DEADLINE) as stream:
        async for _ in stream.aiter_lines():
            pass
    found: dict[str, object] = (await http.get(f"/v1/jobs/{job_id}")).json()
    return found


@pytest.mark.parametrize("storage", ["memory", "sqlite"])
async def test_a_job_runs_from_request_to_answer(
    tmp_path: Path, temporal: str, storage: str
) -> None:
    variables = driven_by(temporal, LUCIUS_STORAGE_BACKEND=storage)
    async with plane(tmp_path, **variables) as made, client(made) as http:
        submitted = await http.post("/v1/orchestrate", json=OCR)
        assert submitted.status_code == 202
        assert submitted.json()["state"] == "QUEUED"
        directive = await next_directive(made)
        await answer(made, directive, "ACK", status="ACKED")
        await answer(made, directive, "RESULT", status="SUCCEEDED")
        assert (await until_ended(http, directive.job_id))["state"] == "SUCCEEDED"


async def test_commands_reach_jobs_that_temporal_drives(tmp_path: Path, temporal: str) -> None:
    async with plane(tmp_path, **driven_by(temporal)) as made, client(made) as http:
        job_id = (await http.post("/v1/orchestrate", json=OCR)).json()["jobId"]
        paused = (await http.post(f"/v1/jobs/{job_id}:pause")).json()["state"]
        assert paused in ("PAUSING", "PAUSED")
        assert (await http.post(f"/v1/jobs/{job_id}:cancel")).status_code == 200
        again = await http.post(f"/v1/jobs/{job_id}:pause")
        assert (again.status_code, again.json()["code"]) == (409, "STATE_CONFLICT")


async def test_the_internal_api_has_a_credential_of_its_own(tmp_path: Path) -> None:
    async with plane(tmp_path, **driven_by("127.0.0.1:1")) as made, client(made) as http:
        path, body = "/v1/internal/jobs/none:cancel", {"by": None}
        assert (await http.post(path, json=body)).status_code == 401
        bearer = {"Authorization": f"Bearer {KEY}"}
        known = await http.post(path, json=body, headers=bearer)
        assert (known.status_code, known.json()["code"]) == (404, "JOB_NOT_FOUND")


async def test_without_a_server_jobs_are_taken_and_ready_says_that_they_wait(
    tmp_path: Path,
) -> None:
    async with plane(tmp_path, **driven_by("127.0.0.1:1")) as made, client(made) as http:
        job_id = (await http.post("/v1/orchestrate", json=OCR)).json()["jobId"]
        assert (await http.get(f"/v1/jobs/{job_id}")).json()["state"] == "QUEUED"
        ready = await http.get("/healthz/ready")
        assert ready.status_code == 200
        (said,) = [c["detail"] for c in ready.json()["checks"] if c["name"] == "temporal"]
        assert said.startswith("away, so that the jobs that it drives wait: ")


async def test_a_server_without_the_namespace_ends_nothing(
    tmp_path: Path, temporal: str, caplog: pytest.LogCaptureFixture
) -> None:
    variables = driven_by(temporal, LUCIUS_TEMPORAL_NAMESPACE="nobodys")
    async with plane(tmp_path, **variables) as made, client(made) as http:
        async with asyncio.timeout(DEADLINE):
            while not any("nobodys" in said for said in away(caplog)):
                await asyncio.sleep(0.02)
        assert (await http.post("/v1/orchestrate", json=OCR)).status_code == 202


def away(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [str(vars(r).get("error")) for r in caplog.records if r.msg == "temporal.away"]


OF_ARTIFACTS = {"Collections", "Dispatcher"}
"""Whoever keeps house collects, and delivers events."""


@pytest.mark.parametrize(
    ("role", "variables", "kinds"),
    [
        (ServeRole.API, {"LUCIUS_INVOKER_URL": "http://invoker"}, {"WorkflowStarts"}),
        (ServeRole.RECONCILER, {}, {"After", "SweeperRunner", "TopologyKeeper", *OF_ARTIFACTS}),
        (ServeRole.REPLIES, {}, {"ReplyConsumer", "TopologyKeeper"}),
        (
            ServeRole.INVOKER,
            {},
            {
                "ReplyConsumer",
                "SweeperRunner",
                "After",
                "WorkflowSignals",
                "TopologyKeeper",
                *OF_ARTIFACTS,
            },
        ),
        (
            ServeRole.ALL,
            {},
            {
                "TemporalWorker",
                "ReplyConsumer",
                "SweeperRunner",
                "After",
                "WorkflowStarts",
                "WorkflowSignals",
                "TopologyKeeper",
                *OF_ARTIFACTS,
            },
        ),
    ],
)
async def test_a_role_has_the_parts_that_drive_its_jobs(
    tmp_path: Path, role: ServeRole, variables: dict[str, str], kinds: set[str]
) -> None:
    shared = {"LUCIUS_DATA_DIR": str(tmp_path), "LUCIUS_SERVICEBUS_CONNECTION": NO_BUS}
    settings = load_settings(driven_by("127.0.0.1:1", **shared, **variables))
    async with control_plane(settings, ADDRESS, role) as made:
        found = {type(part).__name__ for part in made.parts}
    assert found - {"GaugeRefresher", "RegistryWatch", "TrafficReporter"} == kinds


async def said_of(name: str, settings: Settings) -> tuple[bool, str]:
    (check,) = [check for check in await diagnose(settings) if check.name == name]
    return check.ok, check.detail


async def test_a_diagnosis_tells_of_temporal(tmp_path: Path, temporal: str) -> None:
    def given(**variables: str) -> Settings:
        return load_settings({"LUCIUS_DATA_DIR": str(tmp_path)} | driven_by(temporal, **variables))

    assert await said_of("temporal", given()) == (
        True,
        f"{temporal} answers, and has the namespace default; it has the search attributes",
    )
    ok, detail = await said_of("temporal", given(LUCIUS_TEMPORAL_NAMESPACE="nobodys"))
    assert (ok, "nobodys" in detail, "mend LUCIUS_TEMPORAL_ADDRESS" in detail) == (
        False,
        True,
        True,
    )
    ok, detail = await said_of("temporal", given(LUCIUS_TEMPORAL_ADDRESS="127.0.0.1:1"))
    assert (ok, "start it, or mend LUCIUS_TEMPORAL_ADDRESS" in detail) == (False, True)
    names = {check.name for check in await diagnose(load_settings({}))}
    assert not names & {"temporal", "invoker"}


async def test_a_diagnosis_tells_of_the_invoker(tmp_path: Path) -> None:
    away = driven_by("127.0.0.1:1")
    async with plane(tmp_path, **away) as made, served(made.app) as port:

        def given(**variables: str) -> Settings:
            there = {"LUCIUS_INVOKER_URL": address(port), "LUCIUS_DATA_DIR": str(tmp_path / "new")}
            return load_settings(away | there | variables)

        answers = f"{address(port)} answers, to this credential"
        assert await said_of("invoker", given()) == (True, answers)
        ok, detail = await said_of("invoker", given(LUCIUS_INVOKER_KEYS="x" * 32))
        assert (ok, "set LUCIUS_INVOKER_KEYS" in detail) == (False, True)
        ok, detail = await said_of("invoker", given(LUCIUS_INVOKER_KEYS=""))
        assert (ok, "there is no credential" in detail) == (False, True)
        ok, detail = await said_of("invoker", given(LUCIUS_INVOKER_URL="http://127.0.0.1:1"))
        assert (ok, "lucius serve invoker" in detail) == (False, True)
