"""The parts together: what a client, a service and an operator see of one process."""

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest

import lucius_orchestrator
from lucius_contract.messages import Directive
from lucius_contract.routing import lane_of
from lucius_orchestrator.adapters.bus.embedded import EmbeddedBus
from lucius_orchestrator.adapters.ledger.sqlite import SqliteLedger
from lucius_orchestrator.bootstrap import running
from lucius_orchestrator.bootstrap.parts import After
from lucius_orchestrator.bootstrap.plane import ControlPlane, control_plane
from lucius_orchestrator.bootstrap.roles import ServeRole
from lucius_orchestrator.engine.traffic_reports import TrafficReporter
from lucius_orchestrator.settings import load_settings
from tests.bootstrap.planes import ADDRESS, OCR, client, next_directive, plane, reply
from tests.ledger.backends import Clock
from tests.ledger.jobs import Story, World
from tests.runner.deadlines import DEADLINE

SHIPPED_FILES = Path(lucius_orchestrator.__file__).parent / "shipped"
NO_PORT = {"LUCIUS_BUS_PORT": "0"}


async def callback(made: ControlPlane, directive: Directive, kind: str, **said: object) -> int:
    assert directive.callback_urls is not None
    url = getattr(directive.callback_urls, kind)
    bearer = {"Authorization": f"Bearer {directive.callback_token}"}
    async with client(made) as http:
        body = reply(directive, kind.upper(), **said)
        return (await http.post(url, json=body, headers=bearer)).status_code


@pytest.mark.parametrize("storage", ["memory", "sqlite"])
async def test_a_job_runs_from_request_to_answer_over_http(tmp_path: Path, storage: str) -> None:
    async with plane(tmp_path, LUCIUS_STORAGE_BACKEND=storage) as made:
        async with client(made) as http:
            submitted = await http.post("/v1/orchestrate", json=OCR)
            assert submitted.status_code == 202
            directive = await next_directive(made)
            assert await callback(made, directive, "ack", status="ACKED") == 200
            said = {"status": "SUCCEEDED", "output_ref": {"uri": "az://outbox/a.txt"}}
            assert await callback(made, directive, "result", **said) == 200
            job = (await http.get(f"/v1/jobs/{directive.job_id}")).json()
        assert (job["state"], job["final_output"]) == ("SUCCEEDED", "az://outbox/a.txt")


async def test_a_token_is_good_for_its_own_attempt_only(tmp_path: Path) -> None:
    async with plane(tmp_path, LUCIUS_DISPATCH_WINDOW_MIN="2") as made:
        async with client(made) as http:
            await http.post("/v1/orchestrate", json=OCR)
            await http.post("/v1/orchestrate", json={**OCR, "payload": {"dpi": 200}})
        first, second = await next_directive(made), await next_directive(made)
        stolen = first.model_copy(update={"callback_token": second.callback_token})
        assert await callback(made, stolen, "ack", status="ACKED") == 403
        made_up = first.model_copy(update={"callback_token": "v1.x.y"})
        assert await callback(made, made_up, "ack", status="ACKED") == 401


async def test_what_was_accepted_is_there_after_a_restart(tmp_path: Path) -> None:
    async with plane(tmp_path) as made, client(made) as http:
        job_id = (await http.post("/v1/orchestrate", json=OCR)).json()["jobId"]
    async with plane(tmp_path) as made, client(made) as http:
        again = (await http.post("/v1/orchestrate", json=OCR)).json()
    assert (again["jobId"], again["duplicate"]) == (job_id, True)


async def test_a_token_is_known_again_after_a_restart(tmp_path: Path) -> None:
    async with plane(tmp_path) as made, client(made) as http:
        await http.post("/v1/orchestrate", json=OCR)
        directive = await next_directive(made)
    async with plane(tmp_path) as made:
        assert await callback(made, directive, "ack", status="ACKED") == 200


@asynccontextmanager
async def two_days_ago(folder: Path) -> AsyncIterator[tuple[SqliteLedger, Story]]:
    """A ledger in which a job succeeded then, open beside the control plane."""
    (folder / "data").mkdir()
    clock = Clock()
    clock.now = datetime.now(UTC) - timedelta(days=2)
    ledger = await SqliteLedger.open(folder / "data" / "ledger.db", clock=clock)
    world = World(ledger, clock)
    job = await world.create()
    await job.sent(await world.claim_one())
    yield ledger, await job.succeeds()
    await ledger.close()


