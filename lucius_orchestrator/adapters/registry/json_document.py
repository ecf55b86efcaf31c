"""JSON, read as strictly as the YAML beside it: no member twice, no numbers that JSON lacks."""

import json
from typing import Any, NoReturn

from lucius_orchestrator.adapters.registry.document import Document
from lucius_orchestrator.adapters.registry.problems import FileProblem, RegistryError


def read_json(file: str, text: str) -> Document:
    """Parse one document; RegistryError when there is no telling what it says."""
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except _Refused as error:
        raise _unreadable(file, error.member, error.reason) from error
    except json.JSONDecodeError as error:
        raise _unreadable(file, "", f"is not JSON: {error}") from error
    except UnicodeEncodeError as error:
        raise _unreadable(file, "", "holds half of a character") from error
    except RecursionError as error:
        raise _unreadable(file, "", "is nested too deeply") from error
    return Document(file, value, lines=None)


class _Refused(Exception):
    def __init__(self, member: str, reason: str) -> None:
        super().__init__(reason)
        self.member = member
        self.reason = reason


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise _Refused(name, "stands there a second time")
        members[name] = value
    return members


def _constant(name: str) -> NoReturn:
    raise _Refused("", f"is not JSON: {name} is no number")


def _unreadable(file: str, member: str, reason: str) -> RegistryError:
    return RegistryError([FileProblem(file, None, member, reason)])
