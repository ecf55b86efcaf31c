import math
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicebus_emulator.amqp import (
    AmqpError,
    Array,
    Char,
    Decimal128,
    Described,
    Float,
    Int,
    Kind,
    Long,
    Symbol,
    Timestamp,
    Ubyte,
    Uint,
    Ulong,
    decode,
    encode,
    skip,
)
from tests.emulator.amqp.values import VALUES, decoded


@given(VALUES)
def test_what_is_encoded_is_decoded_again(value: object) -> None:
    data = encode(value)
    assert decode(data) == (decoded(value), len(data))


@given(VALUES, st.binary(max_size=20), st.binary(max_size=20))
def test_a_value_is_found_between_others(value: object, before: bytes, after: bytes) -> None:
    data = before + encode(value) + after
    end = len(data) - len(after)
    assert decode(data, len(before)) == (decoded(value), end)
    assert decode(memoryview(data), len(before)) == (decoded(value), end)
    assert skip(data, len(before)) == end


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, "40"),
        (True, "41"),
        (False, "42"),
        (Uint(0), "43"),
        (Uint(255), "52ff"),
        (Uint(256), "7000000100"),
        (Ulong(0), "44"),
        (Ulong(0x73), "5373"),
        (Ulong(2**64 - 1), "80ffffffffffffffff"),
        (Ubyte(7), "5007"),
        (Int(-1), "54ff"),
        (Int(128), "7100000080"),
        (Long(-128), "5580"),
        (5, "5505"),
        (2**40, "810000010000000000"),
        (2**63, "808000000000000000"),
        (Timestamp(1), "830000000000000001"),
        (1.0, "823ff0000000000000"),
        (Float(1.0), "723f800000"),
        (Char("A"), "7300000041"),
        ("ä", "a102c3a4"),
        (Symbol("ab"), "a3026162"),
        (b"\x00", "a00100"),
        ([], "45"),
        ([None], "c0020140"),
        ({}, "c10100"),
        ({Symbol("a"): 1}, "c10602a301615501"),
        (Described(Ulong(0x24), []), "00532445"),
        (UUID(int=1), "98" + "00" * 15 + "01"),
        (Array(Kind.SYMBOL, ["a"]), "e00701b30000000161"),
        (Array(Kind.LONG, []), "e0020081"),
    ],
)
def test_values_have_their_shortest_form(value: object, data: str) -> None:
    assert encode(value).hex() == data


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (Uint(3), int),
        (Long(2**40), int),
        (Timestamp(3), Timestamp),
        (Symbol("a"), Symbol),
        ("a", str),
        (Char("a"), Char),
        (Decimal128(bytes(16)), Decimal128),
        (Float(0.5), float),
        (True, bool),
    ],
)
def test_decoded_values_have_plain_types(value: object, kind: type) -> None:
    assert type(decode(encode(value))[0]) is kind


def test_numbers_that_are_none_survive() -> None:
    assert math.isnan(decode(encode(math.nan))[0])


@pytest.mark.parametrize("length", [254, 255, 256, 65536])
def test_long_texts_lists_and_maps_take_the_wide_form(length: int) -> None:
    for value in ("x" * length, [True] * length, dict.fromkeys(range(length))):
        assert decode(encode(value))[0] == value


@pytest.mark.parametrize(
    "value", [Uint(-1), Uint(2**32), Ubyte(256), Int(2**31), 2**64, Char("ab"), Decimal128(b"")]
)
def test_what_does_not_fit_its_type_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"fit|one character|bytes"):
        encode(value)


def test_what_amqp_has_no_type_for_is_refused() -> None:
    with pytest.raises(TypeError, match="no type for set"):
        encode({1, 2})


def test_subclasses_are_encoded_as_what_they_are() -> None:
    class Name(str):
        __slots__ = ()

    assert encode(Name("a")) == encode("a")


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("5600", False),
        ("5601", True),
        ("b10000000161", "a"),
        ("b3000000026162", "ab"),
        ("d00000000400000000", []),
        ("d100000006000000024142", {True: False}),
        ("c00100", []),
        ("e00100", []),
        ("e00402500102", [1, 2]),
        ("e00702005324500102", [Described(0x24, 1), Described(0x24, 2)]),
    ],
)
def test_other_forms_are_read_too(data: str, value: object) -> None:
    assert decode(bytes.fromhex(data)) == (value, len(data) // 2)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("", id="nothing"),
        pytest.param("a105", id="a text that is cut off"),
        pytest.param("a005", id="a binary that is cut off"),
        pytest.param("b00000000561", id="a long binary that is cut off"),
        pytest.param("a101ff", id="a text that is no utf-8"),
        pytest.param("a301ff", id="a symbol that is no ascii"),
        pytest.param("5602", id="a boolean of two"),
        pytest.param("730000d800", id="a surrogate"),
        pytest.param("73ffffffff", id="no character"),
        pytest.param("ff", id="an unknown constructor"),
        pytest.param("c00200", id="a list shorter than its size"),
        pytest.param("c003014040", id="a list longer than its elements"),
        pytest.param("c002015505", id="an element behind its list"),
        pytest.param("c00000", id="a list without room for its count"),
        pytest.param("c0024040", id="more elements than bytes"),
        pytest.param("c1020140", id="a key without value"),
        pytest.param("c103024540", id="a list as a key"),
        pytest.param("c106020053404540", id="a described key"),
        pytest.param("d0ffffffffffffffff", id="a huge list"),
        pytest.param("f0000000050fffffff40", id="a huge array of nothing"),
        pytest.param("e002ff40", id="an array of nothing"),
        pytest.param("0000534045", id="a described descriptor"),
        pytest.param("00c0010040", id="a list as descriptor"),
        pytest.param("004540", id="an empty list as descriptor"),
    ],
)
def test_damage_is_a_decode_error(data: str) -> None:
    with pytest.raises(AmqpError) as refused:
        decode(bytes.fromhex(data))
    assert refused.value.condition == "amqp:decode-error"


def test_an_offset_behind_the_data_is_a_decode_error() -> None:
    with pytest.raises(AmqpError):
        decode(b"\x40", 1)
    with pytest.raises(AmqpError):
        skip(b"\x40", 1)
