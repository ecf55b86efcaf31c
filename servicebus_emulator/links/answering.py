"""What a peer that asks for a link is told."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from servicebus_emulator.amqp import Attach, Detach, Error
from servicebus_emulator.broker import SessionLock, Source
from servicebus_emulator.links.receiving import Deliveries

if TYPE_CHECKING:
    from servicebus_emulator.links.session import Session

_SETTLED = 1


class Refused(Exception):
    """The link is not made; the peer learns why."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.description)
        self.error = error


def answer(
    session: "Session",
    attach: Attach,
    *,
    initial_delivery_count: int | None = None,
    max_message_size: int | None = None,
    properties: Mapping[str, object] | None = None,
) -> None:
    """The link is made, with both ends as the peer named them."""
    session.write(
        Attach(
            name=attach.name,
            handle=attach.handle,
            role=not attach.role,
            snd_settle_mode=attach.snd_settle_mode,
            rcv_settle_mode=attach.rcv_settle_mode,
            source=attach.source,
            target=attach.target,
            initial_delivery_count=initial_delivery_count,
            max_message_size=max_message_size,
            properties=properties,
        )
    )


def refuse(session: "Session", attach: Attach, error: Error) -> None:
    """A link without ends tells the peer that a detach will follow."""
    session.write(Attach(attach.name, attach.handle, not attach.role, initial_delivery_count=0))
    session.write(Detach(handle=attach.handle, closed=True, error=error))


def keep_receiver(
    session: "Session", attach: Attach, source: Source, lock: SessionLock | None
) -> None:
    keep = attach.snd_settle_mode != _SETTLED
    link = Deliveries(session, attach.handle, attach.name, source, keep=keep, lock=lock)
    session.keep(attach.handle, link)
