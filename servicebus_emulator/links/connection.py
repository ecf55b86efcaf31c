"""A connection: from the first bytes to the last, and the channels between."""

import logging
from collections.abc import Callable

from servicebus_emulator.amqp import (
    HEADER_AMQP,
    HEADER_SASL,
    AmqpError,
    Begin,
    Close,
    End,
    Error,
    Frame,
    FrameReader,
    Open,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Symbol,
    encode_frame,
    encode_sasl_frame,
)
from servicebus_emulator.broker import SessionLock
from servicebus_emulator.links import conditions
from servicebus_emulator.links.authorization import Authorization
from servicebus_emulator.links.cbs import CbsNode
from servicebus_emulator.links.host import Delayed, Dropped, Host, Timer
from servicebus_emulator.links.management import ManagementNode
from servicebus_emulator.links.receiving import Deliveries
from servicebus_emulator.links.session import HANDLE_MAX, WINDOW, Session

MAX_FRAME_SIZE = 65536
CHANNEL_MAX = 4999
_MECHANISMS = ("ANONYMOUS", "MSSBCBS", "EXTERNAL")
_EMPTY_FRAME = b"\x00\x00\x00\x08\x02\x00\x00\x00"
_MAX_SASL_FRAME = 512  # fixed by AMQP
_SHORTEST_IDLE = 1000  # milliseconds between the frames that a peer may ask for
_SILENT_HALVES = 3  # the first half of the idle time-out may have begun before the last frame came
_log = logging.getLogger("servicebus_emulator")


