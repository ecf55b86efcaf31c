"""What the Python client offers beyond the orchestrator's own use, against the emulator. The client
for JavaScript is asked the same in `javascript/`."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from azure.servicebus import (
    NEXT_AVAILABLE_SESSION,
    ServiceBusMessage,
    ServiceBusMessageState,
    ServiceBusReceivedMessage,
    ServiceBusReceiveMode,
    ServiceBusSubQueue,
)
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver
from azure.servicebus.exceptions import (
    MessageNotFoundError,
    MessageSizeExceededError,
    MessagingEntityNotFoundError,
    OperationTimeoutError,
    SessionCannotBeLockedError,
    SessionLockLostError,
)

from servicebus_emulator.broker import QueueSettings, SubscriptionSettings, TopicSettings
from servicebus_emulator.messages import Message
from servicebus_emulator.rules import Rule, SqlFilter
from servicebus_emulator.server import Emulator, wall_clock
from tests.runner.deadlines import DEADLINE, seconds

QUEUE, SESSIONS, UNIQUE, TOPIC = "work", "sessions", "unique", "events"


class Clock:
    """The real time, and what it is ahead of it."""

    ahead = 0

    def __call__(self) -> int:
        return wall_clock() + self.ahead


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    emulator = Emulator(clock=Clock())
    broker = emulator.broker
    broker.create_queue(QUEUE, QueueSettings())
    broker.create_queue(SESSIONS, QueueSettings(requires_session=True))
    broker.create_queue(UNIQUE, QueueSettings(requires_duplicate_detection=True))
    broker.create_topic(TOPIC, TopicSettings())
    sql = "service IN ('ocr', 'sis') AND lane > 3 AND note IS NULL AND EXISTS(service)"
    rules = [Rule("some", SqlFilter(sql))]
    broker.create_subscription(TOPIC, "some", SubscriptionSettings(), rules)
    broker.create_subscription(TOPIC, "all", SubscriptionSettings())
    await emulator.start()
    async with asyncio.timeout(seconds(90)):
        yield emulator
    await emulator.stop()


@pytest.fixture
async def client(emulator: Emulator) -> AsyncIterator[ServiceBusClient]:
    connection = emulator.connection_string
    async with ServiceBusClient.from_connection_string(connection, retry_total=0) as client:
        yield client


def pass_time(emulator: Emulator, seconds: int) -> None:
    assert isinstance(emulator.clock, Clock)
    emulator.clock.ahead += seconds * 1000
    emulator.tick()


async def send(client: ServiceBusClient, queue: str, *messages: ServiceBusMessage) -> None:
    async with client.get_queue_sender(queue) as sender:
        await sender.send_messages(list(messages))


async def received(receiver: ServiceBusReceiver, count: int) -> list[ServiceBusReceivedMessage]:
    """At least so many: they may come one by one."""
    found: list[ServiceBusReceivedMessage] = []
    while len(found) < count:
        found += await receiver.receive_messages(count - len(found), max_wait_time=DEADLINE)
    return found


async def test_a_deferred_message_is_received_by_its_number(client: ServiceBusClient) -> None:
    await send(client, QUEUE, ServiceBusMessage(b"later"))
    async with client.get_queue_receiver(QUEUE) as receiver:
        (message,) = await receiver.receive_messages(max_wait_time=DEADLINE)
        await receiver.defer_message(message)
        number = message.sequence_number
        assert number is not None
        (peeked,) = await receiver.peek_messages(sequence_number=number)
        assert peeked.state is ServiceBusMessageState.DEFERRED
        (deferred,) = await receiver.receive_deferred_messages(number)
        assert b"".join(deferred.body) == b"later"
        await receiver.complete_message(deferred)
        with pytest.raises(MessageNotFoundError):
            await receiver.receive_deferred_messages(number)


@pytest.mark.parametrize("place", [QUEUE, TOPIC])
async def test_a_scheduled_message_comes_when_it_is_due_unless_it_is_cancelled(
    client: ServiceBusClient, emulator: Emulator, place: str
) -> None:
    due = datetime.now(UTC) + timedelta(hours=1)
    sender, receiver = client.get_queue_sender(place), client.get_queue_receiver(place)
    if place == TOPIC:
        sender, receiver = (
            client.get_topic_sender(place),
            client.get_subscription_receiver(TOPIC, "all"),
        )
    messages = [ServiceBusMessage(b"%d" % n) for n in range(3)]
    async with sender, receiver:
        _, second, _ = await sender.schedule_messages(messages, due)
        await sender.cancel_scheduled_messages(second)
        assert await receiver.receive_messages(3, max_wait_time=1) == []
        pass_time(emulator, 3601)
        found = await received(receiver, 2)
        assert sorted(b"".join(one.body) for one in found) == [b"0", b"2"]


async def test_sessions_are_taken_by_name_and_in_order(client: ServiceBusClient) -> None:
    messages = [ServiceBusMessage(b"%d" % n, session_id="ab"[n % 2]) for n in range(4)]
    await send(client, SESSIONS, *messages)
    async with client.get_queue_receiver(SESSIONS, session_id="a") as receiver:
        found = await received(receiver, 2)
        assert [b"".join(one.body) for one in found] == [b"0", b"2"]
        await receiver.session.set_state(b"half")
        assert await receiver.session.get_state() == b"half"
        before = receiver.session.locked_until_utc
        assert before is not None
        assert await receiver.session.renew_lock() >= before
        for message in found:
            await receiver.complete_message(message)
        with pytest.raises(SessionCannotBeLockedError):
            async with client.get_queue_receiver(SESSIONS, session_id="a"):
                pass
    next_one = client.get_queue_receiver(SESSIONS, session_id=NEXT_AVAILABLE_SESSION)
    async with next_one as receiver:
        assert receiver.session.session_id == "b"
    async with client.get_queue_receiver(SESSIONS, session_id="a") as receiver:
        assert await receiver.session.get_state() == b"half"


async def test_no_session_is_a_timeout(client: ServiceBusClient) -> None:
    with pytest.raises(OperationTimeoutError):
        async with client.get_queue_receiver(
            SESSIONS, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=1
        ):
            pass


async def test_a_session_that_was_held_too_long_is_lost(
    client: ServiceBusClient, emulator: Emulator
) -> None:
    await send(client, SESSIONS, ServiceBusMessage(b"x", session_id="a"))
    async with client.get_queue_receiver(SESSIONS, session_id="a") as receiver:
        (message,) = await receiver.receive_messages(max_wait_time=DEADLINE)
        pass_time(emulator, 61)
        with pytest.raises(SessionLockLostError):
            await receiver.complete_message(message)


async def test_a_message_with_an_id_that_was_seen_is_dropped(
    client: ServiceBusClient, emulator: Emulator
) -> None:
    for _ in range(2):
        await send(client, UNIQUE, ServiceBusMessage(b"x", message_id="same"))
    assert emulator.broker.queue(UNIQUE).counts.active == 1
    pass_time(emulator, 601)
    await send(client, UNIQUE, ServiceBusMessage(b"x", message_id="same"))
    assert emulator.broker.queue(UNIQUE).counts.active == 2


async def test_a_sql_filter_chooses(client: ServiceBusClient) -> None:
    properties: list[dict[str | bytes, object]] = [
        {"service": "ocr", "lane": 4},
        {"service": "ocr", "lane": 3},
        {"service": "embedding", "lane": 4},
        {"service": "sis", "lane": 9, "note": "x"},
        {"lane": 4},
    ]
    async with client.get_topic_sender(TOPIC) as sender:
        for number, one in enumerate(properties):
            message = ServiceBusMessage(b"%d" % number, application_properties=one)  # type: ignore[arg-type]
            await sender.send_messages(message)
    async with client.get_subscription_receiver(TOPIC, "some") as receiver:
        found = await receiver.receive_messages(9, max_wait_time=DEADLINE)
        assert [b"".join(one.body) for one in found] == [b"0"]


async def test_what_expires_unread_is_gone(client: ServiceBusClient, emulator: Emulator) -> None:
    brief = ServiceBusMessage(b"x", time_to_live=timedelta(seconds=5))
    await send(client, QUEUE, brief, ServiceBusMessage(b"y"))
    pass_time(emulator, 5)
    async with client.get_queue_receiver(QUEUE) as receiver:
        found = await receiver.receive_messages(2, max_wait_time=DEADLINE)
        assert [b"".join(one.body) for one in found] == [b"y"]


async def test_receive_and_delete_leaves_nothing(
    client: ServiceBusClient, emulator: Emulator
) -> None:
    await send(client, QUEUE, ServiceBusMessage(b"1"), ServiceBusMessage(b"2"))
    mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
    async with client.get_queue_receiver(QUEUE, receive_mode=mode) as receiver:
        # One by one: the client drops what comes after it has returned less than it asked for.
        found = [*await received(receiver, 1), *await received(receiver, 1)]
    assert [b"".join(message.body) for message in found] == [b"1", b"2"]
    assert emulator.broker.queue(QUEUE).counts.active == 0


async def test_a_dead_letter_tells_where_it_came_from(client: ServiceBusClient) -> None:
    await send(client, QUEUE, ServiceBusMessage(b"bad"))
    async with client.get_queue_receiver(QUEUE) as receiver:
        (message,) = await receiver.receive_messages(max_wait_time=DEADLINE)
        await receiver.dead_letter_message(message, reason="Bad", error_description="no JSON")
    dead_letters = client.get_queue_receiver(QUEUE, sub_queue=ServiceBusSubQueue.DEAD_LETTER)
    async with dead_letters as receiver:
        (dead,) = await receiver.receive_messages(max_wait_time=DEADLINE)
        assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("Bad", "no JSON")
        assert dead.dead_letter_source == QUEUE


@pytest.mark.parametrize("size", [300 * 1024, 3 * 1024 * 1024])
async def test_a_message_that_is_too_large_is_refused_as_such(
    client: ServiceBusClient, size: int
) -> None:
    with pytest.raises(MessageSizeExceededError):
        await send(client, QUEUE, ServiceBusMessage(b"x" * size))
    await send(client, QUEUE, ServiceBusMessage(b"x"))


async def test_an_entity_that_is_not_there_is_said_so(client: ServiceBusClient) -> None:
    with pytest.raises(MessagingEntityNotFoundError):
        await send(client, "nowhere", ServiceBusMessage(b"x"))


@pytest.mark.check
async def test_more_messages_than_a_window_holds_pass_over_one_link(
    client: ServiceBusClient, emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window of the client's session, 65,536 otherwise: beyond it both sides must count on."""
    monkeypatch.setattr("azure.servicebus._pyamqp.client.INCOMING_WINDOW", 700)
    total = 3_000
    for start in range(0, total, 500):
        emulator.broker.send(QUEUE, [Message.build(b"%d" % (start + n)) for n in range(500)])
    mode, seen = ServiceBusReceiveMode.RECEIVE_AND_DELETE, 0
    receiving = client.get_queue_receiver(QUEUE, receive_mode=mode, prefetch_count=1000)
    async with receiving as receiver:
        while seen < total:
            found = await receiver.receive_messages(1000, max_wait_time=DEADLINE)
            assert found
            seen += len(found)
    assert seen == total
