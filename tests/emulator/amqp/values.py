"""Values of AMQP for properties, and what decoding makes of them."""

from hypothesis import strategies as st

from servicebus_emulator.amqp import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Kind,
    Long,
    Short,
    Symbol,
    Timestamp,
    Ubyte,
    Uint,
    Ulong,
    Ushort,
)


def signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def unsigned(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, 2**bits - 1)


TEXTS = st.text(max_size=300)
SYMBOLS = st.text(st.characters(max_codepoint=127), max_size=300).map(Symbol)
SIMPLE: st.SearchStrategy[object] = st.one_of(
    st.none(),
    st.booleans(),
    unsigned(8).map(Ubyte),
    unsigned(16).map(Ushort),
    unsigned(32).map(Uint),
    unsigned(64).map(Ulong),
    signed(8).map(Byte),
    signed(16).map(Short),
    signed(32).map(Int),
    signed(64).map(Long),
    signed(64),
    signed(64).map(Timestamp),
    st.floats(allow_nan=False),
    st.floats(allow_nan=False, width=32).map(Float),
    st.binary(min_size=4, max_size=4).map(Decimal32),
    st.binary(min_size=8, max_size=8).map(Decimal64),
    st.binary(min_size=16, max_size=16).map(Decimal128),
    st.characters(exclude_categories=["Cs"]).map(Char),
    st.uuids(),
    st.binary(max_size=300),
    TEXTS,
    SYMBOLS,
)


def _arrays(kind: Kind, values: st.SearchStrategy[object]) -> st.SearchStrategy[Array]:
    return st.builds(Array, st.just(kind), st.lists(values, max_size=40))


ARRAYS: st.SearchStrategy[object] = st.one_of(
    _arrays(Kind.BOOLEAN, st.booleans()),
    _arrays(Kind.UBYTE, unsigned(8)),
    _arrays(Kind.USHORT, unsigned(16)),
    _arrays(Kind.UINT, unsigned(32)),
    _arrays(Kind.ULONG, unsigned(64)),
    _arrays(Kind.INT, signed(32)),
    _arrays(Kind.LONG, signed(64)),
    _arrays(Kind.DOUBLE, st.floats(allow_nan=False)),
    _arrays(Kind.TIMESTAMP, signed(64)),
    _arrays(Kind.UUID, st.uuids()),
    _arrays(Kind.BINARY, st.binary(max_size=40)),
    _arrays(Kind.STRING, st.text(max_size=40)),
    _arrays(Kind.SYMBOL, SYMBOLS),
)
DESCRIPTORS = unsigned(64).map(Ulong) | SYMBOLS
VALUES: st.SearchStrategy[object] = st.recursive(
    SIMPLE | ARRAYS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.dictionaries(SIMPLE, inner, max_size=6),
        st.builds(Described, DESCRIPTORS, inner),
    ),
    max_leaves=20,
)


def decoded(value: object) -> object:
    """What comes back of a value: arrays are lists, and numbers have lost their widths."""
    if isinstance(value, Array):
        return list(value.values)
    if isinstance(value, Described):
        return Described(value.descriptor, decoded(value.value))
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if isinstance(value, dict):
        return {key: decoded(item) for key, item in value.items()}
    return value
