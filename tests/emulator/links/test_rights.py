"""What a key with fewer rights lets a peer do, link by link and request by request."""

from collections.abc import Mapping

import pytest
from azure.servicebus._pyamqp.utils import generate_sas_token

from servicebus_emulator.amqp import (
    Attach,
    Described,
    Detach,
    Int,
    Long,
    Source,
    Target,
    Transfer,
    Ulong,
    decode,
    encode,
)
from servicebus_emulator.broker import QueueSettings
from servicebus_emulator.sas import Grant, Keys, Right
from tests.emulator.links.peer import QUEUE, FakeHost, Peer, put

Asked = tuple[str, Mapping[str, object]]
PEEK: Asked = ("peek-message", {"from-sequence-number": Long(0), "message-count": Int(1)})
SCHEDULE: Asked = ("schedule-message", {"messages": []})
CANCEL: Asked = ("cancel-scheduled-message", {"sequence-numbers": []})
RULES: Asked = ("enumerate-rules", {"skip": Int(0), "top": Int(10)})


def connected(*rights: Right, prefix: str = "WO") -> Peer:
    """By a key that has those rights, to what begins so."""
    host = FakeHost(
        keys=Keys({"some": "secret"}, {"some": [Grant(right, prefix) for right in rights]})
    )
    host.broker.create_queue(QUEUE, QueueSettings())
    put(host, 1)
    peer = Peer(host).begin()
    resource, expiry = f"sb://host/{QUEUE}", host.clock() // 1000 + 60
    token: str = generate_sas_token(resource, "some", "secret", expiry)  # type: ignore[no-untyped-call]
    peer.connection.authorization.put(resource, token)
    return peer


def refusal_of(peer: Peer) -> str | None:
    """Of the link that was asked for last; None: it was made."""
    detached = [each for each in peer.said() if isinstance(each, Detach)]
    if not detached:
        return None
    assert detached[0].error is not None
    return detached[0].error.condition


@pytest.mark.parametrize(
    ("rights", "sends", "receives"),
    [
        ([Right.SEND], True, False),
        ([Right.LISTEN], False, True),
        ([Right.SEND, Right.LISTEN], True, True),
        ([Right.MANAGE], False, False),
        ([], False, False),
    ],
)
def test_a_link_needs_the_right_of_its_direction(
    rights: list[Right], sends: bool, receives: bool
) -> None:
    peer = connected(*rights)
    peer.attach_sender()
    assert refusal_of(peer) == (None if sends else "amqp:unauthorized-access")
    peer.attach_receiver()
    assert refusal_of(peer) == (None if receives else "amqp:unauthorized-access")


def test_a_right_is_for_the_entities_that_it_names() -> None:
    peer = connected(Right.SEND, prefix="another")
    peer.attach_sender()
    assert refusal_of(peer) == "amqp:unauthorized-access"


@pytest.mark.parametrize(
    ("request_", "right"),
    [
        (PEEK, Right.LISTEN),
        (SCHEDULE, Right.SEND),
        (CANCEL, Right.SEND),
        (RULES, Right.MANAGE),
    ],
)
def test_a_request_of_a_management_node_needs_its_right(request_: Asked, right: Right) -> None:
    """The node can be asked without any link on which messages go."""
    others = [each for each in Right if each is not right]
    assert status_of(connected(*others), *request_) == 401
    assert status_of(connected(right), *request_) != 401


def status_of(peer: Peer, operation: str, body: Mapping[str, object]) -> object:
    node = f"{QUEUE}/$management"
    peer.send(Attach("responses", 0, role=True, source=Source(node), target=Target("reply")))
    peer.send(Attach("requests", 1, role=False, source=Source("reply"), target=Target(node)))
    peer.frames()
    sections = (
        Described(Ulong(0x73), [Ulong(1), None, None, None, "reply"]),
        Described(Ulong(0x74), {"operation": f"com.microsoft:{operation}"}),
        Described(Ulong(0x77), dict(body)),
    )
    transfer = Transfer(1, delivery_id=0, delivery_tag=b"t", message_format=0)
    peer.send(transfer, b"".join(encode(each) for each in sections))
    (payload,) = [f.payload for f in peer.frames() if isinstance(f.performative, Transfer)]
    _, offset = decode(payload, 0)
    properties, _ = decode(payload, offset)
    assert isinstance(properties, Described)
    assert isinstance(properties.value, dict)
    return properties.value["statusCode"]
