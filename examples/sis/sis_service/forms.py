"""A JSON Schema as a form: its members, and what each of them asks for."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sis_service.answer_schema import Schema, definition
from sis_service.schema_check import pointer

MOST_MEMBERS = 200
_MOST_DEPTH = 8
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_WORD = re.compile(r"[\W_]+")
_EMPTY_TAIL = re.compile(r"(?: (?:name|value|text))\Z")


class FormTooLarge(Exception):
    """A schema with so many members that nobody fills it in."""


@dataclass(frozen=True, slots=True)
class Member:
    """`schema` has a single type where the schema of the answer says one: null is told apart."""

    path: tuple[str, ...]
    schema: Mapping[str, Any]
    allows_null: bool
    is_required: bool
    properties: tuple["Member", ...] | None
    """Of an object; None for a value."""

    @property
    def pointer(self) -> str:
        return pointer(self.path) if self.path else ""

    @property
    def names(self) -> tuple[str, ...]:
        """Words that a document may use for it, the fullest first."""
        own = [worded(self.path[-1])] if self.path else []
        title = self.schema.get("title")
        found = [*([worded(title)] if isinstance(title, str) else []), *own]
        shorter = [_EMPTY_TAIL.sub("", name) for name in found]
        return tuple(dict.fromkeys([*found, *shorter]))

    @property
    def question(self) -> str:
        parts = [" ".join(map(worded, self.path))]
        for keyword in ("title", "description"):
            text = self.schema.get(keyword)
            if isinstance(text, str) and worded(text) != parts[0]:
                parts.append(text)
        return ". ".join(filter(None, parts))


def form_of(schema: Schema) -> Member:
    """`FormTooLarge`."""
    left = [MOST_MEMBERS]
    return _member((), schema, schema, left, is_required=True)


def values_of(member: Member) -> Iterator[Member]:
    """All that are to be filled in."""
    if member.properties is None:
        yield member
    else:
        for one in member.properties:
            yield from values_of(one)


def worded(name: str) -> str:
    """`invoiceDate` and `invoice_date` are an invoice date."""
    return _NO_WORD.sub(" ", _CAPITAL.sub(" ", name)).strip().lower()


def _member(
    path: tuple[str, ...], schema: Schema, root: Schema, left: list[int], *, is_required: bool
) -> Member:
    left[0] -= 1
    if left[0] < 0 or len(path) > _MOST_DEPTH:
        raise FormTooLarge
    plain, allows_null = _without_null(_resolved(schema, root), root)
    properties = None
    if isinstance(plain.get("properties"), Mapping):
        required = plain.get("required", ())
        properties = tuple(
            _member((*path, name), one, root, left, is_required=name in required)
            for name, one in plain["properties"].items()
            if isinstance(one, Mapping)
        )
    return Member(path, plain, allows_null, is_required, properties)


def _resolved(schema: Schema, root: Schema) -> Schema:
    """What stands beside a reference, as a description, is kept."""
    for _ in range(_MOST_DEPTH):
        keyword, found = _referred(schema, root)
        if found is None:
            break
        schema = {**found, **{k: v for k, v in schema.items() if k != keyword}}
    return schema


def _referred(schema: Schema, root: Schema) -> tuple[str, Schema | None]:
    match schema:
        case {"$ref": str(reference)}:
            return "$ref", definition(root, reference)
        case {"allOf": [{} as only]}:
            return "allOf", only
    return "", None


def _without_null(schema: Schema, root: Schema) -> tuple[dict[str, Any], bool]:
    """Null is allowed by a list of types, by an alternative, or by an enum."""
    plain, kinds = dict(schema), schema.get("type")
    allows_null = kinds == "null"
    if isinstance(kinds, list):
        others = [kind for kind in kinds if kind != "null"]
        plain["type"], allows_null = (others or ["null"])[0], "null" in kinds
    for keyword in ("anyOf", "oneOf"):
        options = [_resolved(o, root) for o in plain.get(keyword, ()) if isinstance(o, Mapping)]
        others = [option for option in options if option.get("type") != "null"]
        if others:
            allows_null = allows_null or len(others) < len(options)
            plain = {**others[0], **{k: v for k, v in plain.items() if k != keyword}}
    allowed = plain.get("enum")
    if isinstance(allowed, list):
        allows_null = allows_null or None in allowed
    return plain, allows_null