async def test_a_job_is_removed_after_the_days_that_are_set(tmp_path: Path) -> None:
    async with (
        two_days_ago(tmp_path) as (_, job),
        plane(tmp_path, LUCIUS_RETENTION_DAYS="1") as made,
        client(made) as http,
        asyncio.timeout(DEADLINE),
    ):
        while (await http.get(f"/v1/jobs/{job.job_id}")).status_code != 404:
            await asyncio.sleep(0.02)


async def test_a_directive_that_went_out_is_not_kept_as_long_as_its_job(tmp_path: Path) -> None:
    async with two_days_ago(tmp_path) as (ledger, job):
        async with plane(tmp_path, LUCIUS_RETENTION_DAYS="30"), asyncio.timeout(DEADLINE):
            while await ledger.directive(job.job_id, "step_01", 1) is not None:
                await asyncio.sleep(0.02)
        assert await ledger.load(job.job_id) == job.stored


async def test_directives_say_where_replies_go(tmp_path: Path) -> None:
    public = "https://lucius.example"
    async with plane(tmp_path, LUCIUS_CALLBACK_BASE_URL=public) as made, client(made) as http:
        await http.post("/v1/orchestrate", json=OCR)
        directive = await next_directive(made)
    assert directive.callback_urls is not None
    assert directive.callback_urls.ack == f"{public}/v1/callbacks/ack"
    async with plane(tmp_path / "bus", LUCIUS_REPLY_VIA="bus") as made, client(made) as http:
        await http.post("/v1/orchestrate", json=OCR)
        directive = await next_directive(made)
    assert (directive.callback_urls, directive.callback_token) == (None, None)


@pytest.mark.parametrize(
    ("variable", "code"),
    [
        ("LUCIUS_MAX_INFLIGHT_PER_TENANT", "TENANT_SATURATED"),
        ("LUCIUS_MAX_INFLIGHT", "GLOBAL_SATURATED"),
        ("LUCIUS_MAX_INFLIGHT_DEFAULT", "LANE_SATURATED"),
    ],
)
async def test_limits_come_from_the_environment(tmp_path: Path, variable: str, code: str) -> None:
    async with plane(tmp_path, **{variable: "1"}) as made, client(made) as http:
        await http.post("/v1/orchestrate", json=OCR)
        refused = await http.post("/v1/orchestrate", json={**OCR, "payload": {"dpi": 200}})
        assert (refused.status_code, refused.json()["code"]) == (429, code)
        assert int(refused.headers["Retry-After"]) >= 1


async def told(made: ControlPlane) -> dict[str, Any]:
    """How the service ocr stands."""
    async with client(made) as http:
        items = (await http.get("/v1/services")).json()["items"]
    found: dict[str, Any] = next(item for item in items if item["service"] == "ocr")
    return found


async def test_only_as_much_is_published_as_the_service_is_about_to_pick_up(
    tmp_path: Path,
) -> None:
    limits = {"LUCIUS_DISPATCH_WINDOW_MIN": "2", "LUCIUS_MAX_PENDING_PER_LANE": "1"}
    async with plane(tmp_path, LUCIUS_STORAGE_BACKEND="memory", **limits) as made:
        async with client(made) as http, asyncio.timeout(DEADLINE):
            for dpi in (100, 200, 300):
                await http.post("/v1/orchestrate", json={**OCR, "payload": {"dpi": dpi}})
            directives = [await next_directive(made) for _ in range(2)]
            while (await told(made))["waiting"] != 1:
                await asyncio.sleep(0.02)
            assert (await told(made))["window"] == 2
            refused = await http.post("/v1/orchestrate", json={**OCR, "payload": {"dpi": 400}})
            assert (refused.status_code, refused.json()["code"]) == (429, "LANE_SATURATED")
        assert await callback(made, directives[0], "ack", status="ACKED") == 200
        await next_directive(made)
        found = await told(made)
        assert (found["presence"], found["unacknowledged"], found["working"]) == ("PRESENT", 2, 1)


