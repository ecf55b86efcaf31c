"""JSON Schemas of answers. They come with a request: nothing that they say is fetched, and nothing
that they say may hold up the service."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from lucius_sdk import NonRetryableError

from sis_service import schema_check

Schema = Mapping[str, Any]

SECONDS = 10.0
"""For a check that could take for ever."""
_DEFINITIONS = ("$defs", "definitions")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_WITHOUT_BOUND = ("pattern", "patternProperties", *_REFERENCES)


def check_schema(schema: Schema) -> None:
    """Refuse (ValueError) what is no JSON Schema, or is not whole in itself."""
    if not isinstance(schema.get("$schema", ""), str):
        raise ValueError("is no JSON Schema: /$schema breaks the rule type")  # noqa: TRY004
    try:
        kind = validator_for(schema, default=schema_check.DEFAULT)
        kind.check_schema(dict(schema))
        for referred in _referred(schema):
            kind.check_schema(dict(referred))
    except SchemaError as error:
        where = schema_check.pointer(error.absolute_path)
        raise ValueError(f"is no JSON Schema: {where} breaks the rule {error.validator}") from error
    except RecursionError as error:
        raise ValueError("is no JSON Schema that can be used: it is nested too deep") from error


def problems(schema: Schema, values: list[Any]) -> list[list[str]]:
    """What is wrong with each value, by pointer and rule; nothing of the values is in it.

    A regular expression can take for ever, and Python would do nothing else meanwhile; references
    to references can double the work again and again. A schema with either is applied in a process
    of its own, which is ended when it takes too long.
    """
    if any(keyword in _WITHOUT_BOUND for keyword, _ in _keywords(schema)):
        return _in_own_process(schema, values)
    return schema_check.problems(schema, values)


def definition(schema: Schema, reference: str) -> Schema | None:
    """What a `$ref` of this schema names."""
    root, _, path = reference.partition("/")
    group, _, name = path.partition("/")
    named = name.replace("~1", "/").replace("~0", "~")
    known = schema.get(group) if root == "#" and group in _DEFINITIONS else None
    found = known.get(named) if isinstance(known, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _referred(schema: Schema) -> Iterator[Schema]:
    """A draft may know one of the two places for definitions only, and not look into the other."""
    for keyword, value in _keywords(schema):
        if keyword in _REFERENCES and isinstance(value, str):
            found = definition(schema, value)
            if found is None:
                raise ValueError(
                    f"has a {keyword} that is no entry of its own $defs or definitions"
                )
            yield found


def _keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, Mapping):
        yield from schema.items()
    inner = schema.values() if isinstance(schema, Mapping) else schema
    for value in inner:
        if isinstance(value, (Mapping, list)):
            yield from _keywords(value)


def _in_own_process(schema: Schema, values: list[Any]) -> list[list[str]]:
    command = [sys.executable, "-P", str(Path(schema_check.__file__))]
    task = json.dumps([schema, values])
    try:
        done = subprocess.run(  # noqa: S603 - our own file
            command, input=task, capture_output=True, text=True, timeout=SECONDS, check=True
        )
    except subprocess.TimeoutExpired as error:
        raise NonRetryableError(
            "SIS_SCHEMA_TOO_SLOW",
            f"an answer took more than {SECONDS:.0f} seconds to check: simplify its schema",
        ) from error
    found: list[list[str]] = json.loads(done.stdout)
    return found
