from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusMessageBatch
from azure.servicebus._pyamqp._decode import decode_payload
from azure.servicebus._pyamqp._encode import encode_payload
from azure.servicebus._transport._pyamqp_transport import PyamqpTransport
from azure.servicebus.amqp import AmqpAnnotatedMessage
from hypothesis import given
from hypothesis import strategies as st

from servicebus_emulator.amqp import (
    AmqpError,
    Array,
    Described,
    Kind,
    Symbol,
    Timestamp,
    Ubyte,
    Uint,
    Ulong,
    decode,
    encode,
)
from servicebus_emulator.messages import Message
from servicebus_emulator.rules.facts import Facts

DELIVERY: Mapping[str, Any] = {
    "sequence_number": 2**40,
    "enqueued_at": 1_700_000_000_000,
    "delivery_count": 0,
    "locked_until": 1_700_000_060_000,
    "state": 0,
}
OURS = {
    b"x-opt-sequence-number": 2**40,
    b"x-opt-enqueued-time": 1_700_000_000_000,
    b"x-opt-enqueue-sequence-number": 0,
    b"x-opt-message-state": 0,
    b"x-opt-locked-until": 1_700_000_060_000,
}
PROPERTY = st.one_of(
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.floats(allow_nan=False),
    st.uuids(),
    st.text(max_size=300),
)


def section(code: int, value: object) -> bytes:
    return encode(Described(Ulong(code), value))


def sent(message: ServiceBusMessage | AmqpAnnotatedMessage) -> bytes:
    """What the real client puts on the wire."""
    annotated = message if isinstance(message, AmqpAnnotatedMessage) else message.raw_amqp_message
    outgoing = PyamqpTransport.to_outgoing_amqp_message(annotated)
    return bytes(encode_payload(bytearray(), outgoing))


def received(message: Message, **changes: object) -> Any:
    """What the real client makes of it."""
    return decode_payload(memoryview(message.encoded(**{**DELIVERY, **changes})))


def test_a_message_of_the_client_is_understood() -> None:
    when = datetime(2030, 1, 1, tzinfo=UTC)
    message = Message.parse(
        sent(
            ServiceBusMessage(
                "body",
                message_id="id",
                session_id="session",
                partition_key="session",
                time_to_live=timedelta(seconds=90),
                scheduled_enqueue_time_utc=when,
                correlation_id="correlation",
                content_type="text/plain",
                subject="subject",
                to="to",
                reply_to="reply",
                reply_to_session_id="reply session",
                application_properties={"a": 1, "b": "two", "c": True, "d": 1.5},
            )
        )
    )
    assert message.ttl == 90_000
    assert message.scheduled_at == int(when.timestamp() * 1000)
    assert message.body == b"body"
    assert (message.message_id, message.session_id) == ("id", "session")
    assert message.partition_key == "session"
    assert message.facts == Facts(
        properties={"a": 1, "b": "two", "c": True, "d": 1.5},
        message_id="id",
        correlation_id="correlation",
        to="to",
        reply_to="reply",
        subject="subject",
        session_id="session",
        reply_to_session_id="reply session",
        content_type="text/plain",
        partition_key="session",
    )


def test_a_bare_message_of_the_client_is_understood() -> None:
    data = sent(ServiceBusMessage(b"x"))
    message = Message.parse(data)
    assert message.body == b"x"
    assert message.size == len(data)
    assert (message.ttl, message.scheduled_at) == (None, None)
    assert (message.session_id, message.partition_key) == (None, None)
    assert message.facts.properties == {}
    assert message.facts is message.facts


@given(st.dictionaries(st.text(max_size=40), PROPERTY, max_size=12), st.binary(max_size=400))
def test_any_properties_of_the_client_are_understood(
    properties: dict[str | bytes, Any], body: bytes
) -> None:
    message = Message.parse(sent(ServiceBusMessage(body, application_properties=properties)))
    assert message.facts.properties == properties
    assert message.body == body


def test_the_client_understands_what_it_receives() -> None:
    given_message = ServiceBusMessage(
        b"body", message_id="id", session_id="s", partition_key="s", time_to_live=timedelta(hours=1)
    )
    found = received(Message.parse(sent(given_message)), delivery_count=3)
    assert found.header.delivery_count == 3
    assert found.header.ttl == 3_600_000
    assert found.message_annotations == {b"x-opt-partition-key": b"s", **OURS}
    assert found.properties.message_id == b"id"
    assert found.properties.group_id == b"s"
    assert list(found.data) == [b"body"]


