from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicebus_emulator.amqp import (
    Accepted,
    AmqpError,
    Attach,
    Begin,
    Close,
    Coordinator,
    Declared,
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
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    Source,
    State,
    Symbol,
    Target,
    TransactionalState,
    Transfer,
    Uint,
    Ulong,
    decode,
    decode_performative,
    encode,
    encode_composite,
)
from tests.emulator.amqp.values import SYMBOLS, TEXTS, unsigned

FLAGS = st.booleans()
UINTS = unsigned(32)
MAPS = st.dictionaries(SYMBOLS, st.none() | TEXTS | UINTS, max_size=3)
MANY = st.none() | st.lists(SYMBOLS, max_size=3)
ERRORS = st.builds(Error, SYMBOLS, st.none() | TEXTS, st.none() | MAPS)
OUTCOMES = st.one_of(
    st.just(Accepted()),
    st.just(Released()),
    st.builds(Received, UINTS, unsigned(64)),
    st.builds(Rejected, st.none() | ERRORS),
    st.builds(Modified, FLAGS, FLAGS, st.none() | MAPS),
)
STATES = st.one_of(
    OUTCOMES,
    st.builds(Declared, st.binary()),
    st.builds(TransactionalState, st.binary(), st.none() | OUTCOMES),
)
MAYBE_UINT = st.none() | UINTS
MAYBE_TEXT = st.none() | TEXTS
NODE = (MAYBE_TEXT, MAYBE_UINT, st.none() | SYMBOLS, MAYBE_UINT, FLAGS, st.none() | MAPS)
SOURCES = st.builds(
    Source, *NODE, st.none() | SYMBOLS, st.none() | MAPS, st.none() | STATES, MANY, MANY
)
TARGETS = st.builds(Target, *NODE, MANY) | st.builds(Coordinator, MANY)
UBYTES, MAYBE_FLAG = st.none() | unsigned(8), st.none() | FLAGS
PERFORMATIVES: st.SearchStrategy[Performative] = st.one_of(
    st.builds(
        *(Open, TEXTS, MAYBE_TEXT, MAYBE_UINT, st.none() | unsigned(16), MAYBE_UINT),
        *(MANY, MANY, MANY, MANY, st.none() | MAPS),
    ),
    st.builds(
        Begin, st.none() | unsigned(16), UINTS, UINTS, UINTS, MAYBE_UINT, MANY, MANY, st.none()
    ),
    st.builds(
        *(Attach, TEXTS, UINTS, FLAGS, UBYTES, UBYTES, st.none() | SOURCES, st.none() | TARGETS),
        *(st.none() | MAPS, FLAGS, MAYBE_UINT, st.none() | unsigned(64)),
        *(MANY, MANY, st.none() | MAPS),
    ),
    st.builds(
        *(Flow, MAYBE_UINT, UINTS, UINTS, UINTS, MAYBE_UINT, MAYBE_UINT, MAYBE_UINT, MAYBE_UINT),
        *(FLAGS, FLAGS, st.none() | MAPS),
    ),
    st.builds(
        *(Transfer, UINTS, MAYBE_UINT, st.none() | st.binary(max_size=32), MAYBE_UINT),
        *(MAYBE_FLAG, FLAGS, UBYTES, st.none() | STATES, FLAGS, FLAGS, FLAGS),
    ),
    st.builds(Disposition, FLAGS, UINTS, MAYBE_UINT, FLAGS, st.none() | STATES, FLAGS),
    st.builds(Detach, UINTS, FLAGS, st.none() | ERRORS),
    st.builds(End, st.none() | ERRORS),
    st.builds(Close, st.none() | ERRORS),
    st.builds(SaslMechanisms, st.lists(SYMBOLS)),
    st.builds(SaslInit, SYMBOLS, st.none() | st.binary(), MAYBE_TEXT),
    st.builds(SaslChallenge, st.binary()),
    st.builds(SaslResponse, st.binary()),
    st.builds(SaslOutcome, unsigned(8), st.none() | st.binary()),
)
NAMES: Mapping[int, str] = {0x10: "open", 0x14: "transfer", 0x15: "disposition", 0x17: "end"}


def described(code: int, *fields: object) -> bytes:
    return encode(Described(Ulong(code), list(fields)))


@given(PERFORMATIVES)
def test_what_is_encoded_is_decoded_again(performative: Performative) -> None:
    data = encode_composite(performative)
    found, end = decode_performative(b"before" + data + b"after", 6)
    assert found == performative
    assert type(found) is type(performative)
    assert end == 6 + len(data)


@given(PERFORMATIVES)
def test_descriptors_may_have_their_long_form(performative: Performative) -> None:
    data = encode_composite(performative)
    longer = b"\x00\x80" + bytes(7) + data[2:]
    assert decode_performative(longer, 0) == (performative, len(longer))


@pytest.mark.parametrize("code", NAMES)
def test_descriptors_may_be_names(code: int) -> None:
    fields = ["x"] if code == 0x10 else [0] if code == 0x14 else [True, 1] if code == 0x15 else []
    named = encode(Described(Symbol(f"amqp:{NAMES[code]}:list"), fields))
    assert decode_performative(named, 0)[0] == decode_performative(described(code, *fields), 0)[0]


