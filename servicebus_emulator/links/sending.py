"""A link on which the peer sends messages to an entity."""

from typing import TYPE_CHECKING
from uuid import uuid4

from servicebus_emulator.amqp import (
    Accepted,
    AmqpError,
    Error,
    Flow,
    Rejected,
    State,
    Transfer,
    disposition_frame,
)
from servicebus_emulator.broker import BrokerError
from servicebus_emulator.faults import FaultKind, Point
from servicebus_emulator.links import conditions
from servicebus_emulator.links.faulting import struck
from servicebus_emulator.links.parts import Parts
from servicebus_emulator.messages import Message

if TYPE_CHECKING:
    from servicebus_emulator.links.session import Session

BATCH_FORMAT = 0x80013700
_CREDIT = 2000
_REFILL_AT = 1000
_ACCEPTED = Accepted()


class Arrivals:
    def __init__(self, session: "Session", handle: int, name: str, entity: str, limit: int) -> None:
        self.name = name
        self._session = session
        self._host = session.connection.host
        self._handle = handle
        self._entity = entity
        self._parts = Parts(limit)
        self._arrived = 0
        self._credit = 0
        self._grant()

    def flow(self, flow: Flow) -> None:
        """The peer tells what it has; only an echo asks for something."""
        if flow.echo:
            self._grant()

    def transfer(self, transfer: Transfer, payload: bytes) -> None:
        if transfer.more or transfer.aborted:
            self._parts.add(transfer, payload)
            return
        fault = struck(self._host, Point.SEND, self._entity)
        whole = self._parts.end(transfer, payload)
        if fault is not None and fault.kind is FaultKind.REFUSE:
            outcome: State = Rejected(conditions.busy())
        else:
            outcome = self._accept(whole.payload, whole.message_format)
        if fault is not None and fault.kind is FaultKind.LOSE_ANSWER:
            self._session.connection.drop()
            return
        if not whole.is_settled:
            channel = self._session.channel
            frame = disposition_frame(channel, whole.delivery_id, outcome, settled=True, role=True)
            self._session.connection.write(frame)
        self._count()

    def pump(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _accept(self, payload: bytes | None, message_format: int) -> State:
        if payload is None:
            return Rejected(Error(conditions.TOO_LARGE, f"{self._entity} takes no such size"))
        try:
            if message_format == BATCH_FORMAT:
                messages = Message.parse_batch(payload)
            else:
                messages = [Message.parse(payload)]
            messages = [one if one.message_id else _named(one) for one in messages]
            self._host.broker.send(self._entity, messages)
        except BrokerError as error:
            return Rejected(conditions.as_error(error))
        except AmqpError as error:
            return Rejected(Error(error.condition, error.description))
        return _ACCEPTED

    def _count(self) -> None:
        self._arrived += 1
        self._credit -= 1
        if self._credit <= _REFILL_AT:
            self._grant()

    def _grant(self) -> None:
        self._credit = _CREDIT
        self._session.write_flow(self._handle, self._arrived % 2**32, _CREDIT)


def _named(message: Message) -> Message:
    """The service gives an id to what has none, and clients rely on it."""
    return message.with_message_id(uuid4().hex)