@pytest.mark.parametrize("count", [0, 1, 255, 256, 2**32 - 1])
def test_the_client_sees_the_delivery_count(count: int) -> None:
    assert received(Message.build(b"x"), delivery_count=count).header.delivery_count == count


def test_the_client_sees_dead_letters_and_states() -> None:
    found = received(
        Message.build(b"x"), dead_letter_source="topic/Subscriptions/s", locked_until=None, state=1
    ).message_annotations
    assert found[b"x-opt-deadletter-source"] == b"topic/Subscriptions/s"
    assert found[b"x-opt-message-state"] == 1
    assert b"x-opt-locked-until" not in found


def test_annotations_of_ours_are_not_taken_from_the_user() -> None:
    earlier = Message.build(b"x", partition_key="p").encoded(**DELIVERY, dead_letter_source="old")
    found = received(Message.parse(earlier), sequence_number=5, locked_until=None)
    expected = {**OURS, b"x-opt-partition-key": b"p", b"x-opt-sequence-number": 5}
    del expected[b"x-opt-locked-until"]
    assert found.message_annotations == expected


BARE = (
    section(0x73, ["id", b"user", *[None] * 8, "group"])
    + section(0x74, {"a": Uint(7), "b": [1]})
    + section(0x75, b"one")
    + section(0x75, b"two")
    + section(0x78, {Symbol("footer"): 1})
)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(BARE, id="nothing before"),
        pytest.param(section(0x70, [True, Ubyte(4), Uint(60000)]) + BARE, id="header"),
        pytest.param(section(0x72, {Symbol("x"): Ulong(1)}) + BARE, id="annotations"),
        pytest.param(
            section(0x70, [])
            + section(0x71, {Symbol("d"): 1})
            + section(0x72, {Ulong(1): None})
            + BARE,
            id="all",
        ),
        pytest.param(BARE + section(0x71, {Symbol("late"): 1}), id="late annotations"),
        pytest.param(
            section(0x72, {Symbol("x"): 1}) + BARE + section(0x70, [True]), id="a late header"
        ),
    ],
)
def test_what_the_user_wrote_is_passed_on_byte_by_byte(data: bytes) -> None:
    message = Message.parse(data)
    encoded = message.encoded(**DELIVERY)
    assert encoded.endswith(BARE)
    assert message.body == b"onetwo"
    assert message.size == len(data)
    assert Message.parse(encoded).facts == message.facts
    assert Message.parse(encoded).encoded(**DELIVERY) == encoded


def test_header_and_annotations_of_the_user_are_kept() -> None:
    data = (
        section(0x70, [True, Ubyte(7), Uint(60000), True, Uint(9)])
        + section(0x71, {Symbol("d"): "delivery"})
        + section(0x72, {Symbol("m"): Ulong(2**60), Symbol("x-opt-via-partition-key"): "v"})
        + section(0x75, b"")
    )
    found = received(Message.parse(data))
    assert tuple(found.header) == (True, 7, 60000, None, 0)
    assert found.delivery_annotations == {b"d": b"delivery"}
    assert found.message_annotations == {b"m": 2**60, b"x-opt-via-partition-key": b"v", **OURS}


def test_delivery_annotations_of_the_client_come_last_and_are_kept() -> None:
    annotated = AmqpAnnotatedMessage(
        data_body=b"x", delivery_annotations={"d": "e"}, annotations={"a": "b"}
    )
    found = received(Message.parse(sent(annotated)))
    assert found.delivery_annotations == {b"d": b"e"}
    assert found.message_annotations == {b"a": b"b", **OURS}
    assert list(found.data) == [b"x"]


@pytest.mark.parametrize(
    ("sections", "body"),
    [
        (section(0x75, b"a" * 300), b"a" * 300),
        (section(0x77, b"bytes"), b"bytes"),
        (section(0x77, "täxt" * 100), ("täxt" * 100).encode()),
        (section(0x77, {"a": 1}), section(0x77, {"a": 1})),
        (section(0x77, None), section(0x77, None)),
        (section(0x76, [1]) + section(0x76, [2]), section(0x76, [1]) + section(0x76, [2])),
        (section(0x75, b"a") + section(0x78, {}), b"a"),
        (b"", b""),
    ],
)
def test_the_body_is_what_the_sections_say(sections: bytes, body: bytes) -> None:
    assert Message.parse(sections).body == body


