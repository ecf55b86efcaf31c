"""What the memory bus promises beyond the port: order, time, counts, and how it fails on demand."""

import asyncio
import random
from datetime import UTC, datetime, timedelta

import pytest

from lucius_bus.filters import MatchAll, PropertyFilter
from lucius_bus.memory import Counts, MemoryBus, Misused
from lucius_bus.port import BusUnavailable, LockLost, PublishRefused
from lucius_bus.topology import SubscriptionSettings, dead_letters_of
from tests.bus.backends import (
    LONG,
    OCR,
    TOPIC,
    VERBS,
    MemoryBackend,
    dead_letters,
    ids,
    message,
    publish,
    reasons,
    receive,
    receive_one,
    turns,
    waiting,
)
from tests.runner.deadlines import DEADLINE

SHORT = timedelta(milliseconds=20)


@pytest.fixture
def bus(memory_backend: MemoryBackend) -> MemoryBus:
    return memory_backend.bus


def of_real_time(settings: SubscriptionSettings) -> MemoryBus:
    bus = MemoryBus(lambda: datetime.now(UTC))
    bus.create_topic(TOPIC)
    bus.create_subscription(TOPIC, settings)
    return bus


async def test_messages_come_in_the_order_of_publishing(bus: MemoryBus) -> None:
    await publish(bus, message(1), message(2))
    await publish(bus, message(3))
    assert ids(await receive(bus)) == ["m1", "m2", "m3"]


async def test_what_comes_back_comes_at_its_old_place(
    bus: MemoryBus, memory_backend: MemoryBackend
) -> None:
    await publish(bus, *(message(n) for n in range(6)))
    first, second, third, fourth = await receive(bus, limit=4)
    for delivery in (second, first, fourth):
        await bus.abandon(delivery)
    assert ids(await receive(bus, limit=1)) == ["m0"]
    assert ids(await receive(bus)) == ["m1", "m3", "m4", "m5"]
    await bus.complete(third)
    await memory_backend.pass_time(seconds=60)
    assert ids(await receive(bus)) == ["m0", "m1", "m3", "m4", "m5"]


async def test_what_comes_back_keeps_its_place_when_others_expire(
    bus: MemoryBus, memory_backend: MemoryBackend
) -> None:
    soon = memory_backend.now + timedelta(seconds=1)
    numbers = range(5)
    await publish(bus, *(message(n, expires_at=soon if n in (0, 3) else None) for n in numbers))
    held = await receive(bus, limit=3)
    for delivery in held[:2]:
        await bus.abandon(delivery)
    await memory_backend.pass_time(seconds=1)
    await bus.abandon(held[2])
    assert ids(await receive(bus)) == ["m1", "m2", "m4"]


async def test_a_lock_runs_out_without_a_tick_when_somebody_receives(
    bus: MemoryBus, memory_backend: MemoryBackend
) -> None:
    await publish(bus, message(1))
    await receive_one(bus)
    memory_backend.clock.advance(seconds=60)
    assert (await receive_one(bus)).delivery_count == 2


@pytest.mark.parametrize("verb", VERBS)
async def test_a_lock_runs_out_without_a_tick_for_who_settles_late(
    bus: MemoryBus, memory_backend: MemoryBackend, verb: str
) -> None:
    await publish(bus, message(1))
    late = await receive_one(bus)
    memory_backend.clock.advance(seconds=60)
    with pytest.raises(LockLost):
        await VERBS[verb](bus, late)
    assert bus.counts(TOPIC, OCR) == Counts(active=1, locked=0, dead=0)


async def test_a_message_expires_without_a_tick_when_somebody_receives(
    bus: MemoryBus, memory_backend: MemoryBackend
) -> None:
    await publish(bus, message(1, expires_at=memory_backend.now + timedelta(seconds=1)))
    memory_backend.clock.advance(seconds=1)
    assert await receive(bus) == []


async def test_a_clock_that_goes_back_makes_locks_longer_and_loses_none(
    bus: MemoryBus, memory_backend: MemoryBackend
) -> None:
    await publish(bus, message(1), message(2))
    await receive_one(bus)
    memory_backend.clock.advance(seconds=-30)
    await receive_one(bus)
    memory_backend.clock.advance(seconds=60)
    assert ids(await receive(bus)) == ["m2"]
    memory_backend.clock.advance(seconds=30)
    assert ids(await receive(bus)) == ["m1"]


