"""What a peer may take of the emulator: silence, connections, memory and time, on real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.exceptions import ServiceBusConnectionError

from servicebus_emulator.amqp import (
    HEADER_AMQP,
    HEADER_SASL,
    Attach,
    Begin,
    Close,
    Flow,
    Frame,
    FrameReader,
    Open,
    SaslInit,
    Source,
    Symbol,
    Target,
    Transfer,
    encode_frame,
    encode_sasl_frame,
)
from servicebus_emulator.broker import QueueSettings
from servicebus_emulator.connection_limits import ConnectionLimits
from servicebus_emulator.faults import Fault, FaultKind
from servicebus_emulator.messages import Message
from servicebus_emulator.peers import Peer
from servicebus_emulator.sas import Keys
from servicebus_emulator.server import Emulator
from tests.runner.deadlines import DEADLINE

QUEUE = "work"
SHORT = 100  # milliseconds, of a limit that strikes
NEVER = 600_000
GREETING = HEADER_SASL + encode_sasl_frame(SaslInit(Symbol("ANONYMOUS"))) + HEADER_AMQP
OPEN = GREETING + encode_frame(0, Open("peer", max_frame_size=65536))
GET = b"GET /$emulator/health HTTP/1.1\r\nHost: localhost\r\n"


class Watched(Emulator):
    """Tells when a connection has ended."""

    def __init__(self, limits: ConnectionLimits, keys: Keys | None = None) -> None:
        super().__init__(keys=keys, limits=limits)
        self.broker.create_queue(QUEUE, QueueSettings())
        self.ended = asyncio.Event()

    def closed(self, peer: Peer) -> None:
        super().closed(peer)
        self.ended.set()


def limits(**given: int) -> ConnectionLimits:
    """None strikes but those that are given."""
    none = {"handshake_ms": NEVER, "idle_ms": NEVER, "request_ms": NEVER, "keep_alive_ms": NEVER}
    return ConnectionLimits(**{**none, **given})


@asynccontextmanager
async def serving(limits: ConnectionLimits, keys: Keys | None = None) -> AsyncIterator[Watched]:
    emulator = Watched(limits, keys)
    await emulator.start()
    try:
        async with asyncio.timeout(DEADLINE):
            yield emulator
    finally:
        await emulator.stop()


class Raw:
    """A peer that sends and reads what the test says."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._frames = FrameReader(1 << 20)
        self._greeted = False

    async def read_to_the_end(self) -> list[Frame]:
        data = await self.reader.read()
        return self._parsed(data)

    async def frames(self) -> AsyncIterator[Frame]:
        while data := await self.reader.read(65536):
            for frame in self._parsed(data):
                yield frame

    def _parsed(self, data: bytes) -> list[Frame]:
        self._frames.feed(data)
        if not self._greeted:
            assert self._frames.take_header() == HEADER_SASL
            assert self._frames.next() is not None
            assert self._frames.next() is not None
            assert self._frames.take_header() == HEADER_AMQP
            self._greeted = True
        return list(iter(self._frames.next, None))


@asynccontextmanager
async def connected(emulator: Emulator, sent: bytes = b"") -> AsyncIterator[Raw]:
    reader, writer = await asyncio.open_connection("127.0.0.1", emulator.port)
    writer.write(sent)
    try:
        yield Raw(reader, writer)
    finally:
        writer.transport.abort()


def close_of(frames: list[Frame]) -> str:
    assert isinstance(frames[-1].performative, Close)
    assert frames[-1].performative.error is not None
    return str(frames[-1].performative.error.condition)


@pytest.mark.parametrize(
    "sent",
    [b"", b"A", HEADER_SASL, HEADER_SASL + b"\x00\x00", GREETING],
    ids=["nothing", "a byte", "a header", "half a frame", "no open"],
)
async def test_a_peer_that_does_not_open_is_left(sent: bytes) -> None:
    async with serving(limits(handshake_ms=SHORT)) as emulator, connected(emulator, sent) as peer:
        await peer.reader.read()
        await emulator.ended.wait()


