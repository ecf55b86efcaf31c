"""The emulator as clients find it: one port, keys, faults, a journal that fails."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.exceptions import ServiceBusAuthenticationError, ServiceBusServerBusyError

from servicebus_emulator.broker import QueueSettings
from servicebus_emulator.broker.records import Record
from servicebus_emulator.faults import Fault, FaultKind, Point
from servicebus_emulator.journal import Journal, JournalError
from servicebus_emulator.messages import Message
from servicebus_emulator.sas import Keys
from servicebus_emulator.server import Emulator
from tests.runner.deadlines import DEADLINE

QUEUE = "work"


@asynccontextmanager
async def serving(emulator: Emulator) -> AsyncIterator[Emulator]:
    if not emulator.broker.queues():
        emulator.broker.create_queue(QUEUE, QueueSettings())
    await emulator.start()
    try:
        yield emulator
    finally:
        await emulator.stop()


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    async with serving(Emulator()) as emulator:
        yield emulator


def client_of(emulator: Emulator, **more: str) -> ServiceBusClient:
    text = emulator.connection_string
    for found, wanted in more.items():
        text = text.replace(found, wanted)
    return ServiceBusClient.from_connection_string(text, retry_total=0)


async def send(client: ServiceBusClient, *bodies: bytes) -> None:
    async with client.get_queue_sender(QUEUE) as sender:
        await sender.send_messages([ServiceBusMessage(body) for body in bodies])


async def receive(client: ServiceBusClient, count: int = 1) -> list[bytes]:
    bodies: list[bytes] = []
    async with asyncio.timeout(DEADLINE), client.get_queue_receiver(QUEUE) as receiver:
        while len(bodies) < count:
            for message in await receiver.receive_messages(count, max_wait_time=DEADLINE):
                bodies.append(b"".join(message.body))
                await receiver.complete_message(message)
    return bodies


async def speak(emulator: Emulator, data: bytes) -> bytes:
    """All that is answered before the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", emulator.port)
    writer.write(data)
    writer.write_eof()
    async with asyncio.timeout(DEADLINE):
        answer = await reader.read()
    writer.close()
    return answer


async def test_garbage_beside_a_client_disturbs_only_itself(emulator: Emulator) -> None:
    noise = [b"AMQP\x00\x01\x00\x00" + bytes([n]) * 40 for n in range(20)]
    async with client_of(emulator) as client, asyncio.TaskGroup() as tasks:
        answers = [tasks.create_task(speak(emulator, one)) for one in noise]
        tasks.create_task(send(client, *(b"%d" % n for n in range(100))))
        received = tasks.create_task(receive(client, 100))
    assert sorted(received.result(), key=int) == [b"%d" % n for n in range(100)]
    assert all(one.result().startswith(b"AMQP\x00\x01\x00\x00") for one in answers)
    assert all(b"amqp:" in one.result() for one in answers)


async def test_one_port_speaks_amqp_and_http(emulator: Emulator) -> None:
    request = b"GET /$emulator/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert (await speak(emulator, request)).startswith(b"HTTP/1.1 200")
    async with client_of(emulator) as client:
        await send(client, b"x")
        assert await receive(client) == [b"x"]


async def test_the_first_bytes_may_come_one_by_one(emulator: Emulator) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", emulator.port)
    for byte in b"AMQP\x00\x01\x00\x00":
        writer.write(bytes([byte]))
        await writer.drain()
    async with asyncio.timeout(DEADLINE):
        assert await reader.readexactly(8) == b"AMQP\x00\x01\x00\x00"
    writer.close()


async def test_a_stop_ends_every_connection_and_a_start_finds_all_again() -> None:
    async with serving(Emulator()) as emulator:
        reader, writer = await asyncio.open_connection("127.0.0.1", emulator.port)
        writer.write(b"GET /")
        await writer.drain()
        async with client_of(emulator) as client:
            await send(client, b"kept")
        await emulator.stop()
        async with asyncio.timeout(DEADLINE):
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.close()
        await emulator.start()
        async with client_of(emulator) as client:
            assert await receive(client) == [b"kept"]


async def test_a_key_is_needed_where_keys_are_configured() -> None:
    async with serving(Emulator(keys=Keys({"root": "secret"}))) as emulator:
        async with client_of(emulator) as client:
            await send(client, b"x")
            assert await receive(client) == [b"x"]
        async with client_of(emulator, **{"=secret": "=guess"}) as client:
            with pytest.raises(ServiceBusAuthenticationError):
                await send(client, b"x")
        assert emulator.broker.queue(QUEUE).counts.active == 0


async def test_a_link_without_a_token_is_refused_where_keys_are_configured() -> None:
    from tests.emulator.links.peer import FakeHost, Peer

    host = FakeHost(keys=Keys({"root": "secret"}))
    host.broker.create_queue(QUEUE, QueueSettings())
    peer = Peer(host).begin()
    peer.attach_sender()
    assert b"amqp:unauthorized-access" in peer.bytes_read


async def test_a_busy_server_is_what_the_client_is_told(emulator: Emulator) -> None:
    emulator.faults.add(Fault(FaultKind.REFUSE, QUEUE, Point.SEND))
    async with client_of(emulator) as client:
        with pytest.raises(ServiceBusServerBusyError):
            await send(client, b"x")
        await send(client, b"y")
        assert await receive(client) == [b"y"]


async def test_time_alone_brings_a_message_back(emulator: Emulator) -> None:
    emulator.broker.create_queue("brief", QueueSettings(lock_duration=300))
    async with client_of(emulator) as client:
        async with client.get_queue_sender("brief") as sender:
            await sender.send_messages(ServiceBusMessage(b"x"))
        async with client.get_queue_receiver("brief") as receiver:
            (first,) = await receiver.receive_messages(1, max_wait_time=DEADLINE)
            (again,) = await receiver.receive_messages(1, max_wait_time=DEADLINE)
    assert (first.delivery_count, again.delivery_count) == (0, 1)


class Stubborn:
    """A journal that cannot be written for a while."""

    wants_compaction = False

    def __init__(self) -> None:
        self.failures = 0
        self.kept: list[Record] = []

    def load(self) -> Iterable[Record]:
        return ()

    def record(self, record: Record, /) -> None:
        self.kept.append(record)

    def flush(self) -> None:
        if self.kept and self.failures:
            self.failures -= 1
            raise JournalError("no room")

    def compact(self, _records: Iterable[Record], /) -> None:
        pass


async def test_nothing_is_answered_until_it_can_be_kept(caplog: pytest.LogCaptureFixture) -> None:
    journal = Stubborn()
    async with (
        serving(Emulator(journal=journal)) as emulator,
        client_of(emulator) as client,
        client.get_queue_sender(QUEUE) as sender,
    ):
        journal.failures = 2
        with caplog.at_level(logging.ERROR):
            await sender.send_messages(ServiceBusMessage(b"x"))
        assert journal.failures == 0
    assert "nothing is answered until it can be kept" in caplog.text


async def test_a_folder_keeps_what_was_there(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    async with serving(Emulator(journal=journal)) as emulator, client_of(emulator) as client:
        await send(client, b"1", b"2", b"3")
        assert await receive(client) == [b"1"]
    journal.close()
    journal = Journal(tmp_path)
    async with serving(Emulator(journal=journal)) as again:
        bodies = [one.message for one in again.broker.source(QUEUE).peek(0, 9)]
        assert [one.body for one in bodies if isinstance(one, Message)] == [b"2", b"3"]
    journal.close()
