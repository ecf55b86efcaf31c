"""A session: its links by handle, its windows, and the deliveries that are not settled."""

from typing import TYPE_CHECKING, Protocol

from servicebus_emulator.amqp import (
    AmqpError,
    Attach,
    Begin,
    Detach,
    Disposition,
    Error,
    Flow,
    Performative,
    Transfer,
    encode_frame,
    transfer_frame,
    transfer_frames,
)
from servicebus_emulator.links.attaching import make_link
from servicebus_emulator.links.settling import Unsettled

if TYPE_CHECKING:
    from servicebus_emulator.links.connection import Connection

HANDLE_MAX = 255
WINDOW = 2**31 - 1
_SERIALS = 2**32
_ROOM_FOR_HEAD = 128  # more than the head of a transfer frame ever takes


class Link(Protocol):
    """What a session does with each of its links, whichever way messages go."""

    name: str

    def flow(self, flow: Flow, /) -> None: ...

    def transfer(self, transfer: Transfer, payload: bytes, /) -> None: ...

    def pump(self) -> None:
        """The peer may take more."""

    def close(self) -> None: ...


class Session:
    def __init__(self, connection: "Connection", channel: int, begin: Begin) -> None:
        self.connection = connection
        self.channel = channel
        self.room = begin.incoming_window
        self.unsettled = Unsettled(self)
        self._links: dict[int, Link] = {}
        self._ended: set[int] = set()
        self._next_incoming = begin.next_outgoing_id
        self._next_outgoing = 0
        self._next_delivery = 0

    def handle(self, performative: Performative | None, payload: bytes) -> None:
        if isinstance(performative, Transfer):
            self._next_incoming = (self._next_incoming + 1) % _SERIALS
            self._transfer(performative, payload)
        elif isinstance(performative, Disposition):
            self.unsettled.settle(performative)
        elif isinstance(performative, Flow):
            self._flow(performative)
        elif isinstance(performative, Attach):
            self._attach(performative)
        elif isinstance(performative, Detach):
            self._detach(performative)
        elif performative is not None:
            raise AmqpError("amqp:not-allowed", "not a frame of a session")

    def pump(self) -> None:
        for link in list(self._links.values()):
            link.pump()

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()

    def links(self) -> list[Link]:
        return list(self._links.values())

    def write(self, performative: Attach | Flow | Detach) -> None:
        self.connection.write(encode_frame(self.channel, performative))

    def deliver(self, handle: int, tag: bytes, payload: bytes, *, settled: bool) -> int:
        """Send a message on a link; returns the id of the delivery."""
        number = self._next_delivery
        self._next_delivery = (number + 1) % _SERIALS
        limit = self.connection.max_frame_size
        if len(payload) + _ROOM_FOR_HEAD <= limit:
            frames, count = transfer_frame(self.channel, handle, number, tag, settled, payload), 1
        else:
            frames = transfer_frames(self.channel, handle, number, tag, settled, payload, limit)
            count = _frames_in(frames)
        self._next_outgoing = (self._next_outgoing + count) % _SERIALS
        self.room -= count
        self.connection.write(frames)
        return number

    def write_flow(
        self,
        handle: int | None = None,
        delivery_count: int | None = None,
        link_credit: int | None = None,
        *,
        drain: bool = False,
    ) -> None:
        flow = Flow(
            next_incoming_id=self._next_incoming,
            incoming_window=WINDOW,
            next_outgoing_id=self._next_outgoing,
            outgoing_window=WINDOW,
            handle=handle,
            delivery_count=delivery_count,
            link_credit=link_credit,
            drain=drain,
        )
        self.write(flow)

    def detach(self, handle: int, error: Error | None = None) -> None:
        """End a link from this side."""
        link = self._links.pop(handle, None)
        if link is not None:
            self._ended.add(handle)
            link.close()
            self.write(Detach(handle=handle, closed=True, error=error))

    def forget(self, handle: int) -> None:
        """Forget a link that was never there for the peer."""
        self._links.pop(handle, None)

    def keep(self, handle: int, link: Link) -> None:
        self._links[handle] = link

    def _transfer(self, transfer: Transfer, payload: bytes) -> None:
        link = self._links.get(transfer.handle)
        if link is None:
            if transfer.handle not in self._ended:
                raise AmqpError(
                    "amqp:session:unattached-handle", f"no link has the handle {transfer.handle}"
                )
            return  # it was sent before the peer knew that the link had ended
        link.transfer(transfer, payload)

    def _attach(self, attach: Attach) -> None:
        if attach.handle in self._links:
            raise AmqpError("amqp:session:handle-in-use", f"handle {attach.handle} is in use")
        if attach.handle > HANDLE_MAX:
            raise AmqpError("amqp:not-allowed", f"handle {attach.handle} is above {HANDLE_MAX}")
        self.connection.check_room_for_link()
        make_link(self, attach)

    def _detach(self, detach: Detach) -> None:
        self._ended.discard(detach.handle)
        link = self._links.pop(detach.handle, None)
        if link is not None:
            link.close()
            self.write(Detach(handle=detach.handle, closed=detach.closed))

    def _flow(self, flow: Flow) -> None:
        seen = flow.next_incoming_id or 0
        self.room = _difference(seen + flow.incoming_window, self._next_outgoing)
        if flow.handle is None:
            if flow.echo:
                self.write_flow()
            self.pump()
        elif flow.handle in self._links:
            self._links[flow.handle].flow(flow)


def _difference(later: int, earlier: int) -> int:
    """How far one serial number is ahead of another, both of which begin again after 2**32."""
    ahead = (later - earlier) % _SERIALS
    return ahead - _SERIALS if ahead >= _SERIALS // 2 else ahead


def _frames_in(data: bytes) -> int:
    count = offset = 0
    while offset < len(data):
        offset += int.from_bytes(data[offset : offset + 4], "big")
        count += 1
    return count
