"""A receiver that wants a session: the one it names, or the next that is free."""

from typing import TYPE_CHECKING

from servicebus_emulator.amqp import Attach, Described, Error, Flow, Long, Symbol, Transfer
from servicebus_emulator.amqp import Source as Terminus
from servicebus_emulator.broker import BrokerError, SessionLock, Source
from servicebus_emulator.links import conditions
from servicebus_emulator.links.answering import Refused, answer, keep_receiver, refuse
from servicebus_emulator.links.host import Timer

if TYPE_CHECKING:
    from servicebus_emulator.links.session import Session

_FILTER = Symbol("com.microsoft:session-filter")
_LOCKED_UNTIL = Symbol("com.microsoft:locked-until-utc")
_TIMEOUT = "com.microsoft:timeout"
_PATIENCE = 60_000  # milliseconds, where the peer does not say how long it waits
_TICKS_AT_EPOCH = 621_355_968_000_000_000
_TICKS_PER_MILLISECOND = 10_000


def wants_session(attach: Attach) -> bool:
    terminus = attach.source
    return isinstance(terminus, Terminus) and _FILTER in (terminus.filter or {})


def accept_session(session: "Session", attach: Attach, source: Source) -> None:
    """The peer is answered once it has a session, or when it has waited long enough."""
    lock = source.accept_session(_session_id(attach))
    if lock is None:
        _Wait(session, attach, source)
    else:
        _grant(session, attach, source, lock)


def _session_id(attach: Attach) -> str | None:
    assert isinstance(attach.source, Terminus)
    found = (attach.source.filter or {})[_FILTER]
    found = found.value if isinstance(found, Described) else found
    if found is not None and not isinstance(found, str):
        raise Refused(Error("amqp:invalid-field", "a session id is a string"))
    return found


def _grant(session: "Session", attach: Attach, source: Source, lock: SessionLock) -> None:
    assert isinstance(attach.source, Terminus)
    granted = attach.source._replace(filter={_FILTER: lock.session_id})
    ticks = _TICKS_AT_EPOCH + lock.locked_until * _TICKS_PER_MILLISECOND
    properties: dict[str, object] = {_LOCKED_UNTIL: Long(ticks)}
    answer(
        session, attach._replace(source=granted), initial_delivery_count=0, properties=properties
    )
    keep_receiver(session, attach, source, lock)


class _Wait:
    """In the place of the link, until a session is free."""

    def __init__(self, session: "Session", attach: Attach, source: Source) -> None:
        self.name = attach.name
        self._session = session
        self._attach = attach
        self._source = source
        self._timer: Timer = session.connection.host.call_later(_patience(attach), self._end)
        session.keep(attach.handle, self)
        source.await_session(self._wake)

    def flow(self, _flow: Flow, /) -> None:
        """Clients give credit again once they have the link."""

    def transfer(self, _transfer: Transfer, _payload: bytes, /) -> None:
        """It cannot send anything that would matter."""

    def pump(self) -> None:
        pass

    def close(self) -> None:
        self._timer.cancel()
        self._source.forget(self._wake)

    def _wake(self) -> None:
        if self._session.connection.is_over:
            return  # another link of it gave the session back
        try:
            lock = self._source.accept_session(None)
        except BrokerError as error:
            self._leave(conditions.as_error(error))
            return
        if lock is None:
            self._source.await_session(self._wake)
            return
        self._timer.cancel()
        _grant(self._session, self._attach, self._source, lock)

    def _end(self) -> None:
        self._leave(Error(conditions.TIMEOUT, "no session became free in time"))

    def _leave(self, error: Error) -> None:
        self.close()
        self._session.forget(self._attach.handle)
        refuse(self._session, self._attach, error)


def _patience(attach: Attach) -> int:
    found = (attach.properties or {}).get(_TIMEOUT)
    return found if isinstance(found, int) else _PATIENCE
