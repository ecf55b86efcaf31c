"""What the bus on Service Bus promises beyond the port: batches, throttling, connections that
break, one call at a time, secrets."""

import asyncio
import itertools
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusMessageBatch
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.exceptions import ServiceBusError

from lucius_bus.port import (
    Bus,
    BusError,
    BusMessage,
    BusUnavailable,
    Delivery,
    LockLost,
)
from lucius_bus.servicebus import ServiceBusBus, default_credential
from lucius_bus.servicebus.client import (
    Client,
    Receiver,
    Sender,
    client_options,
)
from lucius_bus.servicebus.reaching import Endpoint, reach
from servicebus_emulator.faults import Fault, FaultKind, Point
from tests.bus.backends import (
    AT_ONCE,
    KEY,
    LONG,
    OCR,
    SETTINGS,
    TOPIC,
    VERBS,
    ServiceBusBackend,
    all_that_come,
    connection_string,
    dead_letters,
    ids,
    message,
    publish,
    receive,
    receive_one,
    turns,
    waiting,
)
from tests.runner.deadlines import DEADLINE, seconds

SUBSCRIPTION = f"{TOPIC}/Subscriptions/{OCR}"
KILOBYTE = b"x" * 1024


@pytest.fixture
def backend(servicebus_backend: ServiceBusBackend) -> ServiceBusBackend:
    return servicebus_backend


def strike(backend: ServiceBusBackend, kind: FaultKind, point: Point) -> None:
    entity = TOPIC if point is Point.SEND else SUBSCRIPTION
    backend.emulator.faults.add(Fault(kind, entity, point))


async def drained(bus: Bus, count: int) -> list[Delivery]:
    """All that come, completed, until there are as many."""
    deliveries: list[Delivery] = []
    async with asyncio.timeout(2 * DEADLINE):
        while len(deliveries) < count:
            found = await bus.receive(TOPIC, OCR, count, LONG)
            deliveries += found
            for delivery in found:
                await bus.complete(delivery)
    return deliveries


async def test_a_settlement_that_is_only_sent_arrives(backend: ServiceBusBackend) -> None:
    """And a lock that was lost meanwhile is no error."""
    text = connection_string(backend.emulator.port)
    settings = replace(SETTINGS, confirms_settlements=False)
    bus = ServiceBusBus.from_connection_string(text, settings=settings, clock=backend.clock)
    await publish(bus, message(1), message(2))
    first, second = await receive_one(bus), await receive_one(bus)
    await bus.complete(first)
    async with asyncio.timeout(DEADLINE):
        while backend.emulator.broker.counts(SUBSCRIPTION).active > 1:
            await turns()
    await backend.pass_time(minutes=2)
    await bus.abandon(second)
    await bus.close()
    assert ids(await drained(backend.bus, 1)) == ["m2"]


async def test_to_connect_is_not_to_read_the_authorities_again(
    backend: ServiceBusBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = connection_string(backend.emulator.port)
    bus = ServiceBusBus.from_connection_string(text, settings=SETTINGS, clock=backend.clock)
    read: list[object] = []
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *given: read.append(given))
    await publish(bus, message(1))
    assert ids(await receive(bus, wait=LONG)) == ["m1"]
    await bus.close()
    assert read == []


class Watched:
    """A handler of the client that tells what is called, and how much of it at once."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._running = 0
        self.most = 0
        self.calls: list[str] = []
        self.is_closed = False

    @property
    def _handler(self) -> Any:
        return self._inner._handler

    async def __aenter__(self) -> object:
        return await self._inner.__aenter__()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._inner, name)

        async def call(*args: Any, **options: Any) -> Any:
            self.calls.append(name)
            self._running += 1
            self.most = max(self.most, self._running)
            try:
                return await method(*args, **options)
            finally:
                self._running -= 1
                self.is_closed |= name == "close"

        return call


class SlowReceiver(Watched):
    """Tells when messages have come, before it answers."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.on_arrival: Callable[[], object] = lambda: None
        self.has_answered = asyncio.Event()

    async def receive_messages(self, *args: Any) -> list[Any]:
        found: list[Any] = await self._inner.receive_messages(*args)
        if found:
            self.on_arrival()
            await turns()
            self.has_answered.set()
        return found


