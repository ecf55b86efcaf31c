"""Kinds of values: how the text of a variable is read, and how a value is written again."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from lucius_settings.secret import Secret

SHORTEST_KEY = 32
_LONGEST_SHOWN = 40
_WHOLE = re.compile(r"[0-9]{1,15}")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?")


class Refused(Exception):
    """The text is not of its kind; the message says why, and what is allowed."""


class Kind(NamedTuple):
    """`rule` says what is allowed. `empty` is the value of a variable that is not set and has no
    default."""

    rule: str
    read: Callable[[str], Any]
    write: Callable[[Any], str] = str
    empty: Any = None

    def __str__(self) -> str:
        return self.rule


def must(rule: str, text: str) -> Refused:
    return Refused(f"must be {rule}, got {shown(text)}")


def shown(text: str) -> str:
    """The text, unless it might hold a credential that was put into the wrong variable."""
    if len(text) > _LONGEST_SHOWN or any(mark in text for mark in ("://", "@", "=")):
        return f"a text of {len(text)} characters"
    return repr(text)


def one_of(*choices: str) -> Kind:
    """Letter case does not matter; the value is the choice itself."""
    known = {choice.lower(): choice for choice in choices}
    rule = f"one of {', '.join(choices)}"

    def read(text: str) -> str:
        if text.lower() not in known:
            raise must(rule, text)
        return known[text.lower()]

    return Kind(rule, read)


def _read_switch(text: str) -> bool:
    if text.lower() not in ("on", "off"):
        raise must("on or off", text)
    return text.lower() == "on"


SWITCH = Kind("on or off", _read_switch, lambda value: "on" if value else "off")


def matching(pattern: str, rule: str) -> Kind:
    matches = re.compile(pattern).fullmatch

    def read(text: str) -> str:
        if not matches(text):
            raise must(rule, text)
        return text

    return Kind(rule, read)


TEXT = Kind("any text", str)
PATH = Kind("a path", Path)


def whole(low: int, high: int, unit: str = "") -> Kind:
    rule = f"a whole number {unit and f'of {unit} '}from {low} to {high}"

    def read(text: str) -> int:
        if not _WHOLE.fullmatch(text) or not low <= int(text) <= high:
            raise must(rule, text)
        return int(text)

    return Kind(rule, read)


_FRACTION = re.compile(r"[01](\.[0-9]{1,6})?")
_FRACTION_RULE = "a number above 0, at most 1"


def _read_fraction(text: str) -> float:
    if not _FRACTION.fullmatch(text) or not 0 < float(text) <= 1:
        raise must(_FRACTION_RULE, text)
    return float(text)


FRACTION = Kind(
    _FRACTION_RULE, _read_fraction, lambda value: f"{value:.6f}".rstrip("0").rstrip(".")
)


def seconds(low: timedelta, high: timedelta) -> Kind:
    rule = f"a number of seconds from {in_seconds(low)} to {in_seconds(high)}"

    def read(text: str) -> timedelta:
        if not _SECONDS.fullmatch(text) or not low <= timedelta(seconds=float(text)) <= high:
            raise must(rule, text)
        return timedelta(seconds=float(text))

    return Kind(rule, read, in_seconds)


def in_seconds(length: timedelta) -> str:
    text = f"{length.total_seconds():.3f}"
    return text.rstrip("0").rstrip(".")


def days(low: int, high: int) -> Kind:
    return _lengths(low, high, "days")


def hours(low: int, high: int) -> Kind:
    return _lengths(low, high, "hours")


def _lengths(low: int, high: int, unit: str) -> Kind:
    number, one = whole(low, high, unit), timedelta(**{unit: 1})

    def read(text: str) -> timedelta:
        return one * int(number.read(text))

    return Kind(number.rule, read, lambda length: str(length // one))


def entries(text: str, rule: str) -> list[str]:
    """The members of a comma list, none of them empty."""
    found = [entry.strip() for entry in text.split(",")]
    if not all(found):
        raise Refused(f"has an empty entry; must be {rule}")
    return found


def set_of(read_entry: Callable[[str], str], rule: str, empty: Any) -> Kind:
    def read(text: str) -> frozenset[str]:
        return frozenset(read_entry(entry) for entry in entries(text, rule))

    return Kind(rule, read, lambda value: ",".join(sorted(value)), empty)


def keys(high: int) -> Kind:
    """Keys to sign with: the first one signs, the others are still accepted."""
    rule = f"at most {high} keys, parted by commas, each of {SHORTEST_KEY} characters or more"

    def read(text: str) -> tuple[Secret, ...]:
        found = entries(text, rule)
        if len(found) > high:
            raise Refused(f"has {len(found)} keys; must be {rule}")
        for number, key in enumerate(found, start=1):
            if len(key) < SHORTEST_KEY:
                raise Refused(f"has a key, number {number}, that is too short; must be {rule}")
        return tuple(map(Secret, found))

    return Kind(rule, read, empty=())


def exactly(value: str, reason: str) -> Kind:
    def read(text: str) -> str:
        if text.lower() != value:
            raise Refused(f"must be {value}, got {shown(text)}: {reason}")
        return value

    return Kind(f"only {value}", read)
