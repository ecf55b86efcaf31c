"""Values against a JSON Schema; also a program that reads `[schema, values]` and writes problems.

It is run by its path, apart from the package: it knows no other module of the service.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

DEFAULT = Draft202012Validator
_MOST = 10


def problems(schema: Mapping[str, Any], values: list[Any]) -> list[list[str]]:
    """By pointer and rule, the first few for each value; nothing of the values is in them."""
    kind = validator_for(schema, default=DEFAULT)
    # An empty registry: a $ref to another document is never fetched.
    validator = kind(schema, registry=Registry(), format_checker=kind.FORMAT_CHECKER)
    return [_problems(validator, value) for value in values]


def pointer(path: Iterable[str | int]) -> str:
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return "".join(f"/{step}" for step in steps) or "(document)"


def _problems(validator: Validator, value: Any) -> list[str]:
    found: list[str] = []
    try:
        for error in validator.iter_errors(value):
            found.append(f"{pointer(error.absolute_path)} breaks the rule {error.validator}")
            if len(found) == _MOST:
                break
    except RecursionError:
        found.append("(document) is nested deeper than its schema can be followed")
    except Unresolvable:
        found.append("(document) has a schema with a reference that leads nowhere")
    return found


if __name__ == "__main__":
    json.dump(problems(*json.load(sys.stdin)), sys.stdout)
