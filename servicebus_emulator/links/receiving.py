"""A link on which the peer receives messages of a queue, a subscription or their dead letters."""

from typing import TYPE_CHECKING

from servicebus_emulator.amqp import AmqpError, Error, Flow, Transfer
from servicebus_emulator.broker import BrokerError, Delivery, SessionLock, Source
from servicebus_emulator.faults import FaultKind, Point
from servicebus_emulator.links import conditions
from servicebus_emulator.links.encoding import encoded
from servicebus_emulator.links.faulting import struck
from servicebus_emulator.links.host import Delayed, Dropped, Timer
from servicebus_emulator.links.settling import Held

if TYPE_CHECKING:
    from servicebus_emulator.links.session import Session

_SERIALS = 2**32
_FRAMES = 32  # room that is kept for each message, since a large one takes several frames
_NO_TAG = b"\x00" * 16
_AT_ONCE = 32  # messages that are encoded before the peer is looked at again


class Deliveries:
    """Gives the peer what it has credit for, as it comes. `keep`: the peer holds each message under
    a lock and settles it; else it is gone once delivered. What is held when the link ends stays
    locked, but a session is given back."""

    def __init__(
        self,
        session: "Session",
        handle: int,
        name: str,
        source: Source,
        *,
        keep: bool,
        lock: SessionLock | None,
    ) -> None:
        self.name = name
        self.lock = lock
        self.source = source
        self._session = session
        self._host = session.connection.host
        self._handle = handle
        self._keep = keep
        self._delivered = 0
        self._credit = 0
        self._is_waiting = False
        self._is_closed = False
        self._timer: Timer | None = None
        source.await_deletion(self._end)
        if lock is not None:
            lock.on_lost = self._lose_session

    def holds(self, entity: str, session_id: str) -> bool:
        if self.lock is None or self.lock.session_id != session_id:
            return False
        return self.source.path.lower() == entity.lower()

    def flow(self, flow: Flow) -> None:
        seen = flow.delivery_count or 0
        self._credit = (seen + (flow.link_credit or 0) - self._delivered) % _SERIALS
        if self._credit >= _SERIALS // 2:  # more was delivered than the peer knew
            self._credit = 0
        self.pump()
        if flow.drain and not self._is_closed:
            self._delivered = (self._delivered + self._credit) % _SERIALS
            self._credit = 0
            self._write_flow(drain=True)
        elif flow.echo and not self._is_closed:
            self._write_flow()

    def transfer(self, _transfer: Transfer, _payload: bytes, /) -> None:
        raise AmqpError("amqp:not-allowed", "this link goes the other way")

    def pump(self) -> None:
        if self._timer is not None:
            return
        try:
            self._deliver_all()
        except BrokerError as error:
            self._detach(conditions.as_error(error))
        except Dropped:
            self._session.connection.drop()
        except Delayed as delayed:
            self._timer = self._host.call_later(delayed.milliseconds, self._resume)

    def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.source.forget(self._wake)
        self.source.forget(self._end)
        if self.lock is not None:
            self.lock.on_lost = None
            self.lock.release()
        self._session.unsettled.forget(self.source)

    def _deliver_all(self) -> None:
        session, connection = self._session, self._session.connection
        while self._credit and session.room > 0 and not connection.is_congested:
            limit = min(self._credit, session.room // _FRAMES + 1, _AT_ONCE)
            fault = struck(self._host, Point.RECEIVE, self.source.path)
            if fault is not None and fault.kind is FaultKind.REFUSE:
                self._detach(conditions.busy())
                return
            if fault is not None:
                limit = 1
            deliveries = self.source.take(limit, keep=self._keep, session=self.lock)
            if not deliveries:
                self._wait()
                return
            for delivery in deliveries:
                self._deliver(delivery)
            if fault is not None:
                self.source.release(deliveries[0].token)

    def _deliver(self, delivery: Delivery) -> None:
        payload = encoded(delivery)
        token = delivery.token or _NO_TAG
        number = self._session.deliver(self._handle, token, payload, settled=not self._keep)
        self._delivered = (self._delivered + 1) % _SERIALS
        self._credit -= 1
        if self._keep:
            held = Held(self.source, token, delivery.locked_until or 0)
            self._session.unsettled.hold(number, held)

    def _wait(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self.source.await_message(self._wake, self.lock)

    def _wake(self) -> None:
        self._is_waiting = False
        self.pump()

    def _resume(self) -> None:
        self._timer = None
        self.pump()

    def _end(self) -> None:
        self._detach(Error(conditions.NOT_FOUND, f"{self.source.path} was deleted"))

    def _lose_session(self) -> None:
        self._detach(Error(conditions.SESSION_LOCK_LOST, "the lock on the session ran out"))

    def _detach(self, error: Error) -> None:
        self._session.detach(self._handle, error)

    def _write_flow(self, *, drain: bool = False) -> None:
        self._session.write_flow(self._handle, self._delivered, self._credit, drain=drain)