async def test_a_receiver_wakes_by_itself_when_a_lock_runs_out() -> None:
    bus = of_real_time(SubscriptionSettings(OCR, lock_duration=SHORT))
    await publish(bus, message(1))
    assert (await receive_one(bus)).delivery_count == 1
    (again,) = await receive(bus, wait=LONG)
    assert again.delivery_count == 2


async def test_a_receiver_wakes_by_itself_for_a_lock_that_was_taken_while_it_waited() -> None:
    bus = of_real_time(SubscriptionSettings(OCR, lock_duration=SHORT))
    async with waiting(bus) as first, waiting(bus) as second:
        await publish(bus, message(1))
    assert [one.delivery_count for one in first.result()] == [1]
    assert [one.delivery_count for one in second.result()] == [2]


async def test_a_receiver_that_was_woken_for_what_another_took_waits_on(bus: MemoryBus) -> None:
    async with waiting(bus) as first, waiting(bus) as second:
        await publish(bus, message(1), message(2))
        await turns()
        assert ids(first.result()) == ["m1", "m2"]
        assert not second.done()
        await publish(bus, message(3))
    assert ids(second.result()) == ["m3"]


async def test_a_receiver_of_dead_letters_wakes_by_itself_when_the_last_lock_runs_out() -> None:
    bus = of_real_time(SubscriptionSettings(OCR, lock_duration=SHORT, max_delivery_count=1))
    await publish(bus, message(1))
    await receive_one(bus)
    dead = await receive(bus, dead_letters_of(OCR), wait=LONG)
    assert reasons(dead) == ["MaxDeliveryCountExceeded"]


async def test_a_wait_ends_in_real_time_though_the_clock_stands_still(bus: MemoryBus) -> None:
    assert await receive(bus, wait=SHORT) == []


async def test_a_wait_that_is_not_over_goes_on_after_a_tick(
    bus: MemoryBus, memory_backend: MemoryBackend
) -> None:
    async with waiting(bus) as receiver:
        await memory_backend.pass_time(minutes=30)
        await turns()
        assert not receiver.done()
        await publish(bus, message(1))
    assert ids(receiver.result()) == ["m1"]


async def test_a_receiver_cancelled_after_it_was_woken_wakes_the_next(bus: MemoryBus) -> None:
    async with waiting(bus) as cancelled, waiting(bus) as next_one:
        await publish(bus, message(1))
        cancelled.cancel()
    (delivery,) = next_one.result()
    assert delivery.delivery_count == 1


