"""Canonical JSON (RFC 8785) and the two digests made with it.

Two requests with the same canonical form are one request; two RESULTs with the same are one RESULT.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pydantic_core
import rfc8785

from lucius_contract.errors import ContractError, ErrorCode, Problem

IDEMPOTENT_FIELDS = (
    "tenant_id",
    "request_type",
    "input_ref",
    "output_ref",
    "payload",
    "schema_version",
)
"""What makes two requests the same; everything else about a duplicate is the first one's."""

_ARROW = "→"


def read_json(raw: bytes | str) -> Any:
    """Parse strict JSON: no NaN or Infinity, UTF-8 only, bounded depth."""
    try:
        return pydantic_core.from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise ContractError(
            ErrorCode.ENVELOPE_INVALID, "not valid JSON", [Problem("", str(error))]
        ) from error


def canonical_json(value: Any) -> bytes:
    """RFC 8785. What it cannot write (NaN, 2**53 and more, lone surrogates) is refused."""
    try:
        return rfc8785.dumps(value)
    except ValueError as error:
        raise ContractError(
            ErrorCode.ENVELOPE_INVALID,
            "has no canonical form",
            list(_uncanonical(value, "")) or [Problem("", str(error))],
        ) from error


def omit_nulls(value: Any) -> Any:
    """Drop null members at every depth; a null inside an array has a place and stays."""
    if isinstance(value, Mapping):
        return {key: omit_nulls(member) for key, member in value.items() if member is not None}
    if isinstance(value, list | tuple):
        return [omit_nulls(item) for item in value]
    return value


def digest(value: Any) -> str:
    return hashlib.sha256(_canonical_without_nulls(value)).hexdigest()


def resolve_arrows(request_type: str) -> str:
    """`OCR→EMBEDDING` is a spelling of `OCR_EMBEDDING`."""
    return request_type.replace(_ARROW, "_")


def canonical_request(envelope: Mapping[str, Any]) -> bytes:
    """The canonical form that is hashed. Aliases of `request_type` are resolved before."""
    return _canonical_without_nulls({name: envelope.get(name) for name in IDEMPOTENT_FIELDS})


def idempotency_hash(envelope: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_request(envelope)).hexdigest()


def pointer_to(path: tuple[str | int, ...]) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def walk(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Every value inside a JSON value, with its pointer."""
    yield pointer, value
    if isinstance(value, Mapping):
        for key, member in value.items():
            yield from walk(member, pointer + pointer_to((key,)))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from walk(item, f"{pointer}/{index}")


# Most documents hold only text, small integers and names in ASCII. For these the standard encoder
# writes the canonical form byte by byte, twenty times as fast.
_plain_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode
_SAFE_INTEGER = 2**53 - 1


class _NotPlainError(Exception):
    pass


def _canonical_without_nulls(value: Any) -> bytes:
    try:
        return _plain_json(_plain_without_nulls(value)).encode()
    except (_NotPlainError, UnicodeEncodeError):
        return canonical_json(omit_nulls(value))


def _plain_without_nulls(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is dict:
        trimmed = {}
        for key, member in value.items():
            if member is not None:
                if type(key) is not str or not key.isascii():
                    raise _NotPlainError
                trimmed[key] = member if type(member) is str else _plain_without_nulls(member)
        return trimmed
    if kind is list:
        return [_plain_without_nulls(item) for item in value]
    if kind is int and -_SAFE_INTEGER <= value <= _SAFE_INTEGER:
        return value
    raise _NotPlainError


def _uncanonical(value: Any, pointer: str) -> Iterator[Problem]:
    for where, found in walk(value, pointer):
        if isinstance(found, Mapping | list | tuple):
            continue
        try:
            rfc8785.dumps(found)
        except ValueError as error:
            yield Problem(where, f"{error}; send it as a string")
