"""Performatives, outcomes and termini to bytes and back, by one table of their fields."""

from collections.abc import Callable, Mapping
from struct import error
from typing import Any, NamedTuple

from servicebus_emulator.amqp import encoding
from servicebus_emulator.amqp.decoding import decode
from servicebus_emulator.amqp.fields import (
    BINARY,
    BOOLEAN,
    FIELDS,
    MAP,
    STRING,
    SYMBOL,
    SYMBOLS,
    UBYTE,
    UINT,
    ULONG,
    USHORT,
    FieldType,
)
from servicebus_emulator.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Coordinator,
    Declared,
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
    Target,
    TransactionalState,
    Transfer,
)
from servicebus_emulator.amqp.types import Described, decode_error

_LARGEST_UINT = 0xFFFFFFFF
_NULL = b"\x40"
_SHORT_DESCRIPTOR = b"\x00\x53"
_ACCEPTED = Accepted()
_DESCRIBED_ACCEPTED = Described(0x24, [])


class _Form(NamedTuple):
    """`mandatory` are the indices of what must be there."""

    kind: Callable[..., Any]
    code: int
    name: str
    fields: tuple[FieldType, ...] = ()
    mandatory: frozenset[int] = frozenset()
    keeps_all: bool = False  # also what is null at the end, for peers that count on all fields
    read: Callable[[list[Any]], Any] | None = None  # a faster way than by the table


def encode_composite(value: object) -> bytes:
    """`ValueError` for a field that its type cannot hold."""
    form = _BY_KIND[type(value)]
    values: tuple[object, ...] = value if isinstance(value, tuple) else ()
    try:
        fields = [
            _NULL if item is None else field.write(item)
            for field, item in zip(form.fields, values, strict=True)
        ]
    except error as reason:
        raise ValueError(f"a field of {value!r} does not fit: {reason}") from reason
    while fields and fields[-1] == _NULL and not form.keeps_all:
        fields.pop()
    return encoding.described(form.code, encoding.list_of(fields))


def decode_performative(data: bytes, offset: int) -> tuple[Performative, int]:
    """The performative at `offset`, and where it ends."""
    performative: Performative
    if data[offset : offset + 2] == _SHORT_DESCRIPTOR and offset + 2 < len(data):
        fields, end = decode(data, offset + 3)
        performative = _read(_PERFORMATIVES, data[offset + 2], fields)
    else:
        value, end = decode(data, offset)
        performative = _read_one_of(_PERFORMATIVES, value)
    return performative, end


def _read_one_of(forms: Mapping[object, _Form], value: object) -> Any:
    if type(value) is not Described:
        raise decode_error(f"a described list is expected, not a {type(value).__name__}")
    return _read(forms, *value)


def _read(forms: Mapping[object, _Form], descriptor: object, fields: object) -> Any:
    form = forms.get(descriptor)
    if form is None:
        raise decode_error(f"there is nothing here with the descriptor {descriptor!r:.60}")
    if type(fields) is not list or len(fields) > len(form.fields):
        raise decode_error(f"{form.name} is no list of at most {len(form.fields)} fields")
    return form.read(fields) if form.read else _read_fields(form, fields)


def _read_fields(form: _Form, fields: list[Any]) -> Any:
    defaults = getattr(form.kind, "_field_defaults", {})
    names = getattr(form.kind, "_fields", ())
    values = []
    for index, (field, name) in enumerate(zip(form.fields, names, strict=True)):
        value = fields[index] if index < len(fields) else None
        if value is not None:
            values.append(field.read(value))
        elif index in form.mandatory:
            raise decode_error(f"{form.name} has no {name}")
        else:
            values.append(defaults[name])
    return form.kind(*values)


def _read_transfer(fields: list[Any]) -> Transfer:
    """By hand for what all peers send, because every message comes this way."""
    if len(fields) < 11:
        fields = fields + [None] * (11 - len(fields))
    handle, delivery_id, tag, message_format, settled, more, mode, state, *flags = fields
    resume, aborted, batchable = flags
    if (
        type(handle) is type(delivery_id) is type(message_format) is int
        and type(tag) is bytes
        and type(settled) is type(more) is bool
        and 0 <= handle <= _LARGEST_UINT
        and 0 <= delivery_id <= _LARGEST_UINT
        and 0 <= message_format <= _LARGEST_UINT
        and mode is state is resume is aborted is None
        and (batchable is None or batchable is False)
    ):
        return Transfer(handle, delivery_id, tag, message_format, settled, more)
    transfer: Transfer = _read_fields(_TRANSFER, fields)
    return transfer


def _read_disposition(fields: list[Any]) -> Disposition:
    """By hand for what all peers send, because every message is settled this way."""
    if len(fields) < 6:
        fields = fields + [None] * (6 - len(fields))
    role, first, last, settled, state, batchable = fields
    if (
        last is batchable is None
        and type(role) is type(settled) is bool
        and type(first) is int
        and 0 <= first <= _LARGEST_UINT
        and type(state) is Described
    ):
        outcome = _ACCEPTED if state == _DESCRIBED_ACCEPTED else _read(_STATES, *state)
        return Disposition(role, first, None, settled, outcome)
    disposition: Disposition = _read_fields(_DISPOSITION, fields)
    return disposition