@pytest.mark.parametrize("seed", range(20))
async def test_nothing_is_lost_or_left_while_receivers_come_and_go(
    bus: MemoryBus, seed: int
) -> None:
    chance = random.Random(seed)
    completed: list[str] = []

    async def work() -> None:
        for delivery in await bus.receive(TOPIC, OCR, chance.choice([1, 1, 3]), LONG):
            await bus.complete(delivery)
            completed.append(delivery.message.message_id)

    async with asyncio.TaskGroup() as tasks:
        receivers = [tasks.create_task(work()) for _ in range(3)]
        for number in range(40):
            receivers = [receiver for receiver in receivers if not receiver.done()]
            receivers += [tasks.create_task(work()) for _ in range(chance.randrange(5))]
            await turns(chance.randrange(3))
            await publish(bus, message(number))
            await turns(chance.randrange(2))
            for receiver in chance.sample(receivers, len(receivers) // 3):
                receiver.cancel()
            await turns()
            waits = any(not receiver.done() for receiver in receivers)
            assert not (waits and bus.counts(TOPIC, OCR).active)
        for receiver in receivers:
            receiver.cancel()
    completed += ids(await receive(bus, limit=40))
    assert sorted(completed) == sorted(f"m{number}" for number in range(40))


async def test_receivers_that_gave_up_are_not_woken(bus: MemoryBus) -> None:
    for _ in range(3):
        assert await receive(bus, wait=timedelta(milliseconds=1)) == []
    async with waiting(bus) as receiver:
        await publish(bus, message(1))
    assert ids(receiver.result()) == ["m1"]


async def test_all_that_a_crash_left_locked_goes_to_those_who_wait(
    bus: MemoryBus, memory_backend: MemoryBackend
) -> None:
    await publish(bus, *(message(n) for n in range(3)))
    await receive(bus)
    async with (
        waiting(bus, limit=1) as one,
        waiting(bus, limit=1) as two,
        waiting(bus, limit=1) as three,
    ):
        await memory_backend.pass_time(seconds=60)
    received = [ids(receiver.result()) for receiver in (one, two, three)]
    assert sorted(received) == [["m0"], ["m1"], ["m2"]]


async def test_a_receiver_that_never_waits_leaves_the_others_their_turn(bus: MemoryBus) -> None:
    async def poll() -> None:
        while not await bus.receive(TOPIC, OCR, 1, timedelta(0)):
            pass

    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(poll())
        await turns()
        await publish(bus, message(1))


async def test_counts_tell_where_the_messages_are(
    bus: MemoryBus, memory_backend: MemoryBackend
) -> None:
    soon = memory_backend.now + timedelta(seconds=90)
    await publish(bus, *(message(n) for n in range(4)), message(4, expires_at=soon))
    first, second, _ = await receive(bus, limit=3)
    await bus.dead_letter(first, "Unreadable", "not JSON")
    await bus.abandon(second)
    assert bus.counts(TOPIC, OCR) == Counts(active=3, locked=1, dead=1)
    await dead_letters(bus)
    assert bus.counts(TOPIC, OCR) == Counts(active=3, locked=1, dead=1)
    memory_backend.clock.advance(seconds=60)
    assert bus.counts(TOPIC, OCR) == Counts(active=4, locked=0, dead=1)
    memory_backend.clock.advance(seconds=30)
    assert bus.counts(TOPIC, OCR) == Counts(active=3, locked=0, dead=1)


async def test_closing_gives_back_what_is_held(bus: MemoryBus) -> None:
    await publish(bus, message(1), message(2))
    await bus.dead_letter(await receive_one(bus), "Unreadable", "not JSON")
    await receive(bus)
    await dead_letters(bus)
    await bus.close()
    assert bus.counts(TOPIC, OCR) == Counts(active=1, locked=0, dead=1)


async def test_a_closed_bus_does_not_come_back(bus: MemoryBus) -> None:
    await bus.close()
    bus.come_back()
    with pytest.raises(BusUnavailable):
        await receive(bus)


async def test_a_topic_may_be_told_to_refuse(bus: MemoryBus) -> None:
    bus.create_topic("other")
    bus.refuse(TOPIC)
    ((_, error),) = await bus.publish(TOPIC, [message(1)])
    assert isinstance(error, PublishRefused)
    assert await bus.publish("other", [message(1)]) == []
    bus.allow(TOPIC)
    await publish(bus, message(1))


async def test_the_largest_message_is_a_setting() -> None:
    bus = MemoryBus(lambda: datetime.now(UTC), max_message_bytes=10)
    bus.create_topic(TOPIC)
    sent = [message(n, body=b"x" * size, properties={"a": 123}) for n, size in ((1, 6), (2, 7))]
    ((unpublished, _),) = await bus.publish(TOPIC, sent)
    assert unpublished is sent[1]


async def test_creating_again_keeps_the_messages(bus: MemoryBus) -> None:
    settings = SubscriptionSettings("again", PropertyFilter({"service": OCR}))
    bus.create_subscription(TOPIC, settings)
    await publish(bus, message(1))
    bus.create_topic(TOPIC)
    bus.create_subscription(TOPIC, SubscriptionSettings("again", PropertyFilter({"service": OCR})))
    assert ids(await receive(bus, "again")) == ["m1"]


async def test_a_subscription_is_not_created_anew_with_other_settings(bus: MemoryBus) -> None:
    with pytest.raises(Misused, match="other settings"):
        bus.create_subscription(TOPIC, SubscriptionSettings(OCR, MatchAll()))


async def test_a_subscription_needs_a_topic(bus: MemoryBus) -> None:
    with pytest.raises(Misused, match="no topic"):
        bus.create_subscription("nowhere", SubscriptionSettings(OCR))


async def test_only_what_exists_is_counted(bus: MemoryBus) -> None:
    with pytest.raises(Misused, match="nobody"):
        bus.counts(TOPIC, "nobody")
