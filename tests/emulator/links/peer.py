"""A client's side of a connection, frame by frame, without sockets."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from servicebus_emulator.amqp import (
    HEADER_AMQP,
    HEADER_SASL,
    Attach,
    Begin,
    Disposition,
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
from servicebus_emulator.broker import Broker, QueueSettings
from servicebus_emulator.connection_limits import ConnectionLimits
from servicebus_emulator.faults import Faults
from servicebus_emulator.links import Connection
from servicebus_emulator.messages import Message
from servicebus_emulator.sas import Keys

P = TypeVar("P")
CHANNEL = 0
QUEUE = "work"
SENDING, RECEIVING = 0, 1


@dataclass
class Timer:
    due: int
    callback: Callable[[], None]
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True


@dataclass
class FakeHost:
    """A host whose time is moved by hand."""

    keys: Keys = field(default_factory=Keys)
    faults: Faults = field(default_factory=Faults)
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    name: str = "host"
    now: int = 1_800_000_000_000
    timers: list[Timer] = field(default_factory=list)
    tokens: Iterator[int] = field(default_factory=lambda: iter(range(1, 1_000_000)))

    def __post_init__(self) -> None:
        self.broker = Broker(self.clock, self._token)

    def clock(self) -> int:
        return self.now

    def call_later(self, milliseconds: int, callback: Callable[[], None]) -> Timer:
        timer = Timer(self.now + milliseconds, callback)
        self.timers.append(timer)
        return timer

    def pass_time(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.broker.tick()
        due = [one for one in self.timers if one.due <= self.now and not one.is_cancelled]
        self.timers = [one for one in self.timers if one.due > self.now]
        for timer in due:
            timer.callback()

    def _token(self) -> bytes:
        return next(self.tokens).to_bytes(16, "little")


class Peer:
    """Writes frames and keeps what comes back until somebody asks for it."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.connection = Connection(host, self._take)
        self.bytes_read = bytearray()
        self._reader = FrameReader(1 << 20)
        self._frames: list[Frame] = []
        self._is_reading = False
        self.takes_output = True

    def write(self, data: bytes) -> None:
        self.connection.receive(data)
        self._take()

    def send(self, performative: Any, payload: bytes = b"", channel: int = CHANNEL) -> None:
        self.write(encode_frame(channel, performative, payload))

    def greet(self) -> None:
        """Up to the protocol header of AMQP."""
        self.write(HEADER_SASL)
        assert self._reader.take_header() == HEADER_SASL
        self.write(encode_sasl_frame(SaslInit(Symbol("ANONYMOUS"))) + HEADER_AMQP)
        mechanisms, outcome = self._reader.next(), self._reader.next()
        assert mechanisms is not None
        assert outcome is not None
        assert self._reader.take_header() == HEADER_AMQP
        self._is_reading = True
        self._take()

    def begin(self, window: int = 5000, max_frame_size: int = 65536) -> "Peer":
        """Up to a session."""
        self.greet()
        self.send(Open("peer", max_frame_size=max_frame_size))
        self.send(Begin(next_outgoing_id=0, incoming_window=window, outgoing_window=5000))
        self.one(Open)
        self.one(Begin)
        return self

    def attach_sender(self, address: str = QUEUE, handle: int = SENDING) -> None:
        target = Target(address)
        self.send(Attach("sender", handle, role=False, source=Source("me"), target=target))

    def attach_receiver(self, address: str = QUEUE, handle: int = RECEIVING, **more: Any) -> None:
        source = Source(address, filter=more.pop("filter", None))
        self.send(Attach("receiver", handle, True, source=source, target=Target("me"), **more))

    def credit(self, credit: int, handle: int = RECEIVING, seen: int = 0, **more: Any) -> None:
        self.send(
            Flow(
                next_incoming_id=more.pop("next_incoming_id", 0),
                incoming_window=more.pop("window", 5000),
                next_outgoing_id=0,
                outgoing_window=5000,
                handle=handle,
                delivery_count=seen,
                link_credit=credit,
                **more,
            )
        )

    def transfer(self, number: int, payload: bytes, **more: Any) -> None:
        fields = {"handle": SENDING, "delivery_id": number, "delivery_tag": b"%d" % number}
        self.send(Transfer(**{**fields, "message_format": 0, **more}), payload)

    def settle(self, first: int, state: Any, last: int | None = None) -> None:
        self.send(Disposition(True, first, last, settled=False, state=state))

    def frames(self) -> list[Frame]:
        """All that came since the last time."""
        frames, self._frames = self._frames, []
        return frames

    def said(self) -> list[Any]:
        return [frame.performative for frame in self.frames()]

    def one(self, kind: type[P]) -> P:
        """The next of its kind; what came before it is passed over."""
        while self._frames:
            performative = self._frames.pop(0).performative
            if isinstance(performative, kind):
                return performative
        raise AssertionError(f"no {kind.__name__} came")

    def received(self) -> list[Message]:
        """The messages that came in one frame each."""
        frames = [one for one in self.frames() if isinstance(one.performative, Transfer)]
        return [Message.parse(frame.payload) for frame in frames]

    def _take(self) -> None:
        if not self.takes_output:
            return
        output = self.connection.take_output()
        self.bytes_read += output
        self._reader.feed(output)
        if self._is_reading:
            while (frame := self._reader.next()) is not None:
                self._frames.append(frame)


def working_host() -> FakeHost:
    host = FakeHost()
    host.broker.create_queue(QUEUE, QueueSettings())
    return host


def put(host: FakeHost, count: int, size: int = 10) -> None:
    messages = [Message.build(b"x" * size, message_id=f"m{n}") for n in range(count)]
    host.broker.send(QUEUE, messages)
