"""What every registry promises, whether it reads files or App Configuration."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from textwrap import dedent

import pytest

from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.registry import RegistryError, YamlRegistry
from lucius_orchestrator.adapters.registry.app_configuration import AppConfigurationRegistry
from lucius_orchestrator.domain.aggregate import ReplyVia, StepPolicy
from lucius_orchestrator.ports.registry import (
    GlobalConfig,
    Snapshot,
    TenantConfig,
    WatchedRegistry,
)
from tests.registry.app_configuration_double import AppConfiguration
from tests.registry.folder import PROTOCOL, named, write
from tests.registry.stores import KEYS, id_of, opened
from tests.runner.deadlines import DEADLINE

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
BROKEN = PROTOCOL.replace("service: translate", "service: NO")
Sleep = Callable[[float], Awaitable[object]]


class Place(ABC):
    """Somewhere that protocols, tenants and defaults are kept, and a registry that reads there.
    `broken` is how it is said where `BROKEN` is wrong."""

    broken: str
    registry: WatchedRegistry

    @abstractmethod
    def put(self, **texts: str) -> None:
        """As `folder.write`; whoever looks afterwards finds all of it."""

    @abstractmethod
    async def load(self, policy: StepPolicy | None = None) -> WatchedRegistry: ...

    @abstractmethod
    async def reload(self) -> None: ...

    @abstractmethod
    def watch(self, interval: timedelta, sleep: Sleep) -> AsyncIterator[Snapshot]: ...


class Folder(Place):
    broken = "protocols/a.yaml:6"
    registry: YamlRegistry

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, **texts: str) -> None:
        write(self._folder, **texts)

    async def load(self, policy: StepPolicy | None = None) -> WatchedRegistry:
        self.registry = YamlRegistry(self._folder, policy)
        self.registry.load()
        return self.registry

    async def reload(self) -> None:
        self.registry.reload()

    def watch(self, interval: timedelta, sleep: Sleep) -> AsyncIterator[Snapshot]:
        return self.registry.watch(interval, sleep)


class Store(Place):
    broken = "lucius:protocols:translate"
    registry: AppConfigurationRegistry

    def __init__(self, double: AppConfiguration, stack: AsyncExitStack) -> None:
        self._double = double
        self._stack = stack

    def put(self, **texts: str) -> None:
        of_all = {"tenants": KEYS.tenants, "defaults": KEYS.defaults}
        for name, text in texts.items():
            key = of_all.get(name) or f"{KEYS.protocols}{id_of(text)}"
            self._double.put(key, dedent(text))
        self._double.touch()

    async def load(self, policy: StepPolicy | None = None) -> WatchedRegistry:
        self.registry = await self._stack.enter_async_context(opened(self._double, policy))
        await self.registry.load()
        return self.registry

    async def reload(self) -> None:
        await self.registry.refresh()

    def watch(self, interval: timedelta, sleep: Sleep) -> AsyncIterator[Snapshot]:
        return self.registry.watch(interval, sleep)


@pytest.fixture(params=["files", "app_configuration"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        if request.param == "files":
            yield Folder(tmp_path)
        else:
            yield Store(request.getfixturevalue("double"), stack)


def versions(snapshot: Snapshot) -> dict[str, str]:
    return {name: protocol.version for name, protocol in snapshot.protocols.items()}


async def test_a_step_says_what_differs_and_the_default_policy_says_the_rest(place: Place) -> None:
    policy = StepPolicy(ack_timeout=5 * SECOND, reply_via=ReplyVia.BUS, max_attempts=7)
    place.put(
        a=f"{PROTOCOL}"
        "    lease: 1h\n    heartbeat: 90s\n    timeout: 1d\n"
        "    backoff: [0s, 500ms, 2m]\n    max_attempts: 1\n    reply_via: http\n",
        b=named("b"),
    )
    protocols = (await place.load(policy)).snapshot().protocols
    assert protocols["b"].steps[0].policy == policy
    assert protocols["translate"].steps[0].policy == StepPolicy(
        ack_timeout=5 * SECOND,
        reply_via=ReplyVia.HTTP,
        lease=HOUR,
        heartbeat=90 * SECOND,
        ceiling=24 * HOUR,
        backoff=(0 * SECOND, SECOND / 2, 2 * MINUTE),
        max_attempts=1,
    )


async def test_defaults_and_tenants_are_read(place: Place) -> None:
    place.put(
        a=PROTOCOL,
        defaults="""
            mode: BURST
            max_inflight: 100
            max_inflight_per_tenant: 10
            max_inflight_per_mode: {SAFE: 60, BURST: 0}
            job_sla: 2d
            input_places: ["az://inbox/{tenant}/", "https://Files.Example/in/"]
            output_places: []
        """,
        tenants="""
            acme:
              mode: SAFE
              allowed_modes: [SAFE, BURST]
              max_inflight: 3
              input_places: []
              output_places: ["s3://out/%61cme/"]
              weight: 100
            empty: {}
        """,
    )
    snapshot = (await place.load()).snapshot()
    assert snapshot.defaults == GlobalConfig(
        Mode.BURST,
        100,
        10,
        {Mode.DEFAULT: 60, Mode.BURST: 0},
        timedelta(days=2),
        input_places=("az://inbox/{tenant}/", "https://files.example/in/"),
    )
    both = frozenset({Mode.DEFAULT, Mode.BURST})
    assert snapshot.tenant("acme") == TenantConfig(
        Mode.DEFAULT, both, 3, output_places=("s3://out/acme/",), weight=100
    )
    assert snapshot.tenant("empty") == snapshot.tenant("nobody") == TenantConfig()


async def test_what_is_not_said_has_its_default(place: Place) -> None:
    place.put(a=PROTOCOL, defaults="")
    snapshot = (await place.load()).snapshot()
    assert (snapshot.defaults, snapshot.tenants) == (GlobalConfig(), {})
    assert set(snapshot.protocols) == {"translate"}


async def test_a_request_type_is_found_by_its_aliases_and_with_arrows(place: Place) -> None:
    place.put(a=named("a", request_type="A_B", more="aliases: [A→B, old name, C→D]\n"))
    snapshot = (await place.load()).snapshot()
    for name in ("A_B", "A→B", "old name", "C→D", "C_D"):
        assert snapshot.protocol_of(name) is snapshot.protocols["a"]
    assert snapshot.protocol_of("a_b") is None
    assert snapshot.protocols["a"].aliases == ("A→B", "old name", "C→D")


async def test_the_first_load_raises_and_nothing_is_there(place: Place) -> None:
    place.put(a=BROKEN)
    with pytest.raises(RegistryError) as refusal:
        await place.load()
    assert str(refusal.value).startswith(f"{place.broken}: steps[0].service: must be 1 to 50 lower")
    with pytest.raises(RuntimeError, match="nothing was loaded"):
        place.registry.snapshot()


async def test_a_reload_keeps_the_last_good_set_and_takes_a_mended_one(place: Place) -> None:
    place.put(a=PROTOCOL)
    registry = await place.load()
    good = registry.snapshot()
    assert registry.error is None

    place.put(a=BROKEN, b=named("b"))
    await place.reload()
    assert isinstance(registry.error, RegistryError)
    (problem,) = registry.error.problems
    assert str(problem).startswith(f"{place.broken}: steps[0].service: must be")
    assert registry.snapshot() is good

    place.put(a=PROTOCOL.replace('"1"', '"2"'))
    await place.reload()
    assert registry.error is None
    assert versions(registry.snapshot()) == {"translate": "2", "b": "1"}
    assert versions(good) == {"translate": "1"}


async def test_going_back_to_the_last_good_set_clears_the_error(place: Place) -> None:
    place.put(a=PROTOCOL)
    registry = await place.load()
    place.put(a=BROKEN)
    await place.reload()
    assert registry.error is not None
    place.put(a=PROTOCOL)
    await place.reload()
    assert registry.error is None


async def test_the_same_problems_are_logged_once(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lucius_orchestrator.registry")
    place.put(a=PROTOCOL)
    await place.load()
    for text in (BROKEN, BROKEN, BROKEN + "zzz: 1\n", PROTOCOL, BROKEN):
        place.put(a=text)
        await place.reload()
    records = [record for record in caplog.records if record.name.startswith("lucius_")]
    assert [record.message for record in records] == [
        "registry.loaded",
        "registry.refused",
        "registry.refused",
        "registry.loaded",
        "registry.refused",
    ]
    assert records[0].__dict__["protocols"] == ["translate"]
    (first,) = records[1].__dict__["problems"]
    assert first.startswith(f"{place.broken}: steps[0].service: must be")


async def test_a_watch_brings_every_new_set_and_no_other(place: Place) -> None:
    place.put(a=PROTOCOL)
    registry = await place.load()
    new = PROTOCOL.replace('"1"', '"2"')
    before_each_look: list[dict[str, str]] = [{}, {}, {"a": new}, {}, {}, {"a": BROKEN}, {}]
    looks = iter([*before_each_look, {"a": new, "b": named("b")}, {}])
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if texts := next(looks):
            place.put(**texts)

    watch = place.watch(5 * SECOND, sleep)
    async with asyncio.timeout(DEADLINE):
        assert versions(await anext(watch)) == {"translate": "2"}
        assert versions(await anext(watch)) == {"translate": "2", "b": "1"}
    assert registry.error is None
    assert set(pauses) == {5.0}