async def test_with_keys_a_peer_that_shows_no_token_is_left() -> None:
    keys = Keys({"root": "secret"})
    limited = limits(handshake_ms=SHORT)
    async with serving(limited, keys) as emulator, connected(emulator, OPEN) as peer:
        assert close_of(await peer.read_to_the_end()) == "amqp:connection:forced"


async def test_a_peer_that_falls_silent_is_told_and_left() -> None:
    async with serving(limits(idle_ms=SHORT)) as emulator, connected(emulator, OPEN) as peer:
        frames = await peer.read_to_the_end()
    assert isinstance(frames[0].performative, Open)
    assert frames[0].performative.idle_time_out == SHORT // 2
    assert close_of(frames) == "amqp:connection:forced"


async def test_a_client_that_was_left_for_its_silence_sends_again() -> None:
    async with serving(limits(idle_ms=SHORT)) as emulator:
        text = emulator.connection_string
        async with (
            ServiceBusClient.from_connection_string(text, retry_backoff_factor=0.01) as client,
            client.get_queue_sender(QUEUE) as sender,
        ):
            await sender.send_messages(ServiceBusMessage(b"x"))
            await emulator.ended.wait()
            await sender.send_messages(ServiceBusMessage(b"y"))
        assert emulator.broker.queue(QUEUE).counts.active == 2


async def test_one_connection_too_many_is_told_so() -> None:
    async with (
        serving(limits(connections=1)) as emulator,
        connected(emulator, OPEN) as first,
        connected(emulator, OPEN) as second,
    ):
        assert close_of(await second.read_to_the_end()) == "amqp:resource-limit-exceeded"
        async with connected(emulator, GET + b"\r\n") as third:
            assert (await third.reader.read()).startswith(b"HTTP/1.1 503 ")
        text = emulator.connection_string
        async with ServiceBusClient.from_connection_string(text, retry_total=0) as client:
            with pytest.raises(ServiceBusConnectionError, match="1 connections"):
                async with client.get_queue_sender(QUEUE):
                    pass
        emulator.ended.clear()
        first.writer.transport.abort()
        await emulator.ended.wait()
        async with (
            ServiceBusClient.from_connection_string(text, retry_total=3) as client,
            client.get_queue_sender(QUEUE) as sender,
        ):
            await sender.send_messages(ServiceBusMessage(b"x"))


async def test_a_crowd_beyond_those_that_are_told_is_cut() -> None:
    async with serving(limits(connections=1)) as emulator:
        peers = [await asyncio.open_connection("127.0.0.1", emulator.port) for _ in range(70)]
        ends = [asyncio.ensure_future(reader.read()) for reader, _ in peers]
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        assert done
        for _, writer in peers:
            writer.transport.abort()
        await asyncio.gather(*ends, return_exceptions=True)


def receiving(credit: int) -> bytes:
    attach = Attach("r", 0, role=True, source=Source(QUEUE), target=Target("me"))
    flow = Flow(
        next_incoming_id=0,
        incoming_window=2**31 - 1,
        next_outgoing_id=0,
        outgoing_window=5000,
        handle=0,
        delivery_count=0,
        link_credit=credit,
    )
    begin = Begin(next_outgoing_id=0, incoming_window=2**31 - 1, outgoing_window=5000)
    return b"".join(encode_frame(0, each) for each in (begin, attach, flow))