class PartitionedSender(Watched):
    """A sender to a partitioned topic, which takes no batch of more than one partition key."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.batches: list[list[str | None]] = []

    async def send_messages(self, sent: ServiceBusMessage | ServiceBusMessageBatch) -> None:
        messages = getattr(sent, "_messages", [sent])
        self.batches.append([one.partition_key for one in messages])
        if len({one.session_id or one.partition_key for one in messages}) > 1:
            raise ServiceBusError("mixed keys", condition="amqp:not-allowed")
        await self._inner.send_messages(sent)


class WatchedClient:
    def __init__(
        self, port: int, senders: type[Watched] = Watched, receivers: type[Watched] = Watched
    ) -> None:
        text = connection_string(port)
        self._client = ServiceBusClient.from_connection_string(text, **client_options(SETTINGS))
        self._kinds = senders, receivers
        self.senders: list[Watched] = []
        self.receivers: list[Watched] = []

    def get_topic_sender(self, *args: Any, **options: Any) -> Sender:
        self.senders.append(self._kinds[0](self._client.get_topic_sender(*args, **options)))
        return cast(Sender, self.senders[-1])

    def get_subscription_receiver(self, *args: Any, **options: Any) -> Receiver:
        receiver = self._client.get_subscription_receiver(*args, **options)
        self.receivers.append(self._kinds[1](receiver))
        return cast(Receiver, self.receivers[-1])

    async def close(self) -> None:
        await self._client.close()


def made_bus(client: Client, backend: ServiceBusBackend, **settings: Any) -> ServiceBusBus:
    endpoint = Endpoint(f"127.0.0.1:{backend.emulator.port}", is_plain=True)
    return ServiceBusBus.of_client(client, endpoint, replace(SETTINGS, **settings), backend.clock)


async def test_a_batch_that_does_not_fit_goes_out_in_several(backend: ServiceBusBackend) -> None:
    sent = [message(n, body=KILOBYTE * 2) for n in range(400)]
    await publish(backend.bus, *sent)
    received = await drained(backend.bus, len(sent))
    assert sorted(ids(received)) == sorted(one.message_id for one in sent)


async def test_messages_of_more_than_half_a_transfer_go_one_by_one(
    backend: ServiceBusBackend,
) -> None:
    await publish(backend.bus, *(message(n, body=KILOBYTE * 200) for n in range(3)))
    assert sorted(ids(await drained(backend.bus, 3))) == ["m0", "m1", "m2"]


async def test_the_refused_of_a_long_batch_are_named_and_all_others_arrive(
    backend: ServiceBusBackend,
) -> None:
    sent = [message(n, body=KILOBYTE) for n in range(40)]
    bad = [message(n, body=KILOBYTE * 300) for n in (100, 101)]
    bad.append(message(102, properties={"service": OCR, "large": 2**80}))
    bad.append(message(103, partition_key="\N{PAGE FACING UP}" * 65))
    mixed = [*sent[:10], bad[0], *sent[10:20], bad[1], bad[2], *sent[20:], bad[3]]
    unpublished = await backend.bus.publish(TOPIC, mixed)
    assert sorted(one.message.message_id for one in unpublished) == sorted(
        one.message_id for one in bad
    )
    assert sorted(ids(await drained(backend.bus, 40))) == sorted(one.message_id for one in sent)


def keyed(count: int) -> list[BusMessage]:
    return [message(n, partition_key=f"tenant-{n % 3}") for n in range(count)]


async def test_a_topic_without_partitions_gets_all_keys_in_one_batch(
    backend: ServiceBusBackend,
) -> None:
    client = WatchedClient(backend.emulator.port)
    bus = made_bus(client, backend)
    await publish(bus, *keyed(9))
    assert len(await drained(backend.bus, 9)) == 9
    assert client.senders[0].calls == ["create_message_batch", "send_messages"]
    await bus.close()


def batches_of(client: WatchedClient) -> list[list[str | None]]:
    senders = [sender for sender in client.senders if isinstance(sender, PartitionedSender)]
    return [batch for sender in senders for batch in sender.batches]


async def test_a_topic_that_is_known_to_be_partitioned_gets_one_key_a_batch(
    backend: ServiceBusBackend,
) -> None:
    client = WatchedClient(backend.emulator.port, senders=PartitionedSender)
    bus = made_bus(client, backend, is_partitioned=True)
    await publish(bus, *keyed(9), message(9, session_id="tenant-1"))
    assert batches_of(client) == [["tenant-0"] * 3, ["tenant-1"] * 3 + [None], ["tenant-2"] * 3]
    await bus.close()


async def test_a_topic_that_refuses_mixed_keys_gets_them_apart_from_then_on(
    backend: ServiceBusBackend,
) -> None:
    client = WatchedClient(backend.emulator.port, senders=PartitionedSender)
    bus = made_bus(client, backend)
    await publish(bus, *keyed(9))
    await publish(bus, *keyed(9))
    assert len(await drained(backend.bus, 18)) == 18
    refused, *batches = batches_of(client)
    assert len(set(refused)) == 3
    assert batches == [[f"tenant-{n}"] * 3 for n in range(3)] * 2
    await bus.close()


async def test_what_a_refused_batch_had_no_room_for_is_kept_apart_too(
    backend: ServiceBusBackend,
) -> None:
    client = WatchedClient(backend.emulator.port, senders=PartitionedSender)
    bus = made_bus(client, backend)
    sent = [one._replace(body=KILOBYTE) for one in keyed(600)]
    await publish(bus, *sent)
    _, *batches = batches_of(client)
    assert all(len(set(batch)) == 1 for batch in batches)
    assert len(batches) < 12
    await bus.close()


async def test_a_topic_that_asks_to_slow_down_is_left_alone_for_as_long(
    backend: ServiceBusBackend,
) -> None:
    bus = backend.bus
    strike(backend, FaultKind.REFUSE, Point.SEND)
    for _ in range(2):  # the second time nobody asks: the fault would be over
        ((_, error),) = await bus.publish(TOPIC, [message(1)])
        assert isinstance(error, BusUnavailable)
        await backend.pass_time(seconds=9)
    assert backend.emulator.faults.active() == []
    await backend.pass_time(seconds=1)
    await publish(bus, message(2))
    assert ids(await all_that_come(bus)) == ["m2"]


async def test_a_topic_that_asks_to_slow_down_still_gets_settlements(
    backend: ServiceBusBackend,
) -> None:
    bus = backend.bus
    await publish(bus, message(1))
    held = await receive_one(bus)
    strike(backend, FaultKind.REFUSE, Point.SEND)
    assert len(await bus.publish(TOPIC, [message(2)])) == 1
    with pytest.raises(BusUnavailable, match="left alone"):
        await receive(bus)
    await bus.complete(held)
    await backend.pass_time(seconds=10)
    assert await receive(bus) == []


async def test_a_subscription_that_asks_to_slow_down_is_left_alone(
    backend: ServiceBusBackend,
) -> None:
    bus = backend.bus
    await publish(bus, message(1))
    strike(backend, FaultKind.REFUSE, Point.RECEIVE)
    with pytest.raises(BusUnavailable):
        await receive(bus, wait=LONG)
    with pytest.raises(BusUnavailable, match="left alone"):
        await receive(bus)
    await backend.pass_time(seconds=10)
    assert ids(await all_that_come(bus)) == ["m1"]


async def test_a_settlement_that_was_too_much_can_be_repeated(backend: ServiceBusBackend) -> None:
    bus = backend.bus
    await publish(bus, message(1))
    held = await receive_one(bus)
    strike(backend, FaultKind.REFUSE, Point.SETTLE)
    with pytest.raises(BusUnavailable):
        await bus.complete(held)
    with pytest.raises(BusUnavailable, match="left alone"):
        await receive(bus)
    await bus.complete(held)


async def test_a_connection_that_is_dropped_instead_of_a_send_is_made_anew(
    backend: ServiceBusBackend,
) -> None:
    strike(backend, FaultKind.DROP, Point.SEND)
    await publish(backend.bus, message(1), message(2))
    assert sorted(ids(await all_that_come(backend.bus, 2))) == ["m1", "m2"]


async def test_what_was_sent_but_never_confirmed_may_come_twice(
    backend: ServiceBusBackend,
) -> None:
    strike(backend, FaultKind.LOSE_ANSWER, Point.SEND)
    await publish(backend.bus, message(1))
    assert set(ids(await all_that_come(backend.bus))) == {"m1"}


async def test_a_connection_that_is_dropped_during_a_receive_is_made_anew(
    backend: ServiceBusBackend,
) -> None:
    strike(backend, FaultKind.DROP, Point.RECEIVE)
    await publish(backend.bus, message(1))
    delivery = (await receive(backend.bus, wait=LONG))[0]
    assert (ids([delivery]), delivery.delivery_count) == (["m1"], 1)


async def test_a_receiver_that_waits_survives_a_connection_that_breaks(
    backend: ServiceBusBackend,
) -> None:
    async with waiting(backend.bus) as receiver:
        backend.emulator.drop_connections()
        await publish(backend.bus, message(1))
    assert ids(receiver.result()) == ["m1"]


@pytest.mark.parametrize("verb", VERBS)
async def test_a_message_is_settled_over_a_new_connection(
    backend: ServiceBusBackend, verb: str
) -> None:
    await publish(backend.bus, message(1))
    held = await receive_one(backend.bus)
    backend.emulator.drop_connections()
    await VERBS[verb](backend.bus, held)
    if verb == "renew":
        await backend.bus.complete(held)
    with pytest.raises(LockLost):
        await backend.bus.complete(held)


async def test_a_connection_that_is_dropped_instead_of_a_settlement_is_made_anew(
    backend: ServiceBusBackend,
) -> None:
    await publish(backend.bus, message(1))
    held = await receive_one(backend.bus)
    strike(backend, FaultKind.DROP, Point.SETTLE)
    await backend.bus.complete(held)
    await backend.pass_time(seconds=60)
    assert await receive(backend.bus) == []


async def test_what_was_settled_but_never_confirmed_is_settled(backend: ServiceBusBackend) -> None:
    await publish(backend.bus, message(1))
    held = await receive_one(backend.bus)
    strike(backend, FaultKind.LOSE_ANSWER, Point.SETTLE)
    with suppress(LockLost):  # the second try cannot know that the first was heard
        await backend.bus.complete(held)
    await backend.pass_time(seconds=60)
    assert await receive(backend.bus) == []
    assert await dead_letters(backend.bus, count=0) == []


async def test_a_receiver_and_a_sender_make_one_call_at_a_time(
    backend: ServiceBusBackend,
) -> None:
    client = WatchedClient(backend.emulator.port)
    bus = made_bus(client, backend)

    async def produce(number: int) -> None:
        await publish(bus, message(number))

    async def consume() -> None:
        for delivery in await receive(bus, limit=3, wait=LONG):
            await bus.renew(delivery)
            await bus.complete(delivery)

    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        for number in range(12):
            tasks.create_task(produce(number))
            tasks.create_task(consume())
        await asyncio.sleep(0)
        for number in range(12, 48):
            tasks.create_task(produce(number))
    assert [handler.most for handler in client.senders + client.receivers] == [1, 1]
    await bus.close()


async def test_two_thousand_messages_come_once_each_to_competing_and_impatient_receivers(
    backend: ServiceBusBackend,
) -> None:
    count = 2000
    other = ServiceBusBus.from_connection_string(
        connection_string(backend.emulator.port), settings=SETTINGS, clock=backend.clock
    )
    received: list[Delivery] = []

    async def consume(bus: Bus) -> None:
        for turn in itertools.count():
            if len(received) >= count:
                return
            task = asyncio.create_task(bus.receive(TOPIC, OCR, 100, timedelta(seconds=1)))
            if turn % 5 == 0:
                await asyncio.wait({task}, timeout=0.03)
                task.cancel()
            for delivery in await _result(task):
                received.append(delivery)
                await bus.complete(delivery)

    async with asyncio.timeout(seconds(90)):
        await publish(backend.bus, *(message(n, body=KILOBYTE) for n in range(count)))
        await asyncio.gather(consume(backend.bus), consume(other))
    await other.close()
    assert sorted(ids(received)) == sorted(f"m{n}" for n in range(count))
    assert {delivery.delivery_count for delivery in received} == {1}


async def _result(task: asyncio.Task[list[Delivery]]) -> list[Delivery]:
    await asyncio.wait({task})
    return [] if task.cancelled() else task.result()


async def cancelled_on_arrival(bus: Bus, client: WatchedClient, sent: BusMessage) -> None:
    """A receiver is cancelled at the moment at which its message has come."""
    async with waiting(bus) as receiver:
        async with asyncio.timeout(DEADLINE):
            while not client.receivers:
                await asyncio.sleep(0)
        (handler,) = client.receivers
        assert isinstance(handler, SlowReceiver)
        handler.on_arrival = receiver.cancel
        await publish(bus, sent)
    assert receiver.cancelled()
    async with asyncio.timeout(DEADLINE):
        await handler.has_answered.wait()
    await turns()


@pytest.mark.parametrize("later", range(10, 17))
async def test_no_message_is_lost_at_whatever_moment_its_receiver_is_cancelled(
    backend: ServiceBusBackend, later: int
) -> None:
    """That many turns of the event loop after it has come: it is handed out in one of them."""
    client = WatchedClient(backend.emulator.port, receivers=SlowReceiver)
    bus = made_bus(client, backend)
    loop = asyncio.get_running_loop()
    async with waiting(bus) as receiver:
        async with asyncio.timeout(DEADLINE):
            while not client.receivers:
                await asyncio.sleep(0)

        def cancel_after(more: int) -> None:
            if more:
                loop.call_soon(cancel_after, more - 1)
            else:
                receiver.cancel()

        (handler,) = client.receivers
        assert isinstance(handler, SlowReceiver)
        handler.on_arrival = lambda: cancel_after(later)
        await publish(bus, message(1))
        async with asyncio.timeout(DEADLINE):
            await asyncio.wait({receiver})
    delivery = await receive_one(bus) if receiver.cancelled() else receiver.result()[0]
    assert (ids([delivery]), delivery.delivery_count) == (["m1"], 1)
    await bus.close()


async def test_what_came_for_a_receiver_that_has_gone_is_for_the_next(
    backend: ServiceBusBackend,
) -> None:
    client = WatchedClient(backend.emulator.port, receivers=SlowReceiver)
    bus = made_bus(client, backend)
    await cancelled_on_arrival(bus, client, message(1))
    delivery = await receive_one(bus)
    assert (ids([delivery]), delivery.delivery_count) == (["m1"], 1)
    await bus.close()


async def test_what_came_for_a_receiver_that_has_gone_is_given_back_in_time(
    backend: ServiceBusBackend,
) -> None:
    client = WatchedClient(backend.emulator.port, receivers=SlowReceiver)
    bus = made_bus(client, backend, linger=timedelta(0))
    await cancelled_on_arrival(bus, client, message(1))
    (delivery,) = await receive(backend.bus, wait=LONG)
    assert delivery.delivery_count == 2
    await bus.close()


async def test_a_receiver_that_nobody_uses_stands_in_nobodys_way(
    backend: ServiceBusBackend,
) -> None:
    """It has asked for more than came and would be sent the rest, which the client by itself gives
    back every five seconds: it is closed when nobody uses it."""
    client = WatchedClient(backend.emulator.port)
    bus = made_bus(client, backend, linger=timedelta(0))
    await publish(backend.bus, message(1))
    held = await receive_one(bus)
    assert await receive(bus) == []
    async with asyncio.timeout(DEADLINE):
        while not all(receiver.is_closed for receiver in client.receivers):
            await turns()
    async with waiting(backend.bus) as receiver:
        await publish(backend.bus, message(2))
    assert ids(receiver.result()) == ["m2"]
    await bus.complete(held)
    await bus.close()


async def test_what_was_asked_for_and_did_not_come_is_taken_back(
    backend: ServiceBusBackend,
) -> None:
    """A service whose slots are taken receives no more: nothing may be locked for it meanwhile."""
    client = WatchedClient(backend.emulator.port)
    bus = made_bus(client, backend, withdraw=timedelta(0))
    assert await receive(bus) == []
    await credit_gone(client)
    async with waiting(backend.bus, limit=1) as receiver:
        await publish(backend.bus, message(1))
    (delivery,) = receiver.result()
    assert (ids([delivery]), delivery.delivery_count) == (["m1"], 1)
    await publish(backend.bus, message(2))
    assert ids(await receive(bus, wait=LONG)) == ["m2"]
    assert not any(each.is_closed for each in client.receivers)
    await bus.close()


async def test_what_came_before_that_is_given_back(backend: ServiceBusBackend) -> None:
    client = WatchedClient(backend.emulator.port)
    bus = made_bus(client, backend, withdraw=timedelta(seconds=0.3))
    assert await receive(bus) == []
    await publish(backend.bus, message(1))
    (delivery,) = await receive(backend.bus, wait=LONG)
    assert ids([delivery]) == ["m1"]
    assert not any(each.is_closed for each in client.receivers)
    await bus.close()


async def credit_gone(client: WatchedClient) -> None:
    async with asyncio.timeout(DEADLINE):
        while any(each._handler._link.current_link_credit for each in client.receivers):
            await turns()


async def test_closing_gives_back_what_is_held(backend: ServiceBusBackend) -> None:
    other = ServiceBusBus.from_connection_string(
        connection_string(backend.emulator.port), settings=SETTINGS, clock=backend.clock
    )
    await publish(backend.bus, message(1))
    await receive_one(other)
    assert await receive(backend.bus) == []
    await other.close()
    assert ids(await all_that_come(backend.bus)) == ["m1"]


async def test_a_message_whose_lock_ran_out_on_the_way_is_not_handed_out(
    backend: ServiceBusBackend,
) -> None:
    assert await receive(backend.bus) == []  # the bus may send the next message by itself
    await publish(backend.bus, message(1))
    await backend.pass_time(seconds=61)
    (delivery,) = await all_that_come(backend.bus)
    assert delivery.locked_until > backend.now
    await backend.bus.complete(delivery)


async def test_secrets_are_in_no_error_and_in_no_log(
    backend: ServiceBusBackend, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bus, errors = backend.bus, list[BusError]()
    await publish(bus, message(1))
    held = await receive_one(bus)
    errors += [one.error for one in await bus.publish("nowhere", [message(2)])]
    await backend.go_away()
    for attempt in (receive(bus), bus.complete(held), bus.check()):
        with pytest.raises(BusError) as caught:
            await attempt
        errors.append(caught.value)
    errors += [one.error for one in await bus.publish(TOPIC, [message(2)])]
    assert len(errors) == 5
    assert KEY not in "".join(map(repr, [bus, *errors]))
    assert len(caplog.records) > 0
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        "",
        KEY,
        f"Endpoint=sb://;SharedAccessKey={KEY}",
        f"SharedAccessKeyName=x;SharedAccessKey={KEY}",
        f"Endpoint=sb://host;SharedAccessKey={KEY}",
    ],
)
def test_a_connection_string_that_cannot_be_read_is_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="connection string") as error:
        ServiceBusBus.from_connection_string(text)
    assert KEY not in str(error.value)
    assert error.value.__cause__ is None


async def test_what_does_not_speak_amqp_is_not_a_bus() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(8)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(BusUnavailable, match="AMQP"):
        await reach(Endpoint(f"127.0.0.1:{port}", is_plain=True), timedelta(seconds=DEADLINE))
    server.close()
    await server.wait_closed()


async def test_a_bus_with_an_identity_is_away_while_nobody_answers() -> None:
    """Without TLS on this machine's port of Service Bus there is nobody."""
    credential = default_credential()
    bus = ServiceBusBus("127.0.0.1", credential, settings=SETTINGS)
    try:
        ((_, error),) = await bus.publish(TOPIC, [message(1)])
        assert isinstance(error, BusUnavailable)
        with pytest.raises(BusUnavailable):
            await bus.receive(TOPIC, OCR, 1, AT_ONCE)
        with pytest.raises(BusUnavailable):
            await bus.check()
    finally:
        await bus.close()
        await credential.close()
