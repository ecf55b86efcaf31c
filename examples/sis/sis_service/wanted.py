"""What kind of thing a question asks for, as far as its words tell."""

import re
from collections.abc import Callable
from typing import NamedTuple

from sis_service.amounts import amounts
from sis_service.dates import dates

_SPAN = re.compile(
    r"(?i)\b(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|twelve)"
    r"(?: \w+)? (?:minute|hour|day|week|month|quarter|year)s?\b|\b\d{4}\b"
)
_NAME = re.compile(r"(?<=\S )[^\W\d_a-z][^\W\d_]*[a-z]")
_TELEPHONE = re.compile(r"\+?\d[\d ()/-]{6,}\d")


class _Kind(NamedTuple):
    asked: re.Pattern[str]
    is_in: Callable[[str], bool]


def _has_time(text: str) -> bool:
    return any(dates(text)) or _SPAN.search(text) is not None


def _has_amount(text: str) -> bool:
    return any(amounts(text)) or any(amounts(text, percent=True))


def _has_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)


def _has_name(text: str) -> bool:
    return _NAME.search(text) is not None


def _has_telephone(text: str) -> bool:
    return _TELEPHONE.search(text) is not None


def _kind(asked: str, is_in: Callable[[str], bool]) -> _Kind:
    return _Kind(re.compile(rf"(?i)\b(?:{asked})\b"), is_in)


_KINDS = (
    _kind(r"e-?mail", lambda text: "@" in text),
    _kind(r"telephone|phone", _has_telephone),
    _kind(r"when|date|deadline", _has_time),
    _kind(r"how much|how many|amount|total|price|sum|cost|rate", _has_amount),
    _kind(r"number|iban", _has_digit),
    _kind(r"who|whom|whose|name", _has_name),
)


def has_what_is_asked(question: str, text: str) -> bool:
    """Whether the text has a thing of that kind; True if the question does not tell."""
    for kind in _KINDS:
        if kind.asked.search(question):
            return kind.is_in(text)
    return True
