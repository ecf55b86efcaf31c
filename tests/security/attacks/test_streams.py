"""A stream of a job's events does not outlive the credential that opened it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from lucius_bus.memory import MemoryBus
from lucius_orchestrator.api import ApiLimits
from lucius_orchestrator.security.authentication import AnyAuthenticator
from lucius_orchestrator.security.callers import Role
from lucius_orchestrator.security.keys import KeyAuthenticator, KeyFile
from tests.api.serving import address, served
from tests.api.stage import FOREIGN, Stage
from tests.engine.plane import TENANT, Plane, result
from tests.ledger.backends import Clock, MemoryBackend
from tests.runner.deadlines import DEADLINE
from tests.security.clock import Clock as SecurityClock
from tests.security.issuer import authenticator_of, claims, ec_key, issuer_on_loopback

LIMITS = ApiLimits(stream_interval=timedelta(milliseconds=5))
BOUND = timedelta(seconds=4)
"""Within this, by the clock, a credential that is gone has ended its streams."""
READER = frozenset({Role.READ})


class CountedKeys(KeyFile):
    looks = 0

    def look(self) -> None:
        self.looks += 1
        super().look()


class World:
    """A plane with a key file and an issuer of tokens, behind a socket."""

    def __init__(self, plane: Plane, keys: CountedKeys, http: httpx.AsyncClient) -> None:
        self.plane = plane
        self.keys = keys
        self.http = http

    def key(self, tenant: str = TENANT) -> str:
        return self.keys.create("reader", frozenset({tenant}), READER).secret

    async def looked_again(self, streams: int = 1) -> None:
        """Every stream has looked for events since."""
        seen = self.plane.detour.calls["events"]
        await self.plane.detour.called("events", times=seen + 2 * streams)

    async def read(self, job_id: str, credential: str) -> str:
        """All that the stream says until the server ends it."""
        headers = {"Authorization": f"Bearer {credential}"}
        answer = await self.http.get(f"/v1/jobs/{job_id}/stream", headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.text


@asynccontextmanager
async def open_world(folder: Path) -> AsyncIterator[World]:
    backend = MemoryBackend(Clock())
    await backend.start()
    plane = Plane.new(backend, MemoryBus(backend.clock))
    keys = CountedKeys(folder / "keys.json", plane.clock)
    async with issuer_on_loopback() as issuer:
        tokens = authenticator_of(issuer.url, cast(SecurityClock, plane.clock))
        kinds = AnyAuthenticator([KeyAuthenticator(keys), tokens])
        stage = Stage(plane, LIMITS, authenticator=kinds)
        async with (
            served(stage.app) as port,
            httpx.AsyncClient(
                base_url=address(port),
                timeout=DEADLINE,
                limits=httpx.Limits(max_connections=None),
            ) as http,
        ):
            yield World(plane, keys, http)
    await backend.stop()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as world:
        yield world


def closed(text: str) -> dict[str, Any]:
    """Why, which is the last thing that the stream says."""
    *_, last = text.strip().split("\n\n")
    name, data = last.split("\n")
    assert name == "event: closed", text
    reason: dict[str, Any] = json.loads(data.removeprefix("data: "))
    return reason


def revoke(world: World, folder: Path) -> None:
    (info,) = world.keys.keys()
    assert world.keys.revoke(info.key_id)


def give_to_another_tenant(world: World, folder: Path) -> None:
    (info,) = world.keys.keys()
    file = folder / "keys.json"
    file.write_text(file.read_text().replace(f'"{TENANT}"', f'"{FOREIGN}"'))
    assert world.keys.keys()[0].key_id == info.key_id


def take_the_role(world: World, folder: Path) -> None:
    file = folder / "keys.json"
    document = json.loads(file.read_text())
    assert document["keys"][0]["roles"] == ["read"]
    document["keys"] = []
    file.write_text(json.dumps(document))


def damage(world: World, folder: Path) -> None:
    (folder / "keys.json").write_text("{")


CHANGES: dict[str, tuple[Callable[[World, Path], None], str]] = {
    "revoked": (revoke, "UNAUTHENTICATED"),
    "removed": (take_the_role, "UNAUTHENTICATED"),
    "another tenant's": (give_to_another_tenant, "FORBIDDEN"),
    "unreadable": (damage, "UNAVAILABLE"),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_stream_ends_when_its_key_does_not_count_any_more(
    world: World, tmp_path: Path, change: str
) -> None:
    given, key = await world.plane.working(), world.key()
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(world.read(given.job_id, key))
        await world.plane.detour.called("events")
        make, code = CHANGES[change]
        make(world, tmp_path)
        world.plane.later(BOUND)
    assert closed(reading.result())["code"] == code
    await world.plane.reply(result(given))
    assert "SUCCEEDED" not in reading.result()


async def test_a_stream_ends_when_its_token_expires(world: World) -> None:
    given = await world.plane.working()
    token = ec_key().sign(claims(world.plane.clock()))  # for five minutes
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(world.read(given.job_id, token))
        await world.plane.detour.called("events")
        world.plane.later(minutes=4)
        await world.looked_again()
        assert not reading.done()
        world.plane.later(minutes=1, seconds=30)  # the leeway for clocks
        world.plane.later(BOUND)
    assert closed(reading.result()) == {
        "code": "UNAUTHENTICATED",
        "detail": "the token has expired",
    }


async def test_a_stream_whose_credential_counts_goes_on_to_its_end(world: World) -> None:
    given, key = await world.plane.working(), world.key()
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(world.read(given.job_id, key))
        for _ in range(5):
            await world.looked_again()
            world.plane.later(BOUND)
        await world.plane.reply(result(given))
    assert "event: closed" not in reading.result()
    assert '"after":"SUCCEEDED"' in reading.result()


async def test_a_closed_stream_cannot_be_opened_again(world: World) -> None:
    given, key = await world.plane.working(), world.key()
    world.keys.revoke(world.keys.keys()[0].key_id)
    headers = {"Authorization": f"Bearer {key}", "Last-Event-ID": "1"}
    answer = await world.http.get(f"/v1/jobs/{given.job_id}/stream", headers=headers)
    assert answer.status_code == 401


async def test_many_streams_read_the_keys_once_a_second_together(world: World) -> None:
    given, key, many, seconds = await world.plane.working(), world.key(), 30, 6
    async with asyncio.TaskGroup() as tasks:
        readings = [tasks.create_task(world.read(given.job_id, key)) for _ in range(many)]
        await world.plane.detour.called("events", times=many)
        before = world.keys.looks
        for _ in range(seconds):
            world.plane.later(seconds=1)
            await world.looked_again(many)
        assert 1 <= world.keys.looks - before <= seconds
        world.keys.revoke(world.keys.keys()[0].key_id)
        world.plane.later(BOUND)
    assert {closed(reading.result())["code"] for reading in readings} == {"UNAUTHENTICATED"}
