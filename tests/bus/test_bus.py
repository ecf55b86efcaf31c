"""The contract of the port `Bus`, on every adapter: publishing, receiving, being away.

Locks, expiry and dead letters have files of their own beside this one.
"""

import asyncio
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from pathlib import Path

import pytest

import lucius_bus
import lucius_orchestrator.adapters.bus
from lucius_bus.filters import MatchAll, PropertyFilter
from lucius_bus.port import (
    Bus,
    BusError,
    BusMessage,
    BusUnavailable,
    Delivery,
    LockLost,
    PublishRefused,
)
from lucius_bus.topology import SubscriptionSettings, dead_letters_of
from tests.bus.backends import (
    LONG,
    TOPIC,
    VERBS,
    Backend,
    all_that_come,
    ids,
    message,
    of_service,
    publish,
    receive,
    receive_one,
    turns,
    waiting,
)

TOO_LARGE = b"x" * (300 * 1024)


def test_every_adapter_is_in_this_suite() -> None:
    packages = (lucius_bus.__path__[0], lucius_orchestrator.adapters.bus.__path__[0])
    adapters = {path.parent.name for each in packages for path in Path(each).glob("*/__init__.py")}
    parameters = {"memory", "embedded", "servicebus"}  # of the fixture `backend`, beside "sync"
    assert adapters == parameters


async def test_a_message_arrives_as_it_was_published(bus: Bus, backend: Backend) -> None:
    sent = BusMessage(
        "job.step.1.lease.DIRECTIVE",
        b'{"jobId": "job"}',
        {"service": "ocr", "lane": 3},
        partition_key="acme",
        expires_at=backend.now + timedelta(minutes=15),
    )
    await publish(bus, sent)
    delivery = await receive_one(bus)
    assert delivery.message == sent
    assert (delivery.topic, delivery.subscription) == (TOPIC, "ocr")


async def test_every_subscription_whose_filter_matches_has_a_copy_of_its_own(
    bus: Bus, backend: Backend
) -> None:
    await backend.subscribe(SubscriptionSettings("audit", MatchAll()))
    await publish(bus, message(1, "ocr"), message(2, "sis"))
    assert ids(await all_that_come(bus, 1, "ocr")) == ["m1"]
    assert ids(await all_that_come(bus, 1, "sis")) == ["m2"]
    copies = await all_that_come(bus, 2, "audit")
    assert sorted(ids(copies)) == ["m1", "m2"]
    await bus.complete(copies[0])


async def test_a_message_that_no_subscription_matches_is_gone(bus: Bus, backend: Backend) -> None:
    await publish(bus, message(1, "embedding"))
    await backend.subscribe(of_service("embedding"))
    assert await receive(bus, "embedding") == []


async def test_a_filter_wants_all_its_properties_equal(bus: Bus, backend: Backend) -> None:
    wanted = PropertyFilter({"service": "ocr", "lane": 3})
    await backend.subscribe(SubscriptionSettings("both", wanted))
    for number, properties in enumerate(
        [
            {"service": "ocr", "lane": 3, "more": 1},
            {"service": "ocr", "lane": 4},
            {"service": "ocr", "lane": "3"},
            {"service": "OCR", "lane": 3},
            {"service": "ocr"},
            {},
        ]
    ):
        await publish(bus, message(number, properties=properties))
    assert ids(await all_that_come(bus, 1, "both")) == ["m0"]


async def test_a_filter_may_name_the_message_and_the_session(bus: Bus, backend: Backend) -> None:
    await backend.subscribe(
        SubscriptionSettings("named", PropertyFilter(message_id="m1")),
        SubscriptionSettings("of-session", PropertyFilter(session_id="s")),
    )
    await publish(bus, message(1), message(2, session_id="s"), message(3, session_id="other"))
    assert ids(await all_that_come(bus, 1, "named")) == ["m1"]
    assert ids(await all_that_come(bus, 1, "of-session")) == ["m2"]


async def test_a_topic_that_does_not_exist_refuses(bus: Bus) -> None:
    sent = [message(1), message(2)]
    unpublished = await bus.publish("nowhere", sent)
    assert [one.message for one in unpublished] == sent
    assert all(isinstance(one.error, PublishRefused) for one in unpublished)


@pytest.mark.parametrize(
    "refused",
    [
        message(2, body=TOO_LARGE),
        message(2, properties={"service": "ocr", "note": "x" * len(TOO_LARGE)}),
        message(2, message_id="m" * 129),
        message(2, partition_key="p" * 129),
        message(2, partition_key="\N{PAGE FACING UP}" * 65),
        message(2, session_id="s" * 129),
        message(2, session_id="s", partition_key="p"),
    ],
    ids=lambda refused: f"{len(refused.message_id)}-{len(refused.body)}",
)
async def test_a_message_is_refused_alone_and_the_rest_of_its_batch_goes_out(
    bus: Bus, refused: BusMessage
) -> None:
    ((unpublished, error),) = await bus.publish(TOPIC, [message(1), refused, message(3)])
    assert unpublished == refused
    assert isinstance(error, PublishRefused)
    assert sorted(ids(await all_that_come(bus, 2))) == ["m1", "m3"]


async def test_ids_may_be_as_long_as_the_bus_allows(bus: Bus) -> None:
    longest = message(message_id="m" * 128, partition_key="\N{PAGE FACING UP}" * 64)
    await publish(bus, longest)
    assert (await receive_one(bus)).message == longest


