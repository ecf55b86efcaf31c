"""Which JSON Schemas a protocol may use for payloads: valid ones that stand alone."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

from lucius_orchestrator.adapters.registry.members import Member
from lucius_orchestrator.adapters.registry.problems import Place
from lucius_orchestrator.engine.payload_check import TOO_DEEP, payload_check

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DATA = frozenset({"const", "default", "enum", "examples"})
_NAMING = frozenset({("properties",), ("patternProperties",), ("$defs",), ("dependentSchemas",)})
_LONGEST_REASON = 200


def payload_schema(member: Member) -> dict[str, Any] | None:
    """Refuse all that is wrong with a schema, each at its own line."""
    before = len(member.document.problems)
    if not isinstance(member.value, dict):
        member.must("a JSON Schema")
        return None
    schema: dict[str, Any] = member.value
    for place, reason in (*_broken(schema), *_reaching_out(schema, schema)):
        member.document.refuse((*member.place, *place), reason)
    if len(member.document.problems) > before:
        return None
    if any(problem.message == TOO_DEEP for problem in payload_check(schema)({})):
        member.refuse("refers to itself without end")
    return schema


def _broken(schema: dict[str, Any]) -> Iterator[tuple[Place, str]]:
    """Where the schema breaks the rules for schemas."""
    rules = Draft202012Validator(
        Draft202012Validator.META_SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER
    )
    for error in rules.iter_errors(schema):
        deepest: ValidationError = best_match([error]) or error
        reason = f"is not valid JSON Schema: {deepest.message}"
        yield tuple(deepest.absolute_path), reason[:_LONGEST_REASON]


def _reaching_out(
    part: Any, root: dict[str, Any], place: Place = ()
) -> Iterator[tuple[Place, str]]:
    """Where the schema needs something outside of itself, or something that it does not hold."""
    if isinstance(part, list):
        for index, item in enumerate(part):
            yield from _reaching_out(item, root, (*place, index))
    if not isinstance(part, dict):
        return
    names_members = place[-1:] in _NAMING
    for name, member in part.items():
        if isinstance(member, str):
            reason = _reason_against(name, member, root, place)
            if reason:
                yield (*place, name), reason
        elif names_members or name not in _DATA:
            yield from _reaching_out(member, root, (*place, name))


def _reason_against(name: str, text: str, root: dict[str, Any], place: Place) -> str | None:
    if name == "$schema" and text.removesuffix("#") != DIALECT:
        return f"must be {DIALECT} or left out"
    if name == "$id" and place:
        return "can only stand at the top of a schema"
    if name in ("$ref", "$dynamicRef"):
        if text != "#" and not text.startswith("#/"):
            return f"must point into this schema, as #/$defs/name does; {text} is never fetched"
        if not _leads_somewhere(text, root):
            return f"{text} leads nowhere in this schema"
    return None


def _leads_somewhere(pointer: str, root: Any) -> bool:
    found = root
    for token in unquote(pointer).split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, dict) and key in found:
            found = found[key]
        else:
            return False
    return isinstance(found, dict | bool)
