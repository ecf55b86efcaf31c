"""The keeper of the topology, on an emulator and the administration that is used with Azure."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from lucius_bus.servicebus.administration import ServiceBusTopology
from lucius_bus.topology import Topology, TopologyReport, lane_topology
from lucius_orchestrator.adapters.registry import YamlRegistry
from lucius_orchestrator.bootstrap.bus import keyless_connection
from lucius_orchestrator.bootstrap.parts import After, running
from lucius_orchestrator.bootstrap.topology_keeper import EVENTS, TopologyKeeper
from servicebus_emulator.sas import Keys
from servicebus_emulator.server import Emulator
from tests.runner.deadlines import DEADLINE

PROMPTLY = (timedelta(milliseconds=1),)
LANES = lane_topology(["ocr"]).topics
TWO_LANES = Topology({topic: LANES[topic] for topic in ("global-bus-p0", "global-bus-replies-p0")})


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def emulated(keys: Keys | None = None) -> AsyncIterator[Emulator]:
    emulator = Emulator(keys=keys)
    await emulator.start()
    try:
        yield emulator
    finally:
        await emulator.stop()


@asynccontextmanager
async def administration(port: int) -> AsyncIterator[ServiceBusTopology]:
    async with ServiceBusTopology.from_connection_string(
        keyless_connection("127.0.0.1", port)
    ) as topology:
        yield topology


def subscriptions(emulator: Emulator) -> list[str]:
    found = [emulator.broker.subscriptions(topic.name) for topic in emulator.broker.topics()]
    return [f"{one.topic}/{one.name}" for each in found for one in each]


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.message.startswith("topology.")]


async def test_what_is_missing_is_made_and_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "lucius_orchestrator")
    async with emulated() as emulator, administration(emulator.port) as topology:
        keeper = TopologyKeeper(topology, TWO_LANES, creates=True)
        async with asyncio.timeout(DEADLINE), running([keeper]):
            await keeper.settled.wait()
            check = await keeper.check()
        assert subscriptions(emulator) == [
            "global-bus-p0/ocr",
            "global-bus-replies-p0/lucius-invoker",
        ]
    assert (check.ok, check.detail) == (True, "every service has its subscriptions")
    assert events(caplog) == ["topology.created"]


async def test_a_role_that_only_looks_makes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with emulated() as emulator, administration(emulator.port) as topology:
        keeper = TopologyKeeper(topology, TWO_LANES, creates=False)
        async with asyncio.timeout(DEADLINE), running([keeper]):
            check = await keeper.check()
        assert emulator.broker.topics() == []
    assert not check.ok
    assert "service ocr has no subscription on global-bus-p0" in check.detail
    assert "lucius topology apply" in check.detail
    assert events(caplog) == ["topology.missing"]


async def test_a_bus_that_is_away_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async with emulated() as emulator, administration(emulator.port) as topology:
        port = emulator.port
        await emulator.stop()
        keeper = TopologyKeeper(topology, TWO_LANES, creates=True, pauses=PROMPTLY)
        begun = After(keeper.settled, Once())
        async with asyncio.timeout(DEADLINE), running([begun, keeper]):
            check = await keeper.check()
            assert not check.ok
            assert "cannot be looked at" in check.detail
            assert not keeper.settled.is_set()
            await emulator.start(port=port)
            await keeper.settled.wait()
        assert len(subscriptions(emulator)) == 2
    assert events(caplog).count("topology.unknown") >= 1


class Once:
    """A part that ends by itself."""

    async def run(self) -> None:
        return

    async def stop(self) -> None:
        return


async def test_a_part_that_waits_for_the_topology_can_be_stopped_before_it_has_begun() -> None:
    async with administration(1) as topology:
        keeper = TopologyKeeper(topology, TWO_LANES, creates=True)
        async with asyncio.timeout(DEADLINE), running([After(keeper.settled, Once()), keeper]):
            pass


async def test_without_the_right_to_manage_it_says_so_and_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The key is not the namespace's, which answers as to one that may only listen."""
    async with (
        emulated(Keys({"local": "another"})) as emulator,
        administration(emulator.port) as topology,
    ):
        keeper = TopologyKeeper(topology, TWO_LANES, creates=True)
        async with asyncio.timeout(DEADLINE), running([keeper]):
            await keeper.settled.wait()
            check = await keeper.check()
    assert check.ok
    assert "Manage claim" in check.detail
    assert events(caplog) == ["topology.unknown"]


async def test_differences_are_told_and_left() -> None:
    (one,) = TWO_LANES.topics["global-bus-p0"]
    other = Topology({"global-bus-p0": (replace(one, max_delivery_count=3),)})
    async with emulated() as emulator, administration(emulator.port) as topology:
        await topology.apply(other)
        keeper = TopologyKeeper(topology, TWO_LANES, creates=True)
        async with asyncio.timeout(DEADLINE), running([keeper]):
            check = await keeper.check()
        assert emulator.broker.subscription("global-bus-p0", "ocr").settings.max_delivery_count == 3
    assert check.ok
    assert "max delivery count is 3, wanted 10" in check.detail


class Observed:
    """An administration, and the looks that were taken through it."""

    def __init__(self, topology: ServiceBusTopology) -> None:
        self.apply = topology.apply
        self._compare = topology.compare
        self.looks: asyncio.Queue[TopologyReport] = asyncio.Queue()

    async def compare(self, topology: Topology) -> TopologyReport:
        report = await self._compare(topology)
        self.looks.put_nowait(report)
        return report


async def test_a_look_counts_for_a_while() -> None:
    clock = Clock()
    async with emulated() as emulator, administration(emulator.port) as topology:
        observed = Observed(topology)
        keeper = TopologyKeeper(
            observed, TWO_LANES, creates=True, fresh=timedelta(seconds=60), monotonic=clock
        )
        async with asyncio.timeout(DEADLINE), running([keeper]):
            assert (await keeper.check()).ok
            emulator.broker.delete_subscription("global-bus-p0", "ocr")
            clock.now = 59.9
            assert (await keeper.check()).ok
            assert observed.looks.empty()
            clock.now = 60.0
            assert (await keeper.check()).ok  # nobody waits for the new look
            assert (await observed.looks.get()).missing
            assert not (await keeper.check()).ok
            await topology.apply(TWO_LANES)
            clock.now = 65.0  # what is missing is soon looked for again
            assert not (await keeper.check()).ok
            assert not (await observed.looks.get()).missing
            assert (await keeper.check()).ok


async def test_the_topic_of_events_stays_when_protocols_change() -> None:
    snapshot = YamlRegistry(None).load()
    async with emulated() as emulator, administration(emulator.port) as topology:
        keeper = TopologyKeeper(topology, TWO_LANES, creates=True, events_topic="events")
        await keeper.changed(snapshot)
        found = await topology.compare(Topology({"events": ()}))
    assert found.missing == ()


async def test_protocols_that_change_bring_their_subscriptions() -> None:
    snapshot = YamlRegistry(None).load()
    async with emulated() as emulator, administration(emulator.port) as topology:
        keeper = TopologyKeeper(topology, TWO_LANES, creates=True)
        async with asyncio.timeout(DEADLINE), running([keeper]):
            await keeper.settled.wait()
            await keeper.changed(snapshot)
        assert len(subscriptions(emulator)) == 16 * 4


def test_every_event_is_documented() -> None:
    names = {info.name for info in EVENTS}
    assert names == {f"topology.{end}" for end in ("created", "drift", "missing", "unknown")}
