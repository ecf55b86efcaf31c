"""Members of a configuration file: how each kind is read, and what is said when it cannot be.

A reader takes a member and answers its value, or refuses the member and answers None.
"""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from lucius_contract.routing import MODE_SPELLINGS, Mode
from lucius_orchestrator.adapters.registry.document import Document
from lucius_orchestrator.adapters.registry.problems import Place

Choice = TypeVar("Choice", bound=Enum)

LONGEST = timedelta(days=366)
_UNITS = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}
_DURATION = re.compile(rf"([0-9]{{1,9}})({'|'.join(_UNITS)})")
_SHOWN = 60


class Member(NamedTuple):
    """A value in a file, and where it stands."""

    document: Document
    place: Place
    value: Any

    def at(self, key: str | int) -> "Member":
        return Member(self.document, (*self.place, key), self.value[key])

    def refuse(self, reason: str) -> None:
        self.document.refuse(self.place, reason)

    def must(self, rule: str) -> None:
        self.refuse(f"must be {rule}, got {_shown(self.value)}")


Read = Callable[[Member], Any]


class Field(NamedTuple):
    read: Read
    required: bool = False


Fields = Mapping[str, Field]


def read_fields(member: Member, fields: Fields) -> dict[str, Any]:
    """The members of a mapping that could be read; all others are refused."""
    if not isinstance(member.value, dict):
        member.must("a mapping")
        return {}
    for name in member.value.keys() - fields.keys():
        member.at(name).refuse(f"unknown member; {nearest(name, fields)}")
    for name, field in fields.items():
        if field.required and name not in member.value:
            member.document.refuse((*member.place, name), "is missing")
    found = {name: fields[name].read(member.at(name)) for name in fields if name in member.value}
    return {name: value for name, value in found.items() if value is not None}


def nearest(name: str, known: Mapping[str, Any]) -> str:
    """What somebody who wrote `name` may have meant."""
    close = get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"


def text(pattern: str, rule: str) -> Read:
    matches = re.compile(pattern).fullmatch

    def read(member: Member) -> str | None:
        if isinstance(member.value, str) and matches(member.value):
            return member.value
        member.must(rule)
        return None

    return read


def whole(low: int, high: int | None = None) -> Read:
    rule = f"a whole number from {low}" + (f" to {high}" if high is not None else "")

    def read(member: Member) -> int | None:
        value = member.value
        if type(value) is int and low <= value and (high is None or value <= high):
            return value
        member.must(rule)
        return None

    return read


def duration(member: Member) -> timedelta | None:
    found = delay(member)
    if found == timedelta(0):
        member.must("longer than nothing")
        return None
    return found


def delay(member: Member) -> timedelta | None:
    """A duration that may be zero."""
    match = _DURATION.fullmatch(member.value) if isinstance(member.value, str) else None
    if match is None:
        member.must("a duration like 30s, 15m or 2h")
        return None
    if int(match[1]) > LONGEST / _UNITS[match[2]]:
        member.must(f"at most {spelled(LONGEST)}")
        return None
    return int(match[1]) * _UNITS[match[2]]


def spelled(length: timedelta) -> str:
    """A duration as a file would spell it."""
    for unit, size in _UNITS.items():
        if length % size == timedelta(0):
            return f"{length // size}{unit}"
    return str(length)


def mode(member: Member) -> Mode | None:
    found = MODE_SPELLINGS.get(member.value) if isinstance(member.value, str) else None
    if found is None:
        member.must(f"one of {', '.join(MODE_SPELLINGS)}")
    return found


def one_of(choices: type[Choice]) -> Read:
    known = {choice.value: choice for choice in choices}

    def read(member: Member) -> Choice | None:
        found = known.get(member.value) if isinstance(member.value, str) else None
        if found is None:
            member.must(f"one of {', '.join(known)}")
        return found

    return read


def list_of(read: Read, low: int, high: int) -> Read:
    def read_list(member: Member) -> tuple[Any, ...] | None:
        if not isinstance(member.value, list) or not low <= len(member.value) <= high:
            member.must(f"a list of {low} to {high}")
            return None
        return tuple(read(member.at(index)) for index in range(len(member.value)))

    return read_list


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    shown = repr(value) if isinstance(value, str) else str(value).lower()
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