async def test_an_empty_batch_is_nothing(bus: Bus) -> None:
    assert await bus.publish(TOPIC, []) == []
    assert await receive(bus) == []


async def test_there_are_never_more_than_were_asked_for(bus: Bus) -> None:
    await publish(bus, *(message(n) for n in range(5)))
    found: list[list[Delivery]] = []
    while sum(map(len, found)) < 5:
        found.append(await receive(bus, limit=3, wait=LONG))
    assert max(map(len, found)) <= 3
    assert sorted(name for each in found for name in ids(each)) == ["m0", "m1", "m2", "m3", "m4"]


async def test_a_receiver_does_not_wait_for_more_than_one(bus: Bus) -> None:
    await publish(bus, message(1))
    assert ids(await receive(bus, limit=10, wait=LONG)) == ["m1"]


async def test_a_message_ends_the_wait(bus: Bus) -> None:
    async with waiting(bus) as receiver:
        await publish(bus, message(1))
    assert ids(receiver.result()) == ["m1"]


async def test_nothing_comes_when_the_wait_is_over(bus: Bus, backend: Backend) -> None:
    assert await receive(bus, wait=timedelta(milliseconds=5)) == []
    async with waiting(bus) as receiver:
        await backend.pass_time(seconds=LONG.total_seconds())
    assert receiver.result() == []


async def test_each_message_goes_to_one_of_those_who_wait(bus: Bus) -> None:
    async with AsyncExitStack() as stack:
        receivers = [await stack.enter_async_context(waiting(bus, limit=1)) for _ in range(5)]
        await publish(bus, *(message(n) for n in range(3)))
        await publish(bus, *(message(n) for n in range(3, 5)))
    received = [one for receiver in receivers for one in ids(receiver.result())]
    assert sorted(received) == ["m0", "m1", "m2", "m3", "m4"]


async def test_a_receiver_that_is_cancelled_takes_nothing_along(bus: Bus) -> None:
    async with waiting(bus) as receiver:
        receiver.cancel()
        await publish(bus, message(1))
    assert (await receive_one(bus)).delivery_count == 1


@pytest.mark.parametrize("subscription", ["nobody", dead_letters_of("nobody")])
async def test_a_subscription_that_does_not_exist_is_an_error(bus: Bus, subscription: str) -> None:
    with pytest.raises(BusError) as error:
        await receive(bus, subscription, wait=LONG)
    assert not isinstance(error.value, PublishRefused | BusUnavailable | LockLost)


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_below_one_is_an_error(bus: Bus, limit: int) -> None:
    with pytest.raises(ValueError, match="limit"):
        await receive(bus, limit=limit)


async def test_nothing_goes_out_while_the_bus_is_away(bus: Bus, backend: Backend) -> None:
    await backend.go_away()
    sent = [message(1), message(2)]
    unpublished = await bus.publish(TOPIC, sent)
    assert [one.message for one in unpublished] == sent
    assert all(isinstance(one.error, BusUnavailable) for one in unpublished)
    await backend.come_back()
    assert await receive(bus) == []


async def test_a_check_says_whether_the_bus_can_be_reached(bus: Bus, backend: Backend) -> None:
    await bus.check()
    await backend.go_away()
    with pytest.raises(BusUnavailable):
        await bus.check()
    await backend.come_back()
    await bus.check()


@pytest.mark.parametrize("verb", VERBS)
async def test_what_was_there_is_there_when_the_bus_comes_back(
    bus: Bus, backend: Backend, verb: str
) -> None:
    await publish(bus, message(1), message(2))
    held = await receive_one(bus)
    await backend.go_away()
    with pytest.raises(BusUnavailable):
        await receive(bus, wait=LONG)
    with pytest.raises(BusUnavailable):
        await VERBS[verb](bus, held)
    await backend.come_back()
    await bus.complete(held)
    assert len(await all_that_come(bus)) == 1


async def test_locks_run_out_while_the_bus_is_away(bus: Bus, backend: Backend) -> None:
    await publish(bus, message(1))
    held = await receive_one(bus)
    await backend.go_away()
    await backend.pass_time(seconds=60)
    await backend.come_back()
    with pytest.raises(LockLost):
        await bus.complete(held)
    assert (await receive_one(bus)).delivery_count == 2


async def test_a_bus_that_goes_away_ends_the_wait(bus: Bus, backend: Backend) -> None:
    receiver = asyncio.create_task(receive(bus, wait=LONG))
    await turns()
    await backend.go_away()
    with pytest.raises(BusUnavailable):
        await receiver


async def test_closing_ends_the_wait(bus: Bus) -> None:
    receiver = asyncio.create_task(receive(bus, wait=LONG))
    await turns()
    await bus.close()
    with suppress(BusUnavailable):
        assert await receiver == []


async def test_a_closed_bus_does_nothing_more_and_may_be_closed_again(bus: Bus) -> None:
    await publish(bus, message(1))
    delivery = await receive_one(bus)
    await bus.close()
    await bus.close()
    ((_, error),) = await bus.publish(TOPIC, [message(2)])
    assert isinstance(error, BusUnavailable)
    with pytest.raises(BusUnavailable):
        await receive(bus)
    for verb in VERBS.values():
        with pytest.raises(BusUnavailable):
            await verb(bus, delivery)