def _forms(*forms: _Form) -> Mapping[object, _Form]:
    """Found by the number of their descriptor, and by its name."""
    return {key: form for form in forms for key in (form.code, f"amqp:{form.name}:list")}


def _all(*indices: int) -> frozenset[int]:
    return frozenset(indices)


_ERROR = _Form(Error, 0x1D, "error", (SYMBOL, STRING, FIELDS), _all(0), keeps_all=True)
_error = FieldType(encode_composite, lambda value: _read_one_of(_ERRORS, value))
_outcome = FieldType(encode_composite, lambda value: _read_one_of(_STATES, value))
_source = FieldType(encode_composite, lambda value: _read_one_of(_SOURCES, value))
_target = FieldType(encode_composite, lambda value: _read_one_of(_TARGETS, value))

_ERRORS: Mapping[object, _Form] = _forms(_ERROR)
_STATES: Mapping[object, _Form] = _forms(
    _Form(Received, 0x23, "received", (UINT, ULONG), _all(0, 1)),
    _Form(Accepted, 0x24, "accepted", read=lambda _: _ACCEPTED),
    _Form(Rejected, 0x25, "rejected", (_error,)),
    _Form(Released, 0x26, "released", read=lambda _: Released()),
    _Form(Modified, 0x27, "modified", (BOOLEAN, BOOLEAN, FIELDS)),
    _Form(Declared, 0x33, "declared", (BINARY,), _all(0)),
    _Form(TransactionalState, 0x34, "transactional-state", (BINARY, _outcome), _all(0)),
)
_NODE = (STRING, UINT, SYMBOL, UINT, BOOLEAN, FIELDS)
_SOURCES: Mapping[object, _Form] = _forms(
    _Form(
        Source,
        0x28,
        "source",
        (*_NODE, SYMBOL, FIELDS, _outcome, SYMBOLS, SYMBOLS),
        keeps_all=True,
    )
)
_TARGETS: Mapping[object, _Form] = _forms(
    _Form(Target, 0x29, "target", (*_NODE, SYMBOLS), keeps_all=True),
    _Form(Coordinator, 0x30, "coordinator", (SYMBOLS,)),
)
_TRANSFER = _Form(
    Transfer,
    0x14,
    "transfer",
    (UINT, UINT, BINARY, UINT, BOOLEAN, BOOLEAN, UBYTE, _outcome, BOOLEAN, BOOLEAN, BOOLEAN),
    _all(0),
    read=_read_transfer,
)
_DISPOSITION = _Form(
    Disposition,
    0x15,
    "disposition",
    (BOOLEAN, UINT, UINT, BOOLEAN, _outcome, BOOLEAN),
    _all(0, 1),
    read=_read_disposition,
)
_PERFORMATIVES = _forms(
    _Form(
        Open,
        0x10,
        "open",
        (STRING, STRING, UINT, USHORT, UINT, SYMBOLS, SYMBOLS, SYMBOLS, SYMBOLS, FIELDS),
        _all(0),
    ),
    _Form(
        Begin,
        0x11,
        "begin",
        (USHORT, UINT, UINT, UINT, UINT, SYMBOLS, SYMBOLS, FIELDS),
        _all(1, 2, 3),
    ),
    _Form(
        Attach,
        0x12,
        "attach",
        (
            *(STRING, UINT, BOOLEAN, UBYTE, UBYTE, _source, _target, MAP, BOOLEAN),
            *(UINT, ULONG, SYMBOLS, SYMBOLS, FIELDS),
        ),
        _all(0, 1, 2),
    ),
    _Form(
        Flow,
        0x13,
        "flow",
        (UINT, UINT, UINT, UINT, UINT, UINT, UINT, UINT, BOOLEAN, BOOLEAN, FIELDS),
        _all(1, 2, 3),
    ),
    _TRANSFER,
    _DISPOSITION,
    _Form(Detach, 0x16, "detach", (UINT, BOOLEAN, _error), _all(0)),
    _Form(End, 0x17, "end", (_error,)),
    _Form(Close, 0x18, "close", (_error,)),
    _Form(SaslMechanisms, 0x40, "sasl-mechanisms", (SYMBOLS,), _all(0)),
    _Form(SaslInit, 0x41, "sasl-init", (SYMBOL, BINARY, STRING), _all(0)),
    _Form(SaslChallenge, 0x42, "sasl-challenge", (BINARY,), _all(0)),
    _Form(SaslResponse, 0x43, "sasl-response", (BINARY,), _all(0)),
    _Form(SaslOutcome, 0x44, "sasl-outcome", (UBYTE, BINARY), _all(0)),
)
_BY_KIND: Mapping[object, _Form] = {
    form.kind: form
    for forms in (_ERRORS, _STATES, _SOURCES, _TARGETS, _PERFORMATIVES)
    for form in forms.values()
}
