"""A socket, and who is at the other end of it."""

import asyncio
from typing import Protocol, cast

from servicebus_emulator.administration import AdministrationProtocol
from servicebus_emulator.links import Connection, Host, Timer

_AMQP = b"AMQP"


class Server(Host, Protocol):
    """What a peer needs of the server that took its connection."""

    def opened(self, peer: "Peer", /) -> bool:
        """False: there are too many connections, and the peer is to be told so."""

    def closed(self, peer: "Peer", /) -> None: ...

    def written(self, peer: "Peer", /) -> None:
        """The peer has something to send, or is over: `Peer.send` is called soon, once what has
        changed is kept."""

    def administration_protocol(self, *, is_refused: bool) -> AdministrationProtocol: ...


class Peer(asyncio.Protocol):
    """Looks at the first bytes, and talks AMQP or HTTP from then on."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._connection: Connection | None = None
        self._http: AdministrationProtocol | None = None
        self._first = b""
        self._is_refused = False
        self._handshake: Timer | None = None
        self._closing: Timer | None = None

    @property
    def counts(self) -> bool:
        """Whether the limit of connections is about it: it is neither refused nor over."""
        return not (self._is_refused or self._closing)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is of no such class
        limit = self._server.limits.handshake_ms
        self._handshake = self._server.call_later(limit, self._end_handshake)
        self._is_refused = not self._server.opened(self)

    def data_received(self, data: bytes) -> None:
        if self._closing is not None:
            return
        if self._connection is not None:
            self._connection.receive(data)
            self._regulate(self._connection)
        elif self._http is not None:
            self._http.data_received(data)
        else:
            self._recognise(data)

    def eof_received(self) -> bool | None:
        return None if self._http is None else self._http.eof_received()

    def send(self) -> None:
        transport, connection = self._transport, self._connection
        if transport is None or connection is None or transport.is_closing() or self._closing:
            return
        if connection.is_dropped:
            transport.abort()
            return
        was_congested = connection.is_congested
        output = connection.take_output()
        if output:
            transport.write(output)
        if connection.is_over:
            self._close(transport)
            return
        if was_congested and not connection.is_congested:
            connection.resume()
        self._regulate(connection)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def pause_writing(self) -> None:
        if self._connection is not None:
            self._connection.block()
            self._regulate(self._connection)
        elif self._http is not None:
            self._http.pause_writing()

    def resume_writing(self) -> None:
        if self._connection is not None:
            if not self._connection.is_over:
                self._connection.unblock()
            self._regulate(self._connection)
        elif self._http is not None:
            self._http.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        for timer in (self._handshake, self._closing):
            if timer is not None:
                timer.cancel()
        self._server.closed(self)
        if self._connection is not None:
            self._connection.closed()
        elif self._http is not None:
            self._http.connection_lost(error)

    def _recognise(self, data: bytes) -> None:
        self._first += data
        if len(self._first) < len(_AMQP):
            return
        assert self._transport is not None
        if self._first.startswith(_AMQP):
            self._connection = Connection(self._server, self._written, is_refused=self._is_refused)
        else:
            self._http = self._server.administration_protocol(is_refused=self._is_refused)
            self._http.connection_made(self._transport)
        first, self._first = self._first, b""
        self.data_received(first)

    def _regulate(self, connection: Connection) -> None:
        """A peer that does not read is not read from: its requests wait with it."""
        assert self._transport is not None
        if self._transport.is_closing() or connection.is_over:
            return
        if connection.wants_input:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _end_handshake(self) -> None:
        if self._connection is not None:
            self._connection.end_handshake()
        elif self._http is None:  # which has time-outs of its own
            self.abort()

    def _close(self, transport: asyncio.Transport) -> None:
        """What the peer still sends is passed over until it closes too: a connection that is closed
        on unread bytes is reset, and its last words with it. They are not waited for long."""
        limit = self._server.limits.closing_ms
        self._closing = self._server.call_later(limit, transport.abort)
        try:
            transport.write_eof()
            transport.resume_reading()
        except OSError:  # the peer did not wait for them
            transport.abort()

    def _written(self) -> None:
        self._server.written(self)
