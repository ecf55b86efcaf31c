"""Requests and responses over a pair of links, as the nodes `$cbs` and `$management` use them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from servicebus_emulator.amqp import (
    Accepted,
    AmqpError,
    Described,
    Flow,
    Transfer,
    Ulong,
    decode,
    disposition_frame,
    encode,
)
from servicebus_emulator.links import conditions
from servicebus_emulator.links.parts import Parts

if TYPE_CHECKING:
    from servicebus_emulator.links.session import Session

_PROPERTIES = 0x73
_APPLICATION_PROPERTIES = 0x74
_VALUE = 0x77
_MESSAGE_ID, _REPLY_TO = 0, 4
_CREDIT = 1000
_ACCEPTED = Accepted()
_NO_TAG = b"\x00" * 16


class Request(NamedTuple):
    message_id: object
    reply_to: str | None
    properties: Mapping[str, object]
    body: object


class Response(NamedTuple):
    properties: Mapping[str, object]
    body: object = None


class Node(Protocol):
    responders: list["Responses"]

    def handle(self, request: Request) -> Response:
        """What is wrong with a request is said in its response."""


class Requests:
    """The link on which requests come. Each is settled at once: clients look at dispositions by
    their number alone, and would take one for another's."""

    def __init__(self, session: "Session", handle: int, name: str, node: Node, limit: int) -> None:
        self.name = name
        self._session = session
        self._handle = handle
        self._node = node
        self._limit = limit
        self._parts = Parts(limit)
        self._arrived = 0
        self._grant()

    def flow(self, flow: Flow) -> None:
        if flow.echo:
            self._grant()

    def transfer(self, transfer: Transfer, payload: bytes) -> None:
        if transfer.more or transfer.aborted:
            self._parts.add(transfer, payload)
            return
        whole = self._parts.end(transfer, payload)
        if whole.payload is None:
            raise AmqpError(conditions.TOO_LARGE, f"a request has at most {self._limit} bytes")
        request = parse_request(whole.payload)
        response = self._node.handle(request)
        if not whole.is_settled:
            channel, number = self._session.channel, whole.delivery_id
            frame = disposition_frame(channel, number, _ACCEPTED, settled=True, role=True)
            self._session.connection.write(frame)
        self._answer(request, response)
        self._arrived += 1
        if self._arrived % (_CREDIT // 2) == 0:
            self._grant()

    def pump(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _answer(self, request: Request, response: Response) -> None:
        """To the link that the request names, or to the only one there is."""
        responders = self._node.responders
        named = [one for one in responders if one.address == request.reply_to]
        for responder in (named or responders)[-1:]:
            responder.send(request, response)

    def _grant(self) -> None:
        self._session.write_flow(self._handle, self._arrived % 2**32, _CREDIT)


class Responses:
    """The link on which responses go. Its credit is not counted: clients do not renew it."""

    def __init__(
        self, session: "Session", handle: int, name: str, node: Node, address: str | None
    ) -> None:
        self.name = name
        self.address = address
        self._session = session
        self._handle = handle
        self._node = node
        node.responders.append(self)

    def send(self, request: Request, response: Response) -> None:
        payload = encode_response(request, response)
        self._session.deliver(self._handle, _NO_TAG, payload, settled=True)

    def flow(self, flow: Flow) -> None:
        pass

    def transfer(self, _transfer: Transfer, _payload: bytes, /) -> None:
        raise AmqpError("amqp:not-allowed", "this link goes the other way")

    def pump(self) -> None:
        pass

    def close(self) -> None:
        self._node.responders.remove(self)


def parse_request(data: bytes) -> Request:
    sections: dict[object, object] = {}
    offset = 0
    while offset < len(data):
        section, offset = decode(data, offset)
        if not isinstance(section, Described):
            raise AmqpError("amqp:decode-error", "a message consists of described sections")
        sections[section.descriptor] = section.value
    fields = sections.get(_PROPERTIES)
    fields = fields if isinstance(fields, list) else []
    properties = sections.get(_APPLICATION_PROPERTIES)
    reply_to = _field(fields, _REPLY_TO)
    return Request(
        message_id=_field(fields, _MESSAGE_ID),
        reply_to=reply_to if isinstance(reply_to, str) else None,
        properties=properties if isinstance(properties, dict) else {},
        body=sections.get(_VALUE),
    )


def encode_response(request: Request, response: Response) -> bytes:
    correlation = request.message_id
    if isinstance(correlation, int):
        correlation = Ulong(correlation)  # the only number that an id can be
    properties = [None, None, None, None, None, correlation]
    return b"".join(
        (
            encode(Described(Ulong(_PROPERTIES), properties)),
            encode(Described(Ulong(_APPLICATION_PROPERTIES), dict(response.properties))),
            encode(Described(Ulong(_VALUE), response.body)),
        )
    )


def _field(fields: list[object], index: int) -> object:
    return fields[index] if index < len(fields) else None
