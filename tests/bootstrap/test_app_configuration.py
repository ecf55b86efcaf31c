"""A control plane whose protocols come from App Configuration, seen from its API."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from lucius_orchestrator.adapters.registry import RegistryError
from lucius_orchestrator.bootstrap import running
from lucius_orchestrator.bootstrap.plane import ControlPlane, control_plane
from lucius_orchestrator.bootstrap.protocol_source import open_registry
from lucius_orchestrator.settings import Settings, load_settings
from tests.bootstrap.planes import ADDRESS, OCR, client, next_directive
from tests.bootstrap.test_bus import Heard
from tests.registry.app_configuration_double import (
    AppConfiguration,
    Fault,
    running_app_configuration,
)
from tests.runner.deadlines import DEADLINE

STAMP = """\
protocol_id: stamp
version: "1"
request_type: STAMP
steps:
  - {step_type: STAMP, service: stamper, payload_schema: {type: object}}
"""
SEAL = STAMP.replace("stamp", "seal").replace("STAMP", "SEAL")


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[AppConfiguration]:
    monkeypatch.setattr("lucius_orchestrator.bootstrap.protocol_source.START_PAUSES", ())
    with running_app_configuration() as double:
        put(double, stamp=STAMP)
        yield double


def put(double: AppConfiguration, **protocols: str) -> None:
    for name, text in protocols.items():
        double.put(f"lucius:protocols:{name}", text)
    double.touch()


def settings_for(double: AppConfiguration, folder: Path, **variables: str) -> Settings:
    given = {
        "LUCIUS_DATA_DIR": str(folder / "data"),
        "LUCIUS_BUS_PORT": "0",
        "LUCIUS_APP_CONFIGURATION_CONNECTION": double.connection,
        **variables,
    }
    settings = load_settings(given)
    return replace(settings, app_configuration_refresh=timedelta(milliseconds=2))


@asynccontextmanager
async def plane(
    double: AppConfiguration, folder: Path, **variables: str
) -> AsyncIterator[tuple[ControlPlane, httpx.AsyncClient]]:
    settings = settings_for(double, folder, **variables)
    async with (
        asyncio.timeout(DEADLINE),
        control_plane(settings, ADDRESS) as made,
        running(made.parts),
        client(made) as http,
    ):
        yield made, http


def request(request_type: str) -> dict[str, Any]:
    return {**OCR, "request_type": request_type, "payload": {}}


async def protocols_check(http: httpx.AsyncClient) -> dict[str, Any]:
    answer = await http.get("/healthz/ready")
    assert answer.status_code == 200
    (check,) = [check for check in answer.json()["checks"] if check["name"] == "protocols"]
    return dict(check)


async def wait_until_ready_says(http: httpx.AsyncClient, text: str) -> dict[str, Any]:
    """The caller has a deadline."""
    while text not in (check := await protocols_check(http))["detail"]:
        await asyncio.sleep(0)
    return check


async def test_a_job_runs_under_a_protocol_from_there(
    double: AppConfiguration, tmp_path: Path
) -> None:
    async with plane(double, tmp_path) as (made, http):
        assert [p["protocol_id"] for p in (await http.get("/v1/protocols")).json()["items"]] == [
            "stamp"
        ]
        assert (await http.post("/v1/orchestrate", json=request("STAMP"))).status_code == 202
        directive = await next_directive(made, "stamper")
        assert (directive.protocol_id, directive.step_type) == ("stamp", "STAMP")
        assert (await http.post("/v1/orchestrate", json=OCR)).status_code == 422
        assert (await protocols_check(http))["detail"] == "1 in force"


async def test_a_tenant_is_limited_by_what_stands_there(
    double: AppConfiguration, tmp_path: Path
) -> None:
    double.put("lucius:tenants:acme", '{"max_inflight": 0}', None, "application/json")
    async with plane(double, tmp_path) as (_, http):
        refused = await http.post("/v1/orchestrate", json=request("STAMP"))
        assert (refused.status_code, refused.json()["code"]) == (429, "TENANT_SATURATED")
        other = {**request("STAMP"), "tenant_id": "other"}
        assert (await http.post("/v1/orchestrate", json=other)).status_code == 202


@pytest.fixture
def created(caplog: pytest.LogCaptureFixture) -> Iterator[asyncio.Event]:
    caplog.set_level(logging.INFO, "lucius_orchestrator")
    heard, logger = Heard("topology.created"), logging.getLogger("lucius_orchestrator.topology")
    logger.addHandler(heard)
    yield heard.event
    logger.removeHandler(heard)


async def test_a_changed_sentinel_brings_a_protocol_and_the_subscriptions_of_its_service(
    double: AppConfiguration, tmp_path: Path, created: asyncio.Event
) -> None:
    async with plane(double, tmp_path) as (made, http):
        assert (await http.post("/v1/orchestrate", json=request("SEAL"))).status_code == 422
        created.clear()  # what the start has made
        put(double, seal=SEAL)
        await created.wait()
        assert (await http.post("/v1/orchestrate", json=request("SEAL"))).status_code == 202
        assert (await next_directive(made, "sealer")).protocol_id == "seal"


async def test_a_wrong_entry_leaves_the_old_set_in_force_and_ready_says_it(
    double: AppConfiguration, tmp_path: Path
) -> None:
    async with plane(double, tmp_path) as (made, http):
        put(double, seal=SEAL.replace("service: sealer", "service: NO"))
        check = await wait_until_ready_says(http, "last good set")
        assert check["ok"]
        assert check["detail"].startswith(
            "the last good set is in force, because of lucius:protocols:seal: steps[0].service:"
            " must be 1 to 50 lower-case letters"
        )
        assert (await http.post("/v1/orchestrate", json=request("STAMP"))).status_code == 202
        assert (await next_directive(made, "stamper")).protocol_id == "stamp"
        put(double, seal=SEAL)
        await wait_until_ready_says(http, "2 in force")


async def test_a_store_that_goes_away_leaves_the_set_in_force_and_ready_says_it(
    double: AppConfiguration, tmp_path: Path
) -> None:
    async with plane(double, tmp_path) as (_, http):
        double.fault = Fault(503)
        check = await wait_until_ready_says(http, "last good set")
        assert check["ok"]
        assert check["detail"].endswith(f"because of {double.endpoint}: answers 503")
        assert (await http.post("/v1/orchestrate", json=request("STAMP"))).status_code == 202
        double.fault = None
        await wait_until_ready_says(http, "1 in force")


async def test_a_restart_while_it_is_away_works_from_the_copy(
    double: AppConfiguration, tmp_path: Path
) -> None:
    async with plane(double, tmp_path):
        pass
    double.fault = Fault(503)
    async with plane(double, tmp_path) as (made, http):
        assert "app-configuration.json: the copy of " in (await protocols_check(http))["detail"]
        assert (await http.post("/v1/orchestrate", json=request("STAMP"))).status_code == 202
        assert (await next_directive(made, "stamper")).protocol_id == "stamp"
        double.fault = None
        await wait_until_ready_says(http, "1 in force")


@pytest.mark.parametrize(
    "other", [{"LUCIUS_APP_CONFIGURATION_LABEL": "prod"}, {"LUCIUS_DATA_DIR": "elsewhere"}]
)
async def test_the_copy_of_another_deployment_is_not_used(
    double: AppConfiguration,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    other: dict[str, str],
) -> None:
    monkeypatch.chdir(tmp_path)
    async with plane(double, tmp_path):
        pass
    double.fault = Fault(503)
    with pytest.raises(RegistryError, match="answers 503"):
        async with plane(double, tmp_path, **other):
            pass


async def test_a_start_asks_several_times(
    double: AppConfiguration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = (timedelta(0), timedelta(0))
    monkeypatch.setattr("lucius_orchestrator.bootstrap.protocol_source.START_PAUSES", pauses)
    double.fault = Fault(503)
    with pytest.raises(RegistryError, match="answers 503"):
        async with plane(double, tmp_path):
            pass
    assert len(double.asked) == 3


async def test_the_sentinel_is_looked_at_as_often_as_the_settings_say(
    double: AppConfiguration, tmp_path: Path
) -> None:
    settings = settings_for(double, tmp_path)
    async with open_registry(settings, partial(datetime.now, UTC)) as opened:
        assert opened.interval == settings.app_configuration_refresh


async def test_a_start_without_entries_says_where_they_are_missed(
    double: AppConfiguration, tmp_path: Path
) -> None:
    prefix = {"LUCIUS_APP_CONFIGURATION_PREFIX": "team/"}
    with pytest.raises(RegistryError, match=r"team/protocols:\*: there is none"):
        async with plane(double, tmp_path, **prefix):
            pass
