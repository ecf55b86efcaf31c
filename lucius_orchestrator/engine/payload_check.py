"""Does a step's payload keep to its JSON Schema?

A general validator takes longer over a small payload than all the rest of planning. So the common
part of JSON Schema is compiled into closures that say a fast yes, and nothing else: whatever they
do not accept, or do not understand, goes to the validator, which alone says what is wrong.
"""

import re
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator
from referencing import Registry

from lucius_contract.canonical import pointer_to
from lucius_contract.errors import Problem
from lucius_orchestrator.ports.registry import PayloadCheck

Accepts = Callable[[Any], bool]

TOO_DEEP = "is nested deeper than its schema can be followed"


def payload_check(schema: Mapping[str, Any]) -> PayloadCheck:
    """Compile a schema; what comes out tells all problems, with pointers into the payload."""
    accepts = quick_check(schema) or _never
    # An empty registry: a $ref to another document is never fetched.
    validator = Draft202012Validator(schema, registry=Registry())

    def check(payload: Mapping[str, Any]) -> tuple[Problem, ...]:
        if accepts(payload):
            return ()
        try:
            return tuple(
                Problem(pointer_to(tuple(error.absolute_path)), error.message)
                for error in validator.iter_errors(payload)
            )
        except RecursionError:
            return (Problem("", TOO_DEEP),)

    return check


class _NotQuick(Exception):
    """The schema says something that only the validator understands."""


def quick_check(schema: Any) -> Accepts | None:
    """A function that says True only of what the schema allows; None when there can be none."""
    try:
        return _compile(schema)
    except _NotQuick:
        return None


def _compile(schema: Any) -> Accepts:
    if isinstance(schema, bool):
        return _always if schema else _never
    kind = schema.get("type", "string" if "enum" in schema else _ANY)
    rule = _KINDS.get(kind) if isinstance(kind, str) else None
    if rule is None or not schema.keys() <= rule.keywords | _SAYING_NOTHING:
        raise _NotQuick
    return rule.compile(schema)


def _string(schema: Mapping[str, Any]) -> Accepts:
    low, high = schema.get("minLength", 0), schema.get("maxLength", inf)
    allowed = _texts(schema.get("enum"))
    search = re.compile(schema.get("pattern", "")).search

    def accepts(value: Any) -> bool:
        return (
            type(value) is str
            and low <= len(value) <= high
            and (allowed is None or value in allowed)
            and search(value) is not None
        )

    return accepts


def _texts(enum: Any) -> frozenset[str] | None:
    if enum is None:
        return None
    if not all(isinstance(item, str) for item in enum):
        raise _NotQuick
    return frozenset(enum)


def _integer(schema: Mapping[str, Any]) -> Accepts:
    """A float without a fraction is an integer too; the validator sees to that."""
    low, high = schema.get("minimum", -inf), schema.get("maximum", inf)
    return lambda value: type(value) is int and low <= value <= high


def _number(schema: Mapping[str, Any]) -> Accepts:
    low, high = schema.get("minimum", -inf), schema.get("maximum", inf)
    return lambda value: (type(value) is int or type(value) is float) and low <= value <= high


def _boolean(_schema: Mapping[str, Any]) -> Accepts:
    return lambda value: type(value) is bool


def _array(schema: Mapping[str, Any]) -> Accepts:
    low, high = schema.get("minItems", 0), schema.get("maxItems", inf)
    item = _compile(schema.get("items", True))
    return lambda value: type(value) is list and low <= len(value) <= high and all(map(item, value))


def _object(schema: Mapping[str, Any]) -> Accepts:
    members = {name: _compile(member) for name, member in schema.get("properties", {}).items()}
    other = _compile(schema.get("additionalProperties", True))
    required = schema.get("required", ())

    def accepts(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for name in required:
            if name not in value:
                return False
        return all(members.get(name, other)(member) for name, member in value.items())

    return accepts


def _anything(_schema: Mapping[str, Any]) -> Accepts:
    return _always


def _always(_value: Any) -> bool:
    return True


def _never(_value: Any) -> bool:
    return False


class _Rule(NamedTuple):
    """How schemas of one type are compiled, provided that they use these keywords alone."""

    keywords: frozenset[str]
    compile: Callable[[Mapping[str, Any]], Accepts]


_ANY = ""  # no type is named so
_SAYING_NOTHING = frozenset(
    {"type", "title", "description", "default", "examples", "$comment", "$schema"}
)
_KINDS = {
    _ANY: _Rule(frozenset(), _anything),
    "string": _Rule(frozenset({"minLength", "maxLength", "pattern", "enum"}), _string),
    "integer": _Rule(frozenset({"minimum", "maximum"}), _integer),
    "number": _Rule(frozenset({"minimum", "maximum"}), _number),
    "boolean": _Rule(frozenset(), _boolean),
    "array": _Rule(frozenset({"items", "minItems", "maxItems"}), _array),
    "object": _Rule(frozenset({"properties", "required", "additionalProperties"}), _object),
}