async def test_the_weight_of_a_tenant_is_its_part_of_the_turns(tmp_path: Path) -> None:
    neighbour = next(name for name in map(str, count()) if lane_of(name) == lane_of("acme"))
    shutil.copytree(SHIPPED_FILES, tmp_path / "config")
    (tmp_path / "config" / "tenants.yaml").write_text("acme: {weight: 3}\n")
    settings = {
        "LUCIUS_STORAGE_BACKEND": "memory",
        "LUCIUS_PROTOCOLS_DIR": str(tmp_path / "config"),
        "LUCIUS_DISPATCH_WINDOW_MAX": "1",
    }
    served = Counter[str]()
    async with plane(tmp_path, **settings) as made:
        async with client(made) as http:
            for tenant, number in product((neighbour, "acme"), range(8)):
                key = {"tenant_id": tenant, "idempotency_key": str(number)}
                await http.post("/v1/orchestrate", json=OCR | key)
        for _ in range(9):
            directive = await next_directive(made)
            served[directive.tenant_id] += 1
            assert await callback(made, directive, "ack", status="ACKED") == 200
    assert served == {"acme": 6, neighbour: 3}


@pytest.mark.parametrize("role", [ServeRole.ALL, ServeRole.API])
async def test_every_role_reports_on_services_until_its_dispatcher_has_stopped(
    tmp_path: Path, role: ServeRole
) -> None:
    settings = load_settings(
        {"LUCIUS_STORAGE_BACKEND": "memory", "LUCIUS_DATA_DIR": str(tmp_path), **NO_PORT}
    )
    async with control_plane(settings, ADDRESS, role) as made:
        kinds = [type(part) for part in made.parts]
    assert kinds.count(TrafficReporter) == 1
    dispatches = role.runs_dispatcher(settings)
    assert (After in kinds) == dispatches
    if dispatches:
        assert kinds.index(After) < kinds.index(TrafficReporter)


async def test_parts_begin_in_the_opposite_order_of_their_stop() -> None:
    happened: list[str] = []

    class Noted:
        def __init__(self, name: str) -> None:
            self._name = name

        async def run(self) -> None:
            happened.append(f"{self._name} begins")

        async def stop(self) -> None:
            happened.append(f"{self._name} stops")

    async with running([Noted("dispatcher"), Noted("reporter")]):
        pass
    assert happened == [
        "reporter begins",
        "dispatcher begins",
        "dispatcher stops",
        "reporter stops",
    ]


@pytest.mark.parametrize("storage", ["memory", "sqlite"])
async def test_addresses_for_webhooks_are_taken_on_every_ledger(
    tmp_path: Path, storage: str
) -> None:
    told = {"LUCIUS_WEBHOOK_HOSTS": "client.example", "LUCIUS_WEBHOOK_MASTER_KEYS": "k" * 32}
    request = {**OCR, "callback_urls": ["https://client.example/jobs"]}
    told["LUCIUS_STORAGE_BACKEND"] = storage
    async with plane(tmp_path, **told) as made, client(made) as http:
        assert (await http.post("/v1/orchestrate", json=request)).status_code == 202


async def test_ready_names_what_is_away(tmp_path: Path) -> None:
    async with plane(tmp_path) as made, client(made) as http:
        assert (await http.get("/healthz/ready")).status_code == 200
        assert made.bus is not None
        assert isinstance(made.bus.bus, EmbeddedBus)
        made.bus.bus.go_away()
        ready = await http.get("/healthz/ready")
        assert ready.status_code == 503
        assert "the bus is away" in ready.text
        assert (await http.get("/healthz/live")).status_code == 200


async def test_metrics_count_what_happened(tmp_path: Path) -> None:
    async with plane(tmp_path) as made, client(made) as http:
        await http.post("/v1/orchestrate", json=OCR)
        text = (await http.get("/metrics")).text
    assert "lucius_jobs_submitted_total 1.0" in text
    assert 'route="/v1/orchestrate",status="202"' in text


async def test_with_auth_on_a_request_without_a_key_is_refused(tmp_path: Path) -> None:
    async with plane(tmp_path, LUCIUS_AUTH="on") as made, client(made) as http:
        refused = await http.post("/v1/orchestrate", content=json.dumps(OCR))
        assert (refused.status_code, refused.json()["code"]) == (401, "UNAUTHENTICATED")