def test_a_sequence_and_a_value_of_the_client_are_passed_on() -> None:
    value = Message.parse(sent(AmqpAnnotatedMessage(value_body={"a": [1, "b"]})))
    assert received(value).value == {b"a": [1, b"b"]}
    sequence = Message.parse(sent(AmqpAnnotatedMessage(sequence_body=[1, "b"])))
    assert received(sequence).sequence == [[1, b"b"]]


@pytest.mark.parametrize(
    ("message_id", "text"),
    [
        ("id", "id"),
        (Ulong(7), "7"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (b"\x01\xff", "01ff"),
        (None, None),
    ],
)
def test_a_message_id_is_text_whatever_its_type(message_id: object, text: str | None) -> None:
    message = Message.parse(section(0x73, [message_id]))
    assert message.message_id == message.facts.message_id == text


@pytest.mark.parametrize(
    ("header_ttl", "times", "ttl"),
    [
        (Uint(5), (None, None), 5),
        (Uint(5), (Timestamp(100), Timestamp(10)), 5),
        (None, (Timestamp(100), Timestamp(10)), 90),
        (None, (Timestamp(10), Timestamp(100)), 0),
        (None, (Timestamp(10), None), None),
        (Uint(2**32 - 1), (Timestamp(2**40), Timestamp(0)), 2**40),
        (Uint(2**32 - 1), (None, None), 2**32 - 1),
    ],
)
def test_the_time_to_live_is_in_the_header_or_in_two_times(
    header_ttl: object, times: tuple[object, object], ttl: int | None
) -> None:
    header = section(0x70, [None, None, header_ttl])
    assert Message.parse(header + section(0x73, [*[None] * 8, *times])).ttl == ttl


def test_properties_are_replaced_and_added_and_the_rest_stays_byte_by_byte() -> None:
    message = Message.parse(section(0x70, [True]) + BARE)
    changed = message.with_properties({"a": "new", "DeadLetterReason": "why"})
    assert changed.facts.properties == {"a": "new", "b": [1], "DeadLetterReason": "why"}
    assert message.facts.properties == {"a": 7, "b": [1]}
    start = BARE.index(b"\x00\x53\x74")
    encoded = changed.encoded(**DELIVERY)
    assert encoded.endswith(BARE[BARE.index(b"\x00\x53\x75") :])
    assert BARE[:start] in encoded
    assert encode("b") + encode([1]) in encoded
    assert encoded.count(encode("a")) == 1
    assert changed.message_id == "id"


def test_the_types_of_properties_that_stay_are_kept() -> None:
    wide = b"\xb1\x00\x00\x00\x01k" + b"\x70\x00\x00\x00\x01"
    data = b"\x00\x53\x74\xd1" + (4 + len(wide)).to_bytes(4, "big") + b"\x00\x00\x00\x02" + wide
    assert wide in Message.parse(data).with_properties({"x": 1}).stored()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        section(0x75, b"body"),
        section(0x73, ["id"]) + section(0x75, b"body"),
        section(0x74, {}) + section(0x75, b"body"),
        section(0x75, b"body") + section(0x72, {Symbol("late"): 1}),
    ],
)
def test_properties_can_be_added_where_there_were_none(data: bytes) -> None:
    message = Message.parse(data)
    changed = message.with_properties({"reason": "why", "many": "x" * 300})
    assert changed.facts.properties == {"reason": "why", "many": "x" * 300}
    assert changed.body == message.body
    assert changed.message_id == message.message_id
    assert received(changed).application_properties == {b"reason": b"why", b"many": b"x" * 300}


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param("c10302a101", id="cut off"),
        pytest.param("c10502a101ff40", id="no utf-8"),
        pytest.param("c103024540", id="a list as key"),
        pytest.param("c0020140", id="a list"),
        pytest.param("40", id="null"),
    ],
)
def test_properties_that_cannot_be_read_are_none(damaged: str) -> None:
    message = Message.parse(b"\x00\x53\x74" + bytes.fromhex(damaged) + section(0x75, b"body"))
    assert message.facts.properties == {}
    assert message.with_properties({"a": 1}).facts.properties == {"a": 1}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(b"", section(0x73, ["new"]), id="no properties"),
        pytest.param(section(0x73, []), section(0x73, ["new"]), id="empty properties"),
        pytest.param(section(0x73, ["old"]), section(0x73, ["new"]), id="an id"),
        pytest.param(
            section(0x73, [Ulong(1), b"user", *[None] * 8, "group", Uint(7)]),
            section(0x73, ["new", b"user", *[None] * 8, "group", Uint(7)]),
            id="all else as it was",
        ),
        pytest.param(
            section(0x73, [None, b"u" * 300]), section(0x73, ["new", b"u" * 300]), id="a long list"
        ),
    ],
)
def test_a_message_gets_another_id(before: bytes, after: bytes) -> None:
    rest = section(0x74, {"a": 1}) + section(0x75, b"body")
    changed = Message.parse(section(0x70, [True]) + before + rest).with_message_id("new")
    assert changed.message_id == "new"
    assert changed.stored() == section(0x70, [True]) + after + rest


