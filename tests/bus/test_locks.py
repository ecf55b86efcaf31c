"""The contract of the port `Bus`, on every adapter: a message is held by one, settled once, and
delivered so often and no more."""

import pytest

from lucius_bus.filters import MatchAll
from lucius_bus.port import (
    Bus,
    LockLost,
)
from lucius_bus.topology import SubscriptionSettings
from tests.bus.backends import (
    LOCK,
    SETTLEMENTS,
    VERBS,
    Backend,
    all_that_come,
    dead_letters,
    ids,
    message,
    publish,
    reasons,
    receive,
    receive_one,
    waiting,
)


async def test_a_message_that_is_held_goes_to_nobody_else(bus: Bus, backend: Backend) -> None:
    await publish(bus, message(1))
    delivery = await receive_one(bus)
    assert delivery.locked_until == backend.now + LOCK
    assert await receive(bus) == []


async def test_a_message_that_was_completed_never_comes_again(bus: Bus, backend: Backend) -> None:
    await publish(bus, message(1))
    await bus.complete(await receive_one(bus))
    await backend.pass_time(minutes=5)
    assert await receive(bus) == []
    assert await dead_letters(bus, count=0) == []


@pytest.mark.parametrize("second", VERBS)
@pytest.mark.parametrize("first", SETTLEMENTS)
async def test_a_message_is_settled_once(bus: Bus, first: str, second: str) -> None:
    await publish(bus, message(1))
    delivery = await receive_one(bus)
    await SETTLEMENTS[first](bus, delivery)
    with pytest.raises(LockLost):
        await VERBS[second](bus, delivery)


@pytest.mark.parametrize("verb", VERBS)
async def test_a_lock_that_ran_out_settles_nothing(bus: Bus, backend: Backend, verb: str) -> None:
    await publish(bus, message(1))
    late = await receive_one(bus)
    await backend.pass_time(seconds=60)
    with pytest.raises(LockLost):
        await VERBS[verb](bus, late)
    again = await receive_one(bus)
    assert (ids([again]), again.delivery_count) == (["m1"], 2)


@pytest.mark.parametrize("verb", VERBS)
async def test_an_earlier_holder_does_not_touch_the_present_one(
    bus: Bus, backend: Backend, verb: str
) -> None:
    await publish(bus, message(1))
    late = await receive_one(bus)
    await backend.pass_time(seconds=61)
    present = await receive_one(bus)
    with pytest.raises(LockLost):
        await VERBS[verb](bus, late)
    assert await receive(bus) == []
    await bus.complete(present)


async def test_a_lock_holds_up_to_its_end(bus: Bus, backend: Backend) -> None:
    await publish(bus, message(1))
    delivery = await receive_one(bus)
    await backend.pass_time(seconds=59)
    assert await receive(bus) == []
    await bus.complete(delivery)


@pytest.mark.parametrize("verb", VERBS)
async def test_a_token_that_the_bus_never_gave_settles_nothing(bus: Bus, verb: str) -> None:
    await publish(bus, message(1))
    delivery = await receive_one(bus)
    with pytest.raises(LockLost):
        await VERBS[verb](bus, delivery._replace(token=object()))
    await bus.complete(delivery)


async def test_a_renewed_lock_holds_for_another_duration(bus: Bus, backend: Backend) -> None:
    await publish(bus, message(1))
    delivery = await receive_one(bus)
    for _ in range(3):
        await backend.pass_time(seconds=50)
        delivery = await bus.renew(delivery)
        assert delivery.locked_until == backend.now + LOCK
        assert delivery.delivery_count == 1
        assert await receive(bus) == []
    await bus.complete(delivery)


async def test_what_was_delivered_before_a_renewal_settles_after_it(
    bus: Bus, backend: Backend
) -> None:
    await publish(bus, message(1))
    delivery = await receive_one(bus)
    await backend.pass_time(seconds=50)
    await bus.renew(delivery)
    await backend.pass_time(seconds=50)
    await bus.complete(delivery)


async def test_a_renewed_lock_runs_out_too(bus: Bus, backend: Backend) -> None:
    await publish(bus, message(1), message(2))
    renewed, _ = await all_that_come(bus, 2)
    await backend.pass_time(seconds=50)
    await bus.renew(renewed)
    await backend.pass_time(seconds=20)
    assert len(await all_that_come(bus)) == 1
    await backend.pass_time(seconds=45)
    again = await receive_one(bus)
    assert again.message == renewed.message


async def test_a_lock_that_runs_out_ends_the_wait_of_another_receiver(
    bus: Bus, backend: Backend
) -> None:
    await publish(bus, message(1))
    await receive_one(bus)
    async with waiting(bus) as receiver:
        await backend.pass_time(seconds=60)
    (delivery,) = receiver.result()
    assert delivery.delivery_count == 2


async def test_an_abandoned_message_is_available_at_once(bus: Bus) -> None:
    await publish(bus, message(1))
    first = await receive_one(bus)
    await bus.abandon(first)
    second = await receive_one(bus)
    assert (first.delivery_count, second.delivery_count) == (1, 2)
    assert second.message == first.message


async def test_an_abandoned_message_ends_the_wait_of_another_receiver(bus: Bus) -> None:
    await publish(bus, message(1))
    delivery = await receive_one(bus)
    async with waiting(bus) as receiver:
        await bus.abandon(delivery)
    assert ids(receiver.result()) == ["m1"]


@pytest.mark.parametrize("how", ["abandoned", "ran out"])
async def test_a_message_is_delivered_ten_times_and_then_dead(
    bus: Bus, backend: Backend, how: str
) -> None:
    await publish(bus, message(1))
    for count in range(1, 11):
        delivery = await receive_one(bus)
        assert delivery.delivery_count == count
        if how == "abandoned":
            await bus.abandon(delivery)
        else:
            await backend.pass_time(seconds=60)
    assert await receive(bus) == []
    assert reasons(await dead_letters(bus)) == ["MaxDeliveryCountExceeded"]


async def test_the_last_delivery_may_be_completed(bus: Bus, backend: Backend) -> None:
    await backend.subscribe(SubscriptionSettings("once", MatchAll(), max_delivery_count=1))
    await publish(bus, message(1), message(2))
    first, second = await all_that_come(bus, 2, "once")
    await bus.complete(first)
    await bus.abandon(second)
    assert await receive(bus, "once") == []
    assert ids(await dead_letters(bus, "once")) == ids([second])


async def test_subscriptions_count_for_themselves(bus: Bus, backend: Backend) -> None:
    await backend.subscribe(SubscriptionSettings("audit", MatchAll()))
    await publish(bus, message(1))
    await bus.abandon(await receive_one(bus))
    assert (await receive_one(bus, "audit")).delivery_count == 1