def test_absent_fields_have_their_defaults() -> None:
    assert decode_performative(described(0x14, 5), 0)[0] == Transfer(5)
    assert decode_performative(described(0x14, 5, None, None, None, None, None), 0)[0] == Transfer(
        5
    )
    assert decode_performative(described(0x18), 0)[0] == Close()


@pytest.mark.parametrize(
    ("last", "settled", "batchable"),
    [(None, None, None), (5, None, None), (None, True, None), (5, True, None), (5, True, True)],
)
@pytest.mark.parametrize("outcome", [Accepted(), Released(), Modified(True, True), None])
def test_fields_of_a_disposition_may_be_null(
    last: int | None, settled: bool | None, batchable: bool | None, outcome: State | None
) -> None:
    before = b"".join(encode(field) for field in (True, Uint(7), last, settled))
    state = encode(None) if outcome is None else encode_composite(outcome)
    fields = before + state + encode(batchable)
    data = b"\x00\x53\x15\xc0" + bytes((len(fields) + 1, 6)) + fields
    expected = Disposition(True, 7, last, bool(settled), outcome, bool(batchable))
    assert decode_performative(data, 0)[0] == expected


def test_an_error_has_all_its_fields_on_the_wire() -> None:
    value, _ = decode(encode_composite(Error("amqp:not-found")))
    assert value == Described(0x1D, ["amqp:not-found", None, None])


def test_a_rejection_without_error_is_an_empty_list() -> None:
    assert encode_composite(Rejected()) == b"\x00\x53\x25\x45"


def test_a_terminus_has_all_its_fields_on_the_wire() -> None:
    assert len(decode(encode_composite(Source("a")))[0].value) == 11
    assert len(decode(encode_composite(Target("a")))[0].value) == 7


def test_one_symbol_stands_for_many() -> None:
    found, _ = decode_performative(described(0x40, Symbol("ANONYMOUS")), 0)
    assert found == SaslMechanisms(["ANONYMOUS"])


def test_outcomes_are_told_apart_and_are_true() -> None:
    outcomes: list[object] = [Accepted(), Released()]
    assert outcomes[0] != outcomes[1]
    assert all(outcomes)
    assert Accepted() == Accepted()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(encode([1]), id="not described"),
        pytest.param(described(0x99), id="an unknown descriptor"),
        pytest.param(described(0x24), id="an outcome alone"),
        pytest.param(encode(Described(Symbol("amqp:nonsense:list"), [])), id="an unknown name"),
        pytest.param(encode(Described(Ulong(0x18), {})), id="a map"),
        pytest.param(encode(Described(Ulong(0x18), "text")), id="a text"),
        pytest.param(described(0x18, None, None), id="too many fields"),
        pytest.param(described(0x14), id="a transfer without handle"),
        pytest.param(described(0x15, True), id="a disposition without delivery"),
        pytest.param(described(0x11, 1, 2, 3), id="a begin without window"),
        pytest.param(described(0x11, "1", 2, 3, 4), id="a channel that is text"),
        pytest.param(described(0x11, 65536, 2, 3, 4), id="a channel that is too large"),
        pytest.param(described(0x10, b"container"), id="a name that is binary"),
        pytest.param(described(0x14, -1, 0, b"", 0, False, False), id="a negative handle"),
        pytest.param(described(0x14, 0, 2**32, b"", 0, False, False), id="a large delivery id"),
        pytest.param(described(0x14, 0, 0, "tag", 0, False, False), id="a tag that is text"),
        pytest.param(described(0x14, 0, 0, b"", True, False, False), id="a format that is true"),
        pytest.param(described(0x14, 0, 0, b"", 0, 0, False), id="settled that is a number"),
        pytest.param(
            described(0x14, 0, 0, b"", 0, False, False, None, None, None, None, 0),
            id="batchable that is a number",
        ),
        pytest.param(described(0x14, 0, 0, b"", 0, False, False, None, "x"), id="a text as state"),
        pytest.param(described(0x15, 1, 1), id="a role that is a number"),
        pytest.param(described(0x15, True, 1, None, False, []), id="a list as state"),
        pytest.param(
            described(0x15, True, 1, None, False, Described(Ulong(0x28), [])),
            id="a source as state",
        ),
        pytest.param(
            described(0x15, True, 1, None, False, Described(Ulong(0x24), [1])),
            id="accepted with a field",
        ),
        pytest.param(
            described(0x12, "n", 0, True, 0, 0, Described(Ulong(0x29), [])), id="a target as source"
        ),
        pytest.param(described(0x10, "c", *[None] * 8, {1: 2}), id="properties by number"),
        pytest.param(described(0x40, [1]), id="numbers as mechanisms"),
        pytest.param(described(0x17, Described(Ulong(0x1D), [])), id="an error without condition"),
    ],
)
def test_what_is_no_performative_is_a_decode_error(data: bytes) -> None:
    with pytest.raises(AmqpError) as refused:
        decode_performative(data, 0)
    assert refused.value.condition == "amqp:decode-error"


@pytest.mark.parametrize("performative", [Transfer(-1), Flow(handle=2**32), Begin(70000)])
def test_a_field_that_does_not_fit_is_refused(performative: Performative) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        encode_composite(performative)
