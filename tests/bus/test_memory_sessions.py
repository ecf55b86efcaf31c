"""Sessions of the memory bus: one receiver at a time, in order."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lucius_bus.memory import (
    Counts,
    MemoryBus,
    MemorySession,
    Misused,
    SessionUnavailable,
)
from lucius_bus.port import BusMessage, BusUnavailable, LockLost
from lucius_bus.topology import SubscriptionSettings
from tests.bus.backends import (
    AT_ONCE,
    LOCK,
    LONG,
    OCR,
    TOPIC,
    MemoryBackend,
    dead_letters,
    ids,
    message,
    publish,
    reasons,
    receive,
    turns,
)
from tests.runner.deadlines import DEADLINE

ORDERED = "ordered"


def settings(**more: Any) -> SubscriptionSettings:
    return SubscriptionSettings(ORDERED, requires_session=True, **more)


@pytest.fixture
async def bus(memory_backend: MemoryBackend) -> MemoryBus:
    await memory_backend.subscribe(settings())
    return memory_backend.bus


def of_session(session_id: str, number: int, **fields: Any) -> BusMessage:
    return message(number, session_id=session_id, **fields)


async def accept(
    bus: MemoryBus, session_id: str | None = None, wait: timedelta = AT_ONCE
) -> MemorySession:
    async with asyncio.timeout(DEADLINE):
        return await bus.accept_session(TOPIC, ORDERED, session_id, wait)


async def test_a_session_gives_its_own_messages_in_order(bus: MemoryBus) -> None:
    await publish(bus, of_session("a", 1), of_session("b", 2), of_session("a", 3))
    session = await accept(bus, "a")
    assert session.session_id == "a"
    assert ids(await session.receive(1, AT_ONCE)) == ["m1"]
    assert ids(await session.receive(9, AT_ONCE)) == ["m3"]
    assert await session.receive(9, AT_ONCE) == []


async def test_a_session_is_held_by_one_receiver(bus: MemoryBus) -> None:
    await publish(bus, of_session("a", 1))
    await accept(bus, "a")
    with pytest.raises(SessionUnavailable, match="a is taken"):
        await accept(bus, "a")
    with pytest.raises(SessionUnavailable, match="no session is free"):
        await accept(bus)


async def test_sessions_are_held_side_by_side(bus: MemoryBus) -> None:
    await publish(bus, of_session("a", 1), of_session("b", 2))
    first, second = await accept(bus), await accept(bus)
    assert (first.session_id, second.session_id) == ("a", "b")
    assert ids(await second.receive(9, AT_ONCE)) == ["m2"]


async def test_a_session_that_is_named_need_not_have_messages(bus: MemoryBus) -> None:
    session = await accept(bus, "a")
    receiver = asyncio.create_task(session.receive(9, LONG))
    await turns()
    await publish(bus, of_session("b", 1), of_session("a", 2))
    async with asyncio.timeout(DEADLINE):
        assert ids(await receiver) == ["m2"]


async def test_an_abandoned_message_is_the_next_of_its_session(bus: MemoryBus) -> None:
    await publish(bus, of_session("a", 1), of_session("a", 2))
    session = await accept(bus)
    (first,) = await session.receive(1, AT_ONCE)
    await session.abandon(first)
    again, second = await session.receive(9, AT_ONCE)
    assert (again.message, again.delivery_count) == (first.message, 2)
    await session.complete(again)
    await session.dead_letter(second, "Unreadable", "not JSON")
    assert bus.counts(TOPIC, ORDERED) == Counts(active=0, locked=0, dead=1)


async def test_a_session_without_messages_ends_the_wait_empty(bus: MemoryBus) -> None:
    session = await accept(bus, "a")
    assert await session.receive(9, timedelta(milliseconds=5)) == []
    with pytest.raises(ValueError, match="limit"):
        await session.receive(0, AT_ONCE)


async def test_whoever_waits_for_any_session_gets_the_next_with_a_message(bus: MemoryBus) -> None:
    acceptor = asyncio.create_task(accept(bus, wait=LONG))
    await turns()
    await publish(bus, of_session("a", 1))
    assert (await acceptor).session_id == "a"


async def test_an_acceptor_cancelled_after_it_was_woken_wakes_the_next(bus: MemoryBus) -> None:
    cancelled, next_one = (asyncio.create_task(accept(bus, wait=LONG)) for _ in range(2))
    await turns()
    await publish(bus, of_session("a", 1))
    cancelled.cancel()
    assert (await next_one).session_id == "a"


async def test_a_wait_for_any_session_ends(bus: MemoryBus) -> None:
    with pytest.raises(SessionUnavailable):
        await accept(bus, wait=timedelta(milliseconds=5))


async def test_closing_lets_the_next_have_it_and_counts_no_delivery(bus: MemoryBus) -> None:
    await publish(bus, of_session("a", 1), of_session("a", 2))
    session = await accept(bus)
    (held, _) = await session.receive(9, AT_ONCE)
    acceptor = asyncio.create_task(accept(bus, wait=LONG))
    await turns()
    await session.close()
    await session.close()
    with pytest.raises(LockLost):
        await bus.complete(held)
    deliveries = await (await acceptor).receive(9, AT_ONCE)
    assert [(one.message.message_id, one.delivery_count) for one in deliveries] == [
        ("m1", 1),
        ("m2", 1),
    ]


async def test_a_session_whose_lock_runs_out_loses_its_messages_and_counts_their_delivery(
    bus: MemoryBus, memory_backend: MemoryBackend
) -> None:
    await publish(bus, of_session("a", 1), of_session("a", 2))
    session = await accept(bus)
    (held,) = await session.receive(1, AT_ONCE)
    assert held.locked_until == session.locked_until == memory_backend.now + LOCK
    memory_backend.clock.advance(seconds=60)
    with pytest.raises(LockLost):
        await session.complete(held)
    for verb in (session.receive(1, AT_ONCE), session.renew(), session.get_state()):
        with pytest.raises(LockLost):
            await verb
    with pytest.raises(LockLost):
        await session.set_state(b"late")
    await session.close()
    deliveries = await (await accept(bus, "a")).receive(9, AT_ONCE)
    assert [one.delivery_count for one in deliveries] == [2, 1]


async def test_a_lock_that_runs_out_ends_the_wait_in_the_session(
    bus: MemoryBus, memory_backend: MemoryBackend
) -> None:
    session = await accept(bus, "a")
    receiver = asyncio.create_task(session.receive(1, LONG))
    await turns()
    await memory_backend.pass_time(seconds=60)
    with pytest.raises(LockLost):
        await receiver


async def test_an_earlier_holder_does_not_disturb_the_present_one(
    bus: MemoryBus, memory_backend: MemoryBackend
) -> None:
    await publish(bus, of_session("a", 1))
    late = await accept(bus, "a")
    await memory_backend.pass_time(seconds=60)
    present = await accept(bus, "a")
    await late.close()
    with pytest.raises(LockLost):
        await late.renew()
    (delivery,) = await present.receive(9, AT_ONCE)
    await present.complete(delivery)


async def test_renewing_a_session_renews_its_messages(
    bus: MemoryBus, memory_backend: MemoryBackend
) -> None:
    await publish(bus, of_session("a", 1))
    session = await accept(bus)
    (held,) = await session.receive(1, AT_ONCE)
    await memory_backend.pass_time(seconds=50)
    with pytest.raises(Misused, match="renew"):
        await bus.renew(held)
    assert await session.renew() == memory_backend.now + LOCK
    await memory_backend.pass_time(seconds=50)
    await session.complete(held)


async def test_a_session_becomes_free_by_itself_when_its_lock_runs_out() -> None:
    bus = MemoryBus(lambda: datetime.now(UTC))
    bus.create_topic(TOPIC)
    bus.create_subscription(TOPIC, settings(lock_duration=timedelta(milliseconds=20)))
    await publish(bus, of_session("a", 1))
    await accept(bus)
    assert (await accept(bus, wait=LONG)).session_id == "a"


async def test_state_stays_with_the_session_until_it_is_cleared(bus: MemoryBus) -> None:
    session = await accept(bus, "a")
    assert await session.get_state() is None
    await session.set_state(b"page 3")
    await session.close()
    session = await accept(bus, "a")
    assert await session.get_state() == b"page 3"
    await session.set_state(None)
    await session.close()
    assert await (await accept(bus, "a")).get_state() is None


async def test_a_message_without_session_is_dead_on_arrival(bus: MemoryBus) -> None:
    await publish(bus, message(1))
    assert ids(await receive(bus, OCR)) == ["m1"]
    assert reasons(await dead_letters(bus, ORDERED)) == ["Session ID is null"]
    assert bus.counts(TOPIC, ORDERED) == Counts(active=0, locked=0, dead=1)


async def test_messages_of_sessions_are_dead_after_as_many_deliveries(bus: MemoryBus) -> None:
    await publish(bus, of_session("a", 1))
    session = await accept(bus)
    for _ in range(10):
        (delivery,) = await session.receive(1, AT_ONCE)
        await session.abandon(delivery)
    assert await session.receive(1, AT_ONCE) == []
    assert reasons(await dead_letters(bus, ORDERED)) == ["MaxDeliveryCountExceeded"]


async def test_a_session_whose_messages_expired_is_not_offered(
    bus: MemoryBus, memory_backend: MemoryBackend
) -> None:
    soon = memory_backend.now + timedelta(seconds=1)
    await publish(bus, of_session("a", 1, expires_at=soon), of_session("b", 2))
    memory_backend.clock.advance(seconds=1)
    assert (await accept(bus)).session_id == "b"


async def test_each_kind_of_subscription_is_received_from_in_its_own_way(bus: MemoryBus) -> None:
    with pytest.raises(Misused, match="sessions"):
        await receive(bus, ORDERED)
    with pytest.raises(Misused, match="no sessions"):
        await bus.accept_session(TOPIC, OCR, "a")


async def test_a_bus_that_goes_away_ends_the_wait_for_sessions(bus: MemoryBus) -> None:
    session = await accept(bus, "a")
    tasks = [
        asyncio.create_task(session.receive(1, LONG)),
        asyncio.create_task(accept(bus, wait=LONG)),
    ]
    await turns()
    bus.go_away()
    for task in tasks:
        with pytest.raises(BusUnavailable):
            await task
    await session.close()
    with pytest.raises(BusUnavailable):
        await accept(bus, "a")
