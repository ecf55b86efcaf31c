"""The emulator as a server on one port: AMQP for clients that send and receive, HTTP for those that
manage."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from servicebus_emulator.administration import Administration, AdministrationProtocol, Full
from servicebus_emulator.broker import Broker, Observation, Record
from servicebus_emulator.connection_limits import ConnectionLimits
from servicebus_emulator.faults import Faults
from servicebus_emulator.journal import JournalError
from servicebus_emulator.links import Timer
from servicebus_emulator.peers import Peer
from servicebus_emulator.sas import Keys

_SHORTEST = 0.001  # seconds; timers may fire a little early
_RETRY_SECONDS = 1.0
_REFUSED_AT_ONCE = 64  # connections that are told why they are refused; others are cut
_log = logging.getLogger("servicebus_emulator")


def wall_clock() -> int:
    return time.time_ns() // 1_000_000


def random_token() -> bytes:
    return os.urandom(16)


class Keeper(Protocol):
    """Where changes are kept: a `Journal`."""

    @property
    def wants_compaction(self) -> bool: ...

    def load(self) -> Iterable[Record]: ...

    def record(self, record: Record, /) -> None: ...

    def flush(self) -> None: ...

    def compact(self, records: Iterable[Record], /) -> None: ...


class Emulator:
    """Serves a broker on a loopback port.

    Nothing is answered before it is kept: what was read in one turn of the loop is handled, then
    the journal is written, and only then do answers leave. `journal` None: nothing is kept, and a
    stop loses all. `observe` is told what receivers and time do to messages.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], int] = wall_clock,
        tokens: Callable[[], bytes] = random_token,
        keys: Keys | None = None,
        journal: Keeper | None = None,
        limits: ConnectionLimits | None = None,
        max_message_bytes: int = 256 * 1024,
        observe: Callable[[Observation], None] | None = None,
    ) -> None:
        self.clock = clock
        self.name = "lucius-servicebus-emulator"
        self.keys = keys or Keys()
        self.faults = Faults()
        self.limits = limits or ConnectionLimits()
        self._journal = journal
        record: Callable[[Record], None] | None = None if journal is None else journal.record
        self.broker = Broker(clock, tokens, record, max_message_bytes, observe)
        self._administration = Administration(self.broker, self.keys, clock, self.faults, self.keep)
        self._server: asyncio.Server | None = None
        self._peers: set[Peer] = set()
        self._written: dict[Peer, None] = {}
        self._is_flush_due = False
        self._due: asyncio.TimerHandle | None = None
        self._due_at: int | None = None
        if journal is not None:
            self.broker.restore(journal.load())

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Port 0: one that is free."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Peer(self), host, port)
        self.settle_soon()

    @property
    def is_listening(self) -> bool:
        return self._server is not None

    @property
    def port(self) -> int:
        if self._server is None:
            raise RuntimeError("the emulator was not started")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def connection_string(self) -> str:
        """For clients on this machine. Without keys any key is as good as another."""
        name, key = next(iter(self.keys.items()), ("local", "local"))
        return (
            f"Endpoint=sb://127.0.0.1:{self.port};SharedAccessKeyName={name};"
            f"SharedAccessKey={key};UseDevelopmentEmulator=true;"
        )

    async def stop(self) -> None:
        """Returns when no connection is left. The broker keeps what it has, and may be served
        again."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self.drop_connections()
        self._disarm()
        self._write_down()
        if server is not None:
            await server.wait_closed()

    def drop_connections(self) -> None:
        for peer in list(self._peers):
            peer.abort()

    def tick(self) -> None:
        """It is time, or the clock was moved: do what time has brought."""
        self._disarm()
        self.broker.tick()
        self.settle_soon()

    def keep(self) -> None:
        """Write down what has changed. Who changes the broker without a connection calls this
        before relying on it. `JournalError`: it is not kept yet, and tried again."""
        self.settle_soon()
        self._write_down()

    def _write_down(self) -> None:
        journal = self._journal
        if journal is None:
            return
        journal.flush()
        if journal.wants_compaction:
            journal.compact(self.broker.snapshot())

    def opened(self, peer: Peer) -> bool:
        limit = self.limits.connections
        is_admitted = sum(other.counts for other in self._peers) < limit
        self._peers.add(peer)
        if len(self._peers) > limit + _REFUSED_AT_ONCE:
            peer.abort()
        return is_admitted

    def closed(self, peer: Peer) -> None:
        self._peers.discard(peer)

    def written(self, peer: Peer) -> None:
        self._written[peer] = None
        self.settle_soon()

    def administration_protocol(self, *, is_refused: bool = False) -> AdministrationProtocol:
        app = Full() if is_refused else self._administration
        return AdministrationProtocol(app, self.limits)

    def call_later(self, milliseconds: int, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(milliseconds / 1000, callback)

    def settle_soon(self) -> None:
        """Something has changed: keep it and answer, once for all of this turn of the loop."""
        if not self._is_flush_due and self._server is not None:
            self._is_flush_due = True
            asyncio.get_running_loop().call_soon(self._settle)

    def _settle(self) -> None:
        self._is_flush_due = False
        try:
            self._write_down()
        except JournalError:
            _log.exception("nothing is answered until it can be kept")
            self._is_flush_due = True
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._settle)
            return
        written, self._written = self._written, {}
        for peer in written:
            peer.send()
        self._arm()

    def _arm(self) -> None:
        due = self.broker.next_due()
        if due == self._due_at or self._server is None:
            return
        self._disarm()
        if due is not None:
            self._due_at = due
            seconds = max((due - self.clock()) / 1000, _SHORTEST)
            self._due = asyncio.get_running_loop().call_later(seconds, self.tick)

    def _disarm(self) -> None:
        if self._due is not None:
            self._due.cancel()
        self._due = self._due_at = None
