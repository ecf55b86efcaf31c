"""The contract of the port `Bus`, on every adapter: messages that expire or cannot be handled."""

from datetime import timedelta

import pytest

from lucius_bus.filters import MatchAll
from lucius_bus.port import (
    Bus,
    BusError,
    LockLost,
)
from lucius_bus.topology import SubscriptionSettings, dead_letters_of
from tests.bus.backends import (
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


async def test_a_message_that_expired_is_not_delivered(bus: Bus, backend: Backend) -> None:
    soon = backend.now + timedelta(minutes=1)
    await publish(bus, message(1, expires_at=soon), message(2))
    await backend.pass_time(minutes=1)
    assert ids(await all_that_come(bus)) == ["m2"]
    assert await dead_letters(bus, count=0) == []


async def test_a_subscription_may_keep_what_expired_among_the_dead_letters(
    bus: Bus, backend: Backend
) -> None:
    await backend.subscribe(SubscriptionSettings("kept", MatchAll(), dead_letter_on_expiry=True))
    await publish(bus, message(1, expires_at=backend.now + timedelta(minutes=1)), message(2))
    await backend.pass_time(minutes=1)
    dead = await dead_letters(bus, "kept")
    assert (ids(dead), reasons(dead)) == (["m1"], ["TTLExpiredException"])
    assert ids(await all_that_come(bus, 1, "kept")) == ["m2"]


async def test_a_message_does_not_expire_while_it_is_held(bus: Bus, backend: Backend) -> None:
    await publish(bus, message(1, expires_at=backend.now + timedelta(seconds=30)))
    delivery = await receive_one(bus)
    await backend.pass_time(seconds=40)
    await bus.complete(await bus.renew(delivery))


@pytest.mark.parametrize("how", ["abandoned", "ran out"])
async def test_expiry_strikes_when_the_message_is_not_held_any_more(
    bus: Bus, backend: Backend, how: str
) -> None:
    await backend.subscribe(SubscriptionSettings("kept", MatchAll(), dead_letter_on_expiry=True))
    await publish(bus, message(1, expires_at=backend.now + timedelta(seconds=30)))
    delivery = await receive_one(bus, "kept")
    await backend.pass_time(seconds=40)
    if how == "abandoned":
        await bus.abandon(delivery)
    else:
        await backend.pass_time(seconds=20)
    assert await receive(bus, "kept") == []
    assert reasons(await dead_letters(bus, "kept")) == ["TTLExpiredException"]


async def test_expiry_of_an_abandoned_message_ends_the_wait_for_dead_letters(
    bus: Bus, backend: Backend
) -> None:
    await backend.subscribe(SubscriptionSettings("kept", MatchAll(), dead_letter_on_expiry=True))
    await publish(bus, message(1, expires_at=backend.now + timedelta(seconds=30)))
    delivery = await receive_one(bus, "kept")
    await backend.pass_time(seconds=40)
    async with waiting(bus, dead_letters_of("kept")) as receiver:
        await bus.abandon(delivery)
    assert reasons(receiver.result()) == ["TTLExpiredException"]


async def test_a_subscription_keeps_no_message_longer_than_its_own_time(
    bus: Bus, backend: Backend
) -> None:
    ttl = timedelta(minutes=1)
    await backend.subscribe(SubscriptionSettings("brief", MatchAll(), default_ttl=ttl))
    sooner, later = backend.now + ttl / 2, backend.now + ttl * 2
    await publish(bus, message(1), message(2, expires_at=later), message(3, expires_at=sooner))
    await backend.pass_time(seconds=30)
    held = await all_that_come(bus, 2, "brief")
    assert sorted(ids(held)) == ["m1", "m2"]
    await backend.pass_time(seconds=30)
    for delivery in held:
        await bus.abandon(delivery)
    assert await receive(bus, "brief") == []


async def test_a_dead_letter_says_why_and_is_else_as_it_was(bus: Bus) -> None:
    await publish(bus, message(1))
    delivery = await receive_one(bus)
    await bus.dead_letter(delivery, "Unreadable", "not JSON")
    assert await receive(bus) == []
    (dead,) = await dead_letters(bus)
    why = {"DeadLetterReason": "Unreadable", "DeadLetterErrorDescription": "not JSON"}
    assert dead.message.properties == {**delivery.message.properties, **why}
    assert (dead.message.message_id, dead.message.body) == ("m1", b"1")
    assert dead.subscription == dead_letters_of("ocr")


async def test_a_dead_letter_is_gone_when_it_is_completed(bus: Bus, backend: Backend) -> None:
    await publish(bus, message(1))
    await bus.dead_letter(await receive_one(bus), "Unreadable", "not JSON")
    (dead,) = await dead_letters(bus)
    assert await dead_letters(bus, count=0) == []
    await bus.complete(dead)
    await backend.pass_time(minutes=5)
    assert await dead_letters(bus, count=0) == []
    with pytest.raises(LockLost):
        await bus.complete(dead)


async def test_a_dead_letter_is_locked_as_any_message(bus: Bus, backend: Backend) -> None:
    await publish(bus, message(1))
    await bus.dead_letter(await receive_one(bus), "Unreadable", "not JSON")
    (late,) = await dead_letters(bus)
    await backend.pass_time(seconds=60)
    with pytest.raises(LockLost):
        await bus.complete(late)
    (dead,) = await dead_letters(bus)
    await backend.pass_time(seconds=50)
    dead = await bus.renew(dead)
    await backend.pass_time(seconds=50)
    await bus.complete(dead)


async def test_a_dead_letter_stays_however_often_and_late_it_is_given_back(
    bus: Bus, backend: Backend
) -> None:
    await publish(bus, message(1, expires_at=backend.now + timedelta(minutes=1)))
    await bus.dead_letter(await receive_one(bus), "Unreadable", "not JSON")
    for _ in range(25):
        await bus.abandon(await receive_one(bus, dead_letters_of("ocr")))
    await backend.pass_time(hours=1)
    assert reasons(await dead_letters(bus)) == ["Unreadable"]


async def test_a_dead_letter_cannot_die_again(bus: Bus) -> None:
    await publish(bus, message(1))
    await bus.dead_letter(await receive_one(bus), "Unreadable", "not JSON")
    (dead,) = await dead_letters(bus)
    with pytest.raises(BusError):
        await bus.dead_letter(dead, "StillUnreadable", "not JSON")
    await bus.complete(dead)


async def test_a_dead_letter_ends_the_wait_of_who_receives_them(bus: Bus, backend: Backend) -> None:
    await backend.subscribe(SubscriptionSettings("once", MatchAll(), max_delivery_count=1))
    await publish(bus, message(1))
    await receive_one(bus, "once")
    async with waiting(bus, dead_letters_of("once")) as receiver:
        await backend.pass_time(seconds=60)
    assert reasons(receiver.result()) == ["MaxDeliveryCountExceeded"]
