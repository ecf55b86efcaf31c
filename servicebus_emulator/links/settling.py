"""Deliveries that a peer holds, and what becomes of them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from servicebus_emulator.amqp import (
    Accepted,
    Disposition,
    Error,
    Modified,
    Rejected,
    Released,
    State,
    disposition_frame,
)
from servicebus_emulator.broker import (
    Abandon,
    BrokerError,
    Complete,
    DeadLetter,
    Defer,
    Outcome,
    Source,
)
from servicebus_emulator.faults import FaultKind, Point
from servicebus_emulator.links import conditions
from servicebus_emulator.links.faulting import struck

if TYPE_CHECKING:
    from servicebus_emulator.links.session import Session

_REASON = "DeadLetterReason"
_DESCRIPTION = "DeadLetterErrorDescription"
_SERIALS = 2**32
_COMPLETE = Complete()
_ACCEPTED = Accepted()
_KEPT = 4096


class Held(NamedTuple):
    source: Source
    token: bytes
    until: int


class Unsettled:
    """By the id of the delivery. A peer that settles what is not here any more has lost its lock;
    so nothing must be kept for longer than a lock lasts."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._held: dict[int, Held] = {}
        self._prune_at = _KEPT

    def hold(self, number: int, held: Held) -> None:
        self._held[number] = held
        if len(self._held) > self._prune_at:
            self._prune()

    def forget(self, source: Source) -> None:
        """The link is gone. Its messages stay locked; who has their tokens can settle them over
        the management node."""
        self._held = {n: held for n, held in self._held.items() if held.source is not source}

    def settle(self, disposition: Disposition) -> None:
        if not disposition.role:
            return  # of the peer's own transfers, which were settled when they came
        first = disposition.first
        last = first if disposition.last is None else disposition.last
        for number in self._numbers(first, last):
            self._settle(number, disposition.state, is_final=bool(disposition.settled))

    def _numbers(self, first: int, last: int) -> Iterable[int]:
        """A range may be of any size: only one that is as short as what is held is counted up."""
        length = (last - first) % _SERIALS + 1
        if length <= max(len(self._held), 1):
            return [(first + n) % _SERIALS for n in range(length)]
        return [number for number in self._held if (number - first) % _SERIALS < length]

    def _settle(self, number: int, state: State | None, *, is_final: bool) -> None:
        held = self._held.get(number)
        answer: State
        if held is None:
            answer = Rejected(Error(conditions.MESSAGE_LOCK_LOST, "the lock was lost"))
        else:
            answer = self._apply(held, state)
            del self._held[number]
        if not is_final:
            session = self._session
            frame = disposition_frame(session.channel, number, answer, settled=True, role=False)
            session.connection.write(frame)

    def _apply(self, held: Held, state: State | None) -> State:
        fault = struck(self._session.connection.host, Point.SETTLE, held.source.path)
        if fault is not None and fault.kind is FaultKind.REFUSE:
            return Rejected(conditions.busy())
        if fault is not None and fault.kind is FaultKind.LOSE_SETTLEMENT:
            return _echo(state)
        try:
            settle(held, state)
        except BrokerError as error:
            return Rejected(conditions.as_error(error))
        if fault is not None and fault.kind is FaultKind.LOSE_ANSWER:
            self._session.connection.drop()
        return _echo(state)

    def _prune(self) -> None:
        now = self._session.connection.host.clock()
        self._held = {n: held for n, held in self._held.items() if held.until > now}
        self._prune_at = max(_KEPT, 2 * len(self._held))


def settle(held: Held, state: State | None) -> None:
    if isinstance(state, Accepted):
        held.source.settle(held.token, _COMPLETE)
        return
    settlement = _settlement(state)
    if settlement is None:
        held.source.release(held.token)
    else:
        held.source.settle(held.token, settlement)


def _settlement(state: State | None) -> Outcome | None:
    """None: as if it had not been delivered."""
    if isinstance(state, Rejected):
        return _dead_letter(state.error)
    if isinstance(state, Modified):
        properties = _properties(state.message_annotations)
        return Defer(properties) if state.undeliverable_here else Abandon(properties)
    return None


def _dead_letter(error: Error | None) -> DeadLetter:
    info = _properties(error.info if error is not None else None)
    reason, description = info.pop(_REASON, None), info.pop(_DESCRIPTION, None)
    return DeadLetter(
        None if reason is None else str(reason),
        None if description is None else str(description),
        info,
    )


def _properties(found: object) -> dict[str, object]:
    return {str(name): value for name, value in found.items()} if isinstance(found, dict) else {}


def _echo(state: State | None) -> State:
    """Clients compare the answer with what they asked; a rejection with an error is a failure."""
    if isinstance(state, Accepted):
        return _ACCEPTED
    if isinstance(state, Rejected):
        return Rejected()
    return state if isinstance(state, Modified) else Released()