async def test_a_receiver_that_does_not_read_holds_little_and_gets_all_when_it_reads() -> None:
    count, size = 400, 200_000
    async with serving(limits()) as emulator:
        emulator.broker.send(
            QUEUE, [Message.build(b"x" * size, message_id=f"m{n}") for n in range(count)]
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", emulator.port, limit=65536)
        peer = Raw(reader, writer)
        writer.write(OPEN + receiving(2**31 - 1))
        await _stalls(emulator)
        waiting = emulator.broker.source(QUEUE).peek(0, count)
        taken = sum(each.locked_until is not None for each in waiting)
        assert 0 < taken < count // 2  # the kernel takes some megabytes, 32 are encoded at once
        ids = set()
        async for frame in peer.frames():
            if isinstance(frame.performative, Transfer) and frame.performative.delivery_tag:
                ids.add(frame.performative.delivery_id)
            if len(ids) == count:
                break
        writer.transport.abort()
    assert len(ids) == count


async def test_a_receiver_that_reads_gets_more_than_is_made_at_once() -> None:
    """Also where the kernel takes everything, so that nothing is ever paused."""
    count = 400
    async with serving(limits()) as emulator:
        emulator.broker.send(
            QUEUE, [Message.build(b"x" * 9000, message_id=f"m{n}") for n in range(count)]
        )
        async with connected(emulator, OPEN + receiving(2**31 - 1)) as peer:
            got = 0
            async for frame in peer.frames():
                got += isinstance(frame.performative, Transfer)
                if got == count:
                    break


async def _stalls(emulator: Emulator) -> None:
    """Many turns of the loop deliver nothing more."""
    seen, quiet = -1, 0
    while quiet < 100 or seen == 0:
        found = sum(
            each.locked_until is not None for each in emulator.broker.source(QUEUE).peek(0, 1000)
        )
        quiet = quiet + 1 if found == seen else 0
        seen = found
        await asyncio.sleep(0)


async def test_a_peer_that_reads_nothing_is_left_like_a_silent_one() -> None:
    """Its last words are not waited for either."""
    async with serving(limits(idle_ms=SHORT, closing_ms=SHORT)) as emulator:
        emulator.broker.send(
            QUEUE, [Message.build(b"x" * 200_000, message_id=f"m{n}") for n in range(100)]
        )
        async with connected(emulator, OPEN + receiving(2**31 - 1)):
            await emulator.ended.wait()


async def test_a_peer_that_does_not_wait_for_last_words_disturbs_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(limits()) as emulator:
        with socket.create_connection(("127.0.0.1", emulator.port)) as hasty:
            hasty.sendall(OPEN + encode_frame(0, Close()))
        await emulator.ended.wait()
    assert caplog.text == ""


async def test_a_request_that_comes_too_slowly_is_refused() -> None:
    late = GET + b"X-Slow: 1"
    body = b"PUT /queue HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n<entry"
    async with serving(limits(request_ms=SHORT)) as emulator:
        for sent in (late, body):
            async with connected(emulator, sent) as peer:
                assert (await peer.reader.read()).startswith(b"HTTP/1.1 408 ")


async def test_bytes_that_trickle_in_do_not_prolong_a_request() -> None:
    async with serving(limits(request_ms=SHORT)) as emulator, connected(emulator, GET) as peer:

        async def trickle() -> None:
            while True:
                peer.writer.write(b"X: y\r\n")
                await asyncio.sleep(0)

        trickling = asyncio.create_task(trickle())
        assert (await peer.reader.readline()).split()[1] in (b"408", b"431")
        trickling.cancel()


async def test_between_requests_a_connection_is_kept_for_a_while() -> None:
    twice = (GET + b"\r\n") * 2
    async with serving(limits(keep_alive_ms=SHORT)) as emulator, connected(emulator, twice) as peer:
        answers = await peer.reader.read()
    assert answers.count(b"HTTP/1.1 200 ") == 2
    assert b"408" not in answers


async def test_one_who_does_not_read_its_answers_is_left() -> None:
    many = b"GET /$emulator/faults HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500
    async with serving(limits(request_ms=SHORT)) as emulator:
        for number in range(1000):
            emulator.faults.add(Fault(FaultKind.DROP, f"queue-{number}"))
        async with connected(emulator, many):
            await emulator.ended.wait()