def test_a_stored_message_is_the_same_message() -> None:
    original = Message.parse(BARE + section(0x71, {Symbol("late"): 1}))
    again = Message.parse(original.stored())
    assert again.encoded(**DELIVERY) == original.encoded(**DELIVERY)
    assert again.facts == original.facts
    assert again.size == original.size


PROPERTIES: dict[str, object] = {
    "text": "a",
    "small": 5,
    "int": -(2**31),
    "long": 2**31,
    "flag": True,
    "real": 0.5,
    "bytes": b"b",
    "uuid": UUID(int=5),
    "nothing": None,
}


def test_a_message_that_is_built_is_one_that_the_client_sends() -> None:
    given_properties = {key: PROPERTIES[key] for key in ("text", "small", "int", "flag", "real")}
    built = Message.build(
        b"body",
        message_id="id",
        session_id="s",
        partition_key="s",
        correlation_id="c",
        content_type="text/plain",
        properties=given_properties,
    )
    client = ServiceBusMessage(
        b"body",
        message_id="id",
        session_id="s",
        partition_key="s",
        correlation_id="c",
        content_type="text/plain",
        application_properties=dict(given_properties),  # type: ignore[arg-type]
    )
    theirs = decode_payload(memoryview(sent(client)))
    ours = decode_payload(memoryview(built.stored()))
    assert ours == theirs


def test_a_message_is_built_of_all_it_can_have() -> None:
    message = Message.build(
        b"body",
        message_id="id",
        session_id="s",
        partition_key="s",
        ttl=1000,
        scheduled_at=5,
        correlation_id="c",
        subject="subject",
        to="to",
        reply_to="r",
        reply_to_session_id="rs",
        content_type="text/plain",
        properties=PROPERTIES | {"when": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)},
    )
    assert message.body == b"body"
    assert (message.ttl, message.scheduled_at) == (1000, 5)
    assert message.facts == Facts(
        properties=PROPERTIES | {"when": 1000},
        message_id="id",
        correlation_id="c",
        to="to",
        reply_to="r",
        subject="subject",
        session_id="s",
        reply_to_session_id="rs",
        content_type="text/plain",
        partition_key="s",
    )


def test_numbers_of_properties_have_the_width_that_the_client_gives_them() -> None:
    data = Message.build(b"", properties={"a": 1, "b": 2**20, "c": 2**40}).stored()
    assert b"\xa1\x01a\x54\x01" in data
    assert b"\xa1\x01b\x71\x00\x10\x00\x00" in data
    assert b"\xa1\x01c\x81" in data


def test_a_moment_without_zone_is_utc() -> None:
    moment = datetime(1970, 1, 2)  # noqa: DTZ001
    assert Message.build(b"", properties={"a": moment}).facts.properties == {"a": 86_400_000}


def test_a_life_too_long_for_a_header_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        Message.build(b"", ttl=2**32)


def batch_of(*messages: ServiceBusMessage) -> bytes:
    batch = ServiceBusMessageBatch(2**20)
    for message in messages:
        batch.add_message(message)
    return bytes(encode_payload(bytearray(), batch._message))


