"""A link is asked for: what it becomes, or why not."""

from typing import TYPE_CHECKING

from servicebus_emulator.amqp import Attach, Coordinator, Error, Symbol, Target, Ulong
from servicebus_emulator.broker import BrokerError, Source
from servicebus_emulator.faults import Point
from servicebus_emulator.links import conditions
from servicebus_emulator.links.accepting import accept_session, wants_session
from servicebus_emulator.links.addresses import Address, parse_address
from servicebus_emulator.links.answering import Refused, answer, keep_receiver, refuse
from servicebus_emulator.links.faulting import struck
from servicebus_emulator.links.requests import Node, Requests, Responses
from servicebus_emulator.links.sending import Arrivals
from servicebus_emulator.sas import Right, Unauthorized

if TYPE_CHECKING:
    from servicebus_emulator.links.session import Session

_BATCH_SIZE = Symbol("com.microsoft:max-message-batch-size")
_REQUEST_LIMIT = 1024 * 1024
_TOKEN_LIMIT = 64 * 1024
_SPARE = 64 * 1024  # so that what is a little too large is refused alone, not with its link


def make_link(session: "Session", attach: Attach) -> None:
    """Answer the peer: with a link, or with one that ends at once."""
    try:
        _make_link(session, attach)
    except Refused as refused:
        refuse(session, attach, refused.error)
    except BrokerError as error:
        refuse(session, attach, conditions.as_error(error))


def _make_link(session: "Session", attach: Attach) -> None:
    address = _address(attach)
    if not address.is_cbs:
        if struck(session.connection.host, Point.ATTACH, address.entity) is not None:
            raise Refused(conditions.busy())
        _authorize(session, address, attach)
    node = _node(session, address)
    if node is not None:
        _attach_to_node(session, attach, node)
    elif attach.role:
        _attach_receiver(session, attach, session.connection.host.broker.source(address.entity))
    else:
        _attach_sender(session, attach, address.entity)


def _address(attach: Attach) -> Address:
    """Of the end that is here: the source of a receiver, the target of a sender."""
    terminus = attach.source if attach.role else attach.target
    if isinstance(terminus, Coordinator):
        raise Refused(Error(conditions.NOT_IMPLEMENTED, "there are no transactions here"))
    if terminus is None or not isinstance(terminus.address, str):
        raise Refused(Error("amqp:invalid-field", "the link names no address"))
    return parse_address(terminus.address)


def _authorize(session: "Session", address: Address, attach: Attach) -> None:
    """What is asked of a management node has its right checked with each request."""
    right = None if address.is_management else Right.LISTEN if attach.role else Right.SEND
    try:
        session.connection.authorization.check(address.entity, right)
    except Unauthorized as error:
        raise Refused(Error(conditions.UNAUTHORIZED, str(error))) from error


def _node(session: "Session", address: Address) -> Node | None:
    if address.is_cbs:
        return session.connection.cbs
    return session.connection.management(address.entity) if address.is_management else None


def _attach_to_node(session: "Session", attach: Attach, node: Node) -> None:
    name, handle = attach.name, attach.handle
    limit = _TOKEN_LIMIT if node is session.connection.cbs else _REQUEST_LIMIT
    if attach.role:
        reply_to = attach.target.address if isinstance(attach.target, Target) else None
        answer(session, attach, initial_delivery_count=0)
        session.keep(handle, Responses(session, handle, name, node, reply_to))
    else:
        answer(session, attach, max_message_size=limit)
        session.keep(handle, Requests(session, handle, name, node, limit))


def _attach_sender(session: "Session", attach: Attach, entity: str) -> None:
    limit = session.connection.host.broker.message_limit(entity)
    answer(session, attach, max_message_size=limit, properties={_BATCH_SIZE: Ulong(limit)})
    arrivals = Arrivals(session, attach.handle, attach.name, entity, limit + _SPARE)
    session.keep(attach.handle, arrivals)


def _attach_receiver(session: "Session", attach: Attach, source: Source) -> None:
    if wants_session(attach) != source.requires_session:
        needs = "needs" if source.requires_session else "has no"
        raise Refused(Error(conditions.NOT_ALLOWED, f"{source.path} {needs} sessions"))
    if source.requires_session:
        accept_session(session, attach, source)
    else:
        answer(session, attach, initial_delivery_count=0)
        keep_receiver(session, attach, source, None)