class Connection:
    """Bytes of the peer go into `receive`. `written` is called when there is output to be taken, or
    when the connection is over: sent after all changes are kept.

    What breaks the protocol ends this connection with an error in the terms of AMQP, and disturbs
    no other. What its links hold stays locked until the locks run out. `is_refused`: there are too
    many connections, and this one ends as soon as the peer can be told why.
    """

    def __init__(
        self, host: Host, written: Callable[[], None], *, is_refused: bool = False
    ) -> None:
        self.host = host
        self._written = written
        self._is_refused = is_refused
        self.authorization = Authorization(host)
        self.cbs = CbsNode(self.authorization)
        self.is_over = False
        self.is_dropped = False
        self.is_blocked = False
        self.max_frame_size = MAX_FRAME_SIZE
        self._reader = FrameReader(MAX_FRAME_SIZE)
        self._step: Callable[[], bool] = self._take_first_header
        self._output: list[bytes] = []
        self._unread = 0
        self._silent_halves = 0
        self._sessions: dict[int, Session] = {}
        self._nodes: dict[str, ManagementNode] = {}
        self._is_open = False
        self._delayed: Frame | None = None
        self._is_waiting = False
        self._timers: dict[str, Timer] = {}

    @property
    def is_established(self) -> bool:
        """Open and, where there are keys, by a peer that has shown a token."""
        return self._is_open and (not self.host.keys or self.authorization.has_token)

    @property
    def is_congested(self) -> bool:
        """The peer does not read: nothing more is made for it until it does."""
        return self.is_blocked or self._unread >= self.host.limits.unread_bytes

    @property
    def wants_input(self) -> bool:
        """Whether what the peer sends now would be handled now."""
        return not (self.is_congested or self._is_waiting)

    def receive(self, data: bytes) -> None:
        self._silent_halves = 0
        self._reader.feed(data)
        self._proceed()

    def take_output(self) -> bytes:
        output = b"".join(self._output)
        self._output.clear()
        self._unread = 0
        return output

    def write(self, data: bytes) -> None:
        self._output.append(data)
        self._unread += len(data)
        if len(self._output) == 1:
            self._written()

    def management(self, entity: str) -> ManagementNode:
        """The management node of an entity, as this connection sees it."""
        self._check_room(len(self._nodes))
        return self._nodes.setdefault(entity.lower(), ManagementNode(self, entity))

    def check_room_for_link(self) -> None:
        self._check_room(sum(len(session.links()) for session in self._sessions.values()))

    def _check_room(self, links: int) -> None:
        limit = self.host.limits.links
        if links >= limit:
            raise AmqpError(conditions.RESOURCE_LIMIT, f"a connection has at most {limit} links")

    def session_lock(self, entity: str, session_id: str) -> SessionLock | None:
        """The session of the entity that a link of this connection holds."""
        for session in self._sessions.values():
            for link in session.links():
                if isinstance(link, Deliveries) and link.holds(entity, session_id):
                    return link.lock
        return None

    def block(self) -> None:
        """What was written waits for the peer to read it."""
        self.is_blocked = True

    def unblock(self) -> None:
        self.is_blocked = False
        self.resume()

    def resume(self) -> None:
        """The peer reads again: go on where congestion has stopped deliveries and requests."""
        for session in list(self._sessions.values()):
            session.pump()
        self._proceed()

    def end_handshake(self) -> None:
        """Time is up for a peer that has not established the connection."""
        if not (self.is_established or self.is_over):
            late = "the connection was not opened and authorized in time"
            self._fail(Error(conditions.CONNECTION_FORCED, late))

    def drop(self) -> None:
        """End without a word."""
        self.is_dropped = True
        self.closed()
        self._written()

    def closed(self) -> None:
        """The peer is gone. What its links give back must not be delivered to it again."""
        self.is_over = self.is_blocked = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()

    def _proceed(self) -> None:
        try:
            while not self.is_over and self.wants_input and self._step():
                pass
        except Dropped:
            self.drop()
        except Delayed as delayed:
            self._is_waiting = True
            self._timers["delay"] = self.host.call_later(delayed.milliseconds, self._resume)
        except AmqpError as error:
            self._fail(Error(error.condition, error.description))
        except Exception:
            _log.exception("the emulator has a defect; the connection ends")
            self._fail(Error("amqp:internal-error", "the emulator has a defect; see its log"))

    def _resume(self) -> None:
        self._is_waiting = False
        self._proceed()
        self._written()  # it takes input again

    def _take_first_header(self) -> bool:
        header = self._reader.take_header()
        if header is None:
            return False
        if header == HEADER_SASL:
            self.write(HEADER_SASL)
            mechanisms = tuple(Symbol(name) for name in _MECHANISMS)
            self.write(encode_sasl_frame(SaslMechanisms(mechanisms)))
            self._step = self._take_sasl
            return True
        return self._agree_on_amqp(header)

    def _take_header(self) -> bool:
        header = self._reader.take_header()
        return header is not None and self._agree_on_amqp(header)

    def _agree_on_amqp(self, header: bytes) -> bool:
        self.write(HEADER_AMQP)
        if header != HEADER_AMQP:
            self._end()
            return False
        self._step = self._take_frame
        return True

    def _take_sasl(self) -> bool:
        frame = self._reader.next(_MAX_SASL_FRAME)
        if frame is None:
            return False
        if not isinstance(frame.performative, SaslInit):
            raise AmqpError("amqp:not-allowed", "expected a SASL init frame")
        known = frame.performative.mechanism in _MECHANISMS
        self.write(encode_sasl_frame(SaslOutcome(0 if known else 1)))
        if not known:
            self._end()
            return False
        self._step = self._take_header
        return True

    def _take_frame(self) -> bool:
        frame, self._delayed = self._delayed or self._reader.next(), None
        if frame is None:
            return False
        try:
            self._handle(frame)
        except Delayed:
            self._delayed = frame
            raise
        return True

    def _handle(self, frame: Frame) -> None:
        performative = frame.performative
        session = self._sessions.get(frame.channel)
        if session is not None and not isinstance(performative, Open | Begin | End | Close):
            session.handle(performative, frame.payload)
        elif isinstance(performative, Open):
            self._open(performative)
        elif isinstance(performative, Close):
            self._close()
        elif not self._is_open:
            raise AmqpError("amqp:not-allowed", "the first frame must be open")
        elif isinstance(performative, Begin):
            self._begin(frame.channel, performative)
        elif isinstance(performative, End):
            self._finish(frame.channel)
        # Frames for a channel that has ended are passed over: clients detach links after they
        # have ended the session.

    def _open(self, performative: Open) -> None:
        if self._is_open:
            raise AmqpError("amqp:not-allowed", "the connection is open already")
        self._is_open = True
        self.max_frame_size = min(performative.max_frame_size or 2**32 - 1, 2**20)
        if self.max_frame_size < 512:
            raise AmqpError("amqp:invalid-field", "max-frame-size must be at least 512")
        self._answer_open()
        if self._is_refused:
            most = self.host.limits.connections
            raise AmqpError(
                conditions.RESOURCE_LIMIT, f"the emulator has {most} connections, the most it takes"
            )
        self._watch_silence()
        if performative.idle_time_out:
            self._keep_alive(performative.idle_time_out)

    def _answer_open(self) -> None:
        answer = Open(
            container_id=self.host.name,
            max_frame_size=MAX_FRAME_SIZE,
            channel_max=CHANNEL_MAX,
            idle_time_out=self.host.limits.idle_ms // 2,
        )
        self.write(encode_frame(0, answer))

    def _keep_alive(self, idle_time_out: int) -> None:
        if idle_time_out < _SHORTEST_IDLE:
            raise AmqpError(
                conditions.NOT_ALLOWED, f"an idle time-out has at least {_SHORTEST_IDLE} ms"
            )

        def beat() -> None:
            if not self.is_congested:  # else a frame is on its way already
                self.write(_EMPTY_FRAME)
            self._keep_alive(idle_time_out)

        self._timers["beat"] = self.host.call_later(idle_time_out // 2, beat)

    def _watch_silence(self) -> None:
        """One timer for each half of the idle time-out, since one for each frame would cost more
        than the frame."""
        half = self.host.limits.idle_ms // 2
        self._timers["silence"] = self.host.call_later(half, self._notice_silence)

    def _notice_silence(self) -> None:
        self._silent_halves += 1
        if self._silent_halves < _SILENT_HALVES:
            self._watch_silence()
            return
        limit = self.host.limits.idle_ms
        silent = f"nothing was heard of the peer for {limit} ms: it has to send empty frames"
        self._fail(Error(conditions.CONNECTION_FORCED, silent))

    def _begin(self, channel: int, performative: Begin) -> None:
        if channel in self._sessions:
            raise AmqpError("amqp:not-allowed", f"channel {channel} is in use")
        if channel > CHANNEL_MAX:
            raise AmqpError("amqp:not-allowed", f"channel {channel} is above {CHANNEL_MAX}")
        self._sessions[channel] = Session(self, channel, performative)
        answer = Begin(
            remote_channel=channel,
            next_outgoing_id=0,
            incoming_window=WINDOW,
            outgoing_window=WINDOW,
            handle_max=HANDLE_MAX,
        )
        self.write(encode_frame(channel, answer))

    def _finish(self, channel: int) -> None:
        session = self._sessions.pop(channel, None)
        if session is not None:
            session.close()
            self.write(encode_frame(channel, End()))

    def _close(self) -> None:
        if not self._is_open:
            raise AmqpError("amqp:not-allowed", "the first frame must be open")
        self.write(encode_frame(0, Close()))
        self._end()

    def _fail(self, error: Error) -> None:
        if self._step in (self._take_first_header, self._take_sasl, self._take_header):
            self._end()
            return
        if not self._is_open:
            self._answer_open()
        self.write(encode_frame(0, Close(error)))
        self._end()

    def _end(self) -> None:
        self.closed()
        self._written()