def test_a_batch_of_the_client_is_its_messages() -> None:
    messages = [
        ServiceBusMessage("x" * size, message_id=str(size), session_id="s", partition_key="s")
        for size in (1, 100, 1000)
    ]
    found = Message.parse_batch(batch_of(*messages))
    assert [one.message_id for one in found] == ["1", "100", "1000"]
    assert [len(one.body) for one in found] == [1, 100, 1000]
    assert [one.stored() for one in found] == [sent(one) for one in messages]


def test_a_batch_may_be_empty() -> None:
    assert Message.parse_batch(batch_of()) == []


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(section(0x77, b"x"), id="a value"),
        pytest.param(section(0x75, b"x"), id="data that is no message"),
        pytest.param(section(0x75, section(0x70, [1])), id="a message that is none"),
    ],
)
def test_what_is_no_batch_is_a_decode_error(data: bytes) -> None:
    with pytest.raises(AmqpError):
        Message.parse_batch(data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(encode("text"), id="not described"),
        pytest.param(section(0x79, []), id="an unknown section"),
        pytest.param(section(0x70, []) * 2, id="two headers"),
        pytest.param(section(0x74, {}) * 2, id="two sections of properties"),
        pytest.param(section(0x75, "text"), id="data that is text"),
        pytest.param(section(0x75, b"text")[:-1], id="cut off"),
        pytest.param(section(0x70, [None, None, -1]), id="a negative life"),
        pytest.param(section(0x70, [None, "high"]), id="a priority that is text"),
        pytest.param(section(0x70, [1]), id="durable that is a number"),
        pytest.param(section(0x70, [None] * 6), id="a header too long"),
        pytest.param(section(0x72, []), id="annotations that are an empty list"),
        pytest.param(section(0x72, [1, 2]), id="annotations that are a list"),
        pytest.param(bytes.fromhex("005372c100"), id="annotations without a number"),
        pytest.param(bytes.fromhex("005372c1020140"), id="an annotation without value"),
        pytest.param(bytes.fromhex("005372c103024055"), id="an annotation that is cut off"),
        pytest.param(section(0x72, {Symbol("x-opt-partition-key"): 1}), id="a number as key"),
        pytest.param(section(0x72, {Symbol("x-opt-scheduled-enqueue-time"): "x"}), id="no time"),
        pytest.param(section(0x73, [None] * 10 + [5]), id="a session that is a number"),
        pytest.param(section(0x73, {}), id="properties that are a map"),
        pytest.param(section(0x73, Array(Kind.STRING, ["id"])), id="properties that are an array"),
        pytest.param(b"\x00\x45\x45", id="a descriptor that is a list"),
        pytest.param(b"\x00\xa1\x01x\x45", id="a descriptor that is text"),
    ],
)
def test_what_is_no_message_is_a_decode_error(data: bytes) -> None:
    with pytest.raises(AmqpError) as refused:
        Message.parse(data)
    assert refused.value.condition == "amqp:decode-error"


def test_sections_may_be_described_in_their_long_forms() -> None:
    named = encode(Described(Symbol("amqp:properties:list"), ["id"]))
    long = b"\x00\x80" + bytes(7) + b"\x75" + encode(b"body")
    message = Message.parse(named + long)
    assert message.message_id == "id"
    assert message.body == b"body"
    assert message.encoded(**DELIVERY).endswith(named + long)


def test_ours_are_typed_as_the_service_types_them() -> None:
    _, start = decode(Message.build(b"x").encoded(**DELIVERY))
    encoded = Message.build(b"x").encoded(**DELIVERY)[start:]
    assert encode(Symbol("x-opt-sequence-number")) + b"\x81" in encoded
    assert encode(Symbol("x-opt-enqueued-time")) + b"\x83" in encoded
    assert encode(Symbol("x-opt-locked-until")) + b"\x83" in encoded
    assert encode(Symbol("x-opt-message-state")) + b"\x71" in encoded


@given(st.dictionaries(st.text(max_size=9), st.text(max_size=9) | st.integers(-(2**63), 2**63 - 1)))
def test_a_message_that_was_built_has_the_facts_that_are_read_from_its_bytes(
    properties: dict[str, object],
) -> None:
    built = Message.build(b"", message_id="m", partition_key="acme", properties=properties)
    assert built.facts == Message.parse(built.stored()).facts
