"""What the embedded bus promises beyond the port: it shares a broker with those who connect, keeps
what it answers for, and gives back what nobody took."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lucius_bus.filters import MatchAll, PropertyFilter
from lucius_bus.port import BusMessage, BusUnavailable, LockLost, Misused
from lucius_bus.servicebus import ServiceBusBus
from lucius_bus.topology import (
    SubscriptionSettings,
    Topology,
    TopologyReport,
    lane_topology,
)
from lucius_orchestrator.adapters.bus.embedded import EmbeddedBus, EmbeddedTopology
from servicebus_emulator.broker import TopicSettings
from servicebus_emulator.journal import Journal, JournalUnwritable
from servicebus_emulator.rules import DEFAULT_RULE
from servicebus_emulator.server import Emulator
from tests.bus.backends import (
    LONG,
    OCR,
    SETTINGS,
    TOPIC,
    EmbeddedBackend,
    connection_string,
    ids,
    message,
    of_service,
    publish,
    receive,
    receive_one,
    turns,
    waiting,
)


@pytest.fixture
def backend(embedded_backend: EmbeddedBackend) -> EmbeddedBackend:
    return embedded_backend


@pytest.fixture
async def served() -> AsyncIterator[Emulator]:
    """One that has a port and runs by real time."""
    emulator = Emulator()
    await emulator.start()
    yield emulator
    await emulator.stop()


async def test_a_topology_is_applied_again_when_a_service_joins(backend: EmbeddedBackend) -> None:
    bus = backend.bus
    bus.apply(lane_topology(["ocr"]))
    await bus.publish("global-bus-p7", [message(1, "ocr"), message(2, "sis")])
    bus.apply(lane_topology(["ocr", "sis"]))
    await bus.publish("global-bus-p7", [message(3, "sis")])
    assert ids(await bus.receive("global-bus-p7", "ocr", 9, timedelta(0))) == ["m1"]
    assert ids(await bus.receive("global-bus-p7", "sis", 9, timedelta(0))) == ["m3"]


@pytest.mark.parametrize(
    "changed",
    [
        {"lock_duration": timedelta(seconds=30)},
        {"max_delivery_count": 3},
        {"requires_session": True},
        {"default_ttl": timedelta(minutes=1)},
        {"dead_letter_on_expiry": True},
        {"filter": MatchAll()},
        {"filter": PropertyFilter({"service": "sis"})},
        {"filter": PropertyFilter({"service": "ocr"}, message_id="m1")},
    ],
)
async def test_a_subscription_is_not_changed_under_its_receivers(
    backend: EmbeddedBackend, changed: dict[str, Any]
) -> None:
    wanted: dict[str, Any] = {"filter": PropertyFilter({"service": "ocr"}), **changed}
    with pytest.raises(Misused, match="other settings"):
        backend.bus.create_subscription(TOPIC, SubscriptionSettings(OCR, **wanted))


async def test_a_filter_of_ones_own_cannot_be_applied(backend: EmbeddedBackend) -> None:
    class Odd:
        def matches(self, given: BusMessage, /) -> bool:
            return len(given.body) % 2 == 1

    with pytest.raises(Misused, match="filter"):
        backend.bus.create_subscription(TOPIC, SubscriptionSettings("odd", Odd()))


async def test_a_name_that_the_broker_refuses_is_misuse(backend: EmbeddedBackend) -> None:
    with pytest.raises(Misused):
        backend.bus.apply(Topology({"a topic with blanks": ()}))


async def test_a_subscription_with_sessions_is_not_received_from(backend: EmbeddedBackend) -> None:
    await backend.subscribe(SubscriptionSettings("ordered", MatchAll(), requires_session=True))
    with pytest.raises(Misused):
        await receive(backend.bus, "ordered")


async def test_a_receiver_that_is_cancelled_after_it_took_gives_back(
    backend: EmbeddedBackend,
) -> None:
    receiver = asyncio.create_task(receive(backend.bus, wait=LONG))
    await turns()
    await publish(backend.bus, message(1))  # taken now, and the task not yet awake
    receiver.cancel()
    with pytest.raises(asyncio.CancelledError):
        await receiver
    assert (await receive_one(backend.bus)).delivery_count == 1


async def test_closing_gives_back_as_if_nothing_had_been_delivered(
    backend: EmbeddedBackend,
) -> None:
    other = EmbeddedBus(backend.emulator)
    await publish(backend.bus, message(1), message(2))
    await bus_settles_one(other)
    await other.close()
    (delivery,) = await receive(backend.bus)
    assert delivery.delivery_count == 1


async def bus_settles_one(bus: EmbeddedBus) -> None:
    first, _ = await receive(bus)
    await bus.complete(first)


async def test_what_was_taken_while_the_bus_closed_is_given_back(backend: EmbeddedBackend) -> None:
    other = EmbeddedBus(backend.emulator)
    receiver = asyncio.create_task(receive(other, wait=LONG))
    await turns()
    await publish(backend.bus, message(1))
    await other.close()
    with pytest.raises(BusUnavailable):
        await receiver
    assert (await receive_one(backend.bus)).delivery_count == 1


async def test_a_subscription_that_is_removed_ends_the_wait(backend: EmbeddedBackend) -> None:
    receiver = asyncio.create_task(receive(backend.bus, wait=LONG))
    await turns()
    backend.emulator.broker.delete_subscription(TOPIC, OCR)
    with pytest.raises(Misused):
        await receiver


async def test_a_message_of_a_subscription_that_was_removed_is_lost(
    backend: EmbeddedBackend,
) -> None:
    await publish(backend.bus, message(1))
    held = await receive_one(backend.bus)
    backend.emulator.broker.delete_subscription(TOPIC, OCR)
    with pytest.raises(LockLost):
        await backend.bus.complete(held)
    await backend.subscribe(of_service(OCR))
    await publish(backend.bus, message(2))
    assert ids(await receive(backend.bus)) == ["m2"]


async def test_a_full_topic_is_unavailable_and_not_refused(backend: EmbeddedBackend) -> None:
    backend.emulator.broker.create_topic("small", TopicSettings(max_size_bytes=1))
    ((_, error),) = await backend.bus.publish("small", [message(1)])
    assert isinstance(error, BusUnavailable)


async def test_locks_run_out_by_themselves_while_the_emulator_runs(served: Emulator) -> None:
    bus = EmbeddedBus(served)
    short = of_service(OCR, lock_duration=timedelta(milliseconds=30))
    bus.apply(Topology({TOPIC: (short,)}))
    await publish(bus, message(1))
    first = await receive_one(bus)
    (again,) = await receive(bus, wait=LONG)
    assert again.delivery_count == first.delivery_count + 1
    await bus.close()


async def test_those_who_connect_and_those_inside_share_one_broker(served: Emulator) -> None:
    inside = EmbeddedBus(served)
    inside.apply(Topology({TOPIC: (of_service("ocr"), of_service("sis"))}))
    outside = ServiceBusBus.from_connection_string(
        connection_string(served.port), settings=SETTINGS
    )
    async with waiting(inside, "sis") as receiver:
        sent = message(1, "sis", partition_key="acme", properties={"service": "sis", "n": 2**40})
        await publish(outside, sent)
    assert [one.message for one in receiver.result()] == [sent]
    async with waiting(outside, "ocr") as receiver:
        await publish(inside, message(2, "ocr"))
    (delivery,) = receiver.result()
    assert delivery.message == message(2, "ocr")
    await outside.complete(delivery)
    await outside.close()
    await inside.close()


async def test_what_was_answered_is_on_the_disk(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "bus")) as journal:
        bus = EmbeddedBus(Emulator(journal=journal))
        bus.apply(Topology({TOPIC: (of_service(OCR),)}))
        await publish(bus, message(1), message(2), message(3))
        assert await found_on_disk(tmp_path) == [("m1", 1), ("m2", 1), ("m3", 1)]
        first, second, _ = await receive(bus)
        await bus.complete(first)
        assert await found_on_disk(tmp_path) == [("m2", 1), ("m3", 1)]
        await bus.abandon(second)
        assert await found_on_disk(tmp_path) == [("m2", 2), ("m3", 1)]


async def found_on_disk(folder: Path) -> list[tuple[str, int]]:
    """What another process would find if this one died now."""
    copy = folder / "copy"
    shutil.copytree(folder / "bus", copy)
    with closing(Journal(copy)) as journal:
        left = await receive(EmbeddedBus(Emulator(journal=journal)))
    shutil.rmtree(copy)
    return [(one.message.message_id, one.delivery_count) for one in left]


async def test_what_is_held_is_forgotten_when_its_lock_ran_out(backend: EmbeddedBackend) -> None:
    for number in range(40):
        await publish(backend.bus, *(message(100 * number + n) for n in range(100)))
        assert len(await receive(backend.bus, limit=100)) == 100
        await backend.pass_time(seconds=61)
        for delivery in await receive(backend.bus, limit=100):
            await backend.bus.complete(delivery)
    assert len(backend.bus._held) <= 2048


class FullDisk(Journal):
    is_full = False

    def flush(self) -> None:
        if self.is_full:
            raise JournalUnwritable(Path("journal"), OSError(28, "No space left on device"))
        super().flush()


async def test_what_cannot_be_kept_is_not_answered_for(tmp_path: Path) -> None:
    with closing(FullDisk(tmp_path / "bus")) as journal:
        bus = EmbeddedBus(Emulator(journal=journal))
        bus.apply(Topology({TOPIC: (of_service(OCR),)}))
        await publish(bus, message(1))
        held = await receive_one(bus)
        journal.is_full = True
        ((unpublished, error),) = await bus.publish(TOPIC, [message(2)])
        assert (unpublished, type(error)) == (message(2), BusUnavailable)
        with pytest.raises(BusUnavailable, match="No space left"):
            await bus.complete(held)
        await bus.close()
        journal.is_full = False


async def test_a_topology_is_compared_and_only_what_is_missing_is_made() -> None:
    emulator = Emulator()
    bus = EmbeddedBus(emulator)
    topology = EmbeddedTopology(bus, emulator.broker)
    wanted = Topology({TOPIC: (of_service(OCR), of_service("sis"))})
    everything = (TOPIC, f"{TOPIC}/{OCR}", f"{TOPIC}/sis")
    assert await topology.compare(wanted) == TopologyReport(missing=everything)
    assert await topology.apply(wanted) == TopologyReport(created=everything)
    assert await topology.apply(wanted) == TopologyReport()
    emulator.broker.delete_subscription(TOPIC, "sis")
    found = emulator.broker.subscription(TOPIC, OCR).settings
    other = replace(found, max_delivery_count=3, status="ReceiveDisabled")
    emulator.broker.update_subscription(TOPIC, OCR, other)
    emulator.broker.create_rule(TOPIC, OCR, DEFAULT_RULE)
    report = await topology.apply(wanted)
    assert report.created == (f"{TOPIC}/sis",)
    assert [one.setting for one in report.drift] == ["max delivery count", "filter", "status"]
