"""The codec of the real client reads what we write, and we read what it writes."""

from typing import Any

import pytest
from azure.servicebus._pyamqp import _decode, _encode, endpoints, outcomes, performatives
from azure.servicebus._pyamqp.error import AMQPError as ClientError
from hypothesis import given
from hypothesis import strategies as st

from servicebus_emulator.amqp import (
    Accepted,
    Array,
    Attach,
    Begin,
    Close,
    Described,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Modified,
    Open,
    Performative,
    Received,
    Rejected,
    Released,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Source,
    Target,
    Transfer,
    decode,
    decode_performative,
    encode,
    encode_composite,
)
from tests.emulator.amqp.values import ARRAYS, SYMBOLS, signed

SIMPLE = st.one_of(
    st.none(),
    st.booleans(),
    signed(32),
    st.floats(allow_nan=False),
    st.uuids(),
    st.binary(max_size=300),
    st.text(max_size=300),
)
KEYS = st.text(max_size=20)
VALUES = st.recursive(
    SIMPLE,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


def as_client(value: Any) -> Any:
    """The client has one type for texts, symbols and binaries, and plain lists for composites."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict):
        return {as_client(key): as_client(item) for key, item in value.items()}
    if isinstance(value, Accepted | Released | Rejected | Modified | Received):
        fields = [] if isinstance(value, Accepted | Released) else list(value)
        return {type(value).__name__.lower(): without_tail(as_client(fields))}
    if isinstance(value, list | tuple):
        return [as_client(item) for item in value]
    return value


def without_tail(fields: list[Any]) -> list[Any]:
    while fields and fields[-1] is None:
        fields = fields[:-1]
    return fields


def read_by_client(data: bytes) -> Any:
    rest, value = _decode._DECODE_BY_CONSTRUCTOR[data[0]](memoryview(data)[1:])
    assert not rest
    return value


def written_by_client(value: object) -> bytes:
    output = bytearray()
    _encode.encode_value(output, value)
    return bytes(output)


@given(VALUES)
def test_the_client_reads_our_values(value: object) -> None:
    assert read_by_client(encode(value)) == as_client(value)


@given(VALUES)
def test_we_read_values_of_the_client(value: object) -> None:
    data = written_by_client(value)
    assert decode(data) == (value, len(data))


def _has_elements(array: object) -> bool:
    return isinstance(array, Array) and bool(array.values)


# The client takes the constructor of an empty array for the next value: we never send one to it.
@given(ARRAYS.filter(_has_elements), st.integers(0, 255), SYMBOLS)
def test_the_client_reads_our_arrays_and_descriptions(
    array: Any, descriptor: int, name: str
) -> None:
    assert read_by_client(encode(array)) == as_client(list(array.values))
    described = encode([Described(name, array), Described(descriptor, b"x")])
    assert read_by_client(described)[0] == as_client(list(array.values))


ERROR = Error("amqp:not-found", "nowhere", {"a": 1})
SOURCE = Source(
    address="amqps://host/topic/Subscriptions/one",
    expiry_policy="session-end",
    filter={"com.microsoft:session-filter": "session"},
    outcomes=["amqp:accepted:list", "amqp:rejected:list"],
)
OURS: list[tuple[int, Performative]] = [
    (0x10, Open("server", "host", 65536, 255, 240000, properties={"product": "x"})),
    (0x10, Open("server", "host", 65536, 255, offered_capabilities=["a", "b"])),
    (0x11, Begin(1, 0, 2**31 - 1, 5000, 255)),
    (0x12, Attach("link", 3, False, 0, 1, SOURCE, Target("t"), None, False, 0, 2**20)),
    (0x12, Attach("link", 2**32 - 1, True, 0, 1, None, None, properties={"n": True})),
    (0x13, Flow(0, 5000, 1, 5000, 3, 0, 1000, 0, True, False)),
    (0x15, Disposition(False, 7, None, True, Accepted())),
    (0x15, Disposition(False, 7, 2**32 - 1, True, Rejected(ERROR))),
    (0x15, Disposition(False, 7, None, True, Rejected())),
    (0x15, Disposition(False, 7, None, True, Modified(True, False, {"a": "b"}))),
    (0x15, Disposition(False, 7, None, True, Released())),
    (0x15, Disposition(False, 7, None, False, Received(1, 2))),
    (0x16, Detach(3, True, ERROR)),
    (0x16, Detach(3, True, Error("amqp:not-found"))),
    (0x17, End(ERROR)),
    (0x17, End()),
    (0x18, Close(ERROR)),
    (0x40, SaslMechanisms(["ANONYMOUS", "MSSBCBS"])),
    (0x44, SaslOutcome(0)),
]


@pytest.mark.parametrize(("code", "performative"), OURS)
def test_the_client_reads_our_performatives(code: int, performative: Any) -> None:
    found, fields = _decode.decode_frame(memoryview(encode_composite(performative)))
    assert found == code
    defaults = [None if one is None else one.default for one in _definition(code)]
    expected = [
        default if value is None else value
        for value, default in zip(as_client(performative), defaults, strict=True)
    ]
    assert fields == expected


def _definition(code: int) -> Any:
    frames = [one for one in vars(performatives).values() if getattr(one, "_code", None) == code]
    return frames[0]._definition


def test_the_client_reads_our_transfers() -> None:
    transfer = encode_composite(Transfer(1, 2, b"tag", 0, True, True))
    _, fields = _decode.decode_frame(memoryview(transfer + b"payload"))
    assert fields[:6] == [1, 2, b"tag", 0, True, True]
    assert bytes(fields[11]) == b"payload"


FILTER = {"com.microsoft:session-filter": "session"}
DESCRIBED = (None, None, False, None)  # expiry, timeout, dynamic, node properties
THEIR_SOURCE = endpoints.Source(
    *("amqps://host/queue", 0, *DESCRIBED, None, FILTER, None, None, ["a"])
)
THEIR_TARGET = endpoints.Target(*("t", None, *DESCRIBED, None))
FLOW = Flow(0, 1, 2, 3, 4, 5, 6, drain=True)
THEIRS: list[tuple[Any, Performative]] = [
    (
        performatives.OpenFrame("c", "h", 2**20, 65535, None, None, None, None, None, {"a": "b"}),
        Open("c", "h", 2**20, 65535, properties={"a": "b"}),
    ),
    (
        performatives.BeginFrame(None, 0, 65536, 65536, 2**32 - 1, None, None, None),
        Begin(None, 0, 65536, 65536, 2**32 - 1),
    ),
    (
        performatives.AttachFrame(
            *("link", 1, True, 0, 1, THEIR_SOURCE, THEIR_TARGET, None, False),
            *(None, 2**20, None, ["x", "y"], {"com.microsoft:timeout": 1000}),
        ),
        Attach(
            *("link", 1, True, 0, 1),
            Source("amqps://host/queue", 0, filter=FILTER, capabilities=["a"]),
            Target("t"),
            max_message_size=2**20,
            desired_capabilities=["x", "y"],
            properties={"com.microsoft:timeout": 1000},
        ),
    ),
    (performatives.FlowFrame(0, 1, 2, 3, 4, 5, 6, None, True, None, None), FLOW),
    (
        performatives.TransferFrame(1, 2, b"tag", 0x80013700, False, False, payload=b""),
        Transfer(1, 2, b"tag", 0x80013700, False),
    ),
    (
        performatives.DispositionFrame(True, 1, None, False, outcomes.Accepted(), None),
        Disposition(True, 1, None, False, Accepted()),
    ),
    (
        performatives.DispositionFrame(True, 1, 2, True, outcomes.Released(), False),
        Disposition(True, 1, 2, True, Released()),
    ),
    (
        performatives.DispositionFrame(
            True, 1, None, False, outcomes.Modified(True, True, {}), None
        ),
        Disposition(True, 1, None, False, Modified(True, True)),
    ),
    (
        performatives.DispositionFrame(
            *(True, 1, None, False),
            outcomes.Rejected(
                error=ClientError(
                    condition=b"com.microsoft:dead-letter",
                    description="why",
                    info={"DeadLetterReason": "reason"},
                )
            ),
            None,
        ),
        Disposition(
            *(True, 1, None, False),
            Rejected(Error("com.microsoft:dead-letter", "why", {"DeadLetterReason": "reason"})),
        ),
    ),
    (performatives.DetachFrame(1, True, None), Detach(1, True)),
    (performatives.EndFrame(None), End()),
    (performatives.CloseFrame(None), Close()),
    (performatives.SASLInit("ANONYMOUS", b"x", "host"), SaslInit("ANONYMOUS", b"x", "host")),
]


@pytest.mark.parametrize(("theirs", "ours"), THEIRS)
def test_we_read_performatives_of_the_client(theirs: Any, ours: Performative) -> None:
    _, data = _encode.encode_frame(theirs)
    assert data is not None
    assert decode_performative(bytes(data), 0) == (ours, len(data))
