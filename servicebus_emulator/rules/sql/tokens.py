"""The words of an expression."""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from servicebus_emulator.rules.errors import RuleError

KEYWORDS = frozenset(
    {"AND", "OR", "NOT", "IN", "LIKE", "ESCAPE", "IS", "NULL", "EXISTS", "TRUE", "FALSE"}
)


class TokenKind(Enum):
    KEYWORD = auto()
    NAME = auto()
    DELIMITED_NAME = auto()
    PARAMETER = auto()
    TEXT = auto()
    INTEGER = auto()
    FLOAT = auto()
    SYMBOL = auto()
    END = auto()


class Token(NamedTuple):
    """`text` is what is meant: keywords in capitals, names and texts without their quotes."""

    kind: TokenKind
    text: str
    position: int


_PATTERN = re.compile(
    r"""\s*(?:
      (?P<TEXT>'(?:[^']|'')*')
    | (?P<BRACKETS>\[(?:[^\]]|\]\])+\])
    | (?P<QUOTES>"(?:[^"]|"")+")
    | (?P<PARAMETER>@\w+)
    | (?P<FLOAT>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    | (?P<INTEGER>[0-9]+)
    | (?P<WORD>[^\W\d_]\w*)
    | (?P<SYMBOL><>|!=|<=|>=|[=<>(),.+\-*/%])
    )""",
    re.VERBOSE,
)
_BLANKS = re.compile(r"\s*")
_UNCLOSED = {"'": "text is", "[": "name is", '"': "name is"}


def tokens_of(expression: str) -> Iterator[Token]:
    """Ends with one token of the kind END. `RuleError` where no word can be read."""
    position = 0
    while match := _PATTERN.match(expression, position):
        yield _token(str(match.lastgroup), match[match.lastgroup or 0], match)
        position = match.end()
    blanks = _BLANKS.match(expression, position)
    end = blanks.end() if blanks else position
    if end < len(expression):
        raise RuleError(_unreadable(expression[end], end))
    yield Token(TokenKind.END, "the end", end)


def _token(group: str, text: str, match: re.Match[str]) -> Token:
    position = match.start(group)
    if group == "WORD":
        if text.upper() in KEYWORDS:
            return Token(TokenKind.KEYWORD, text.upper(), position)
        return Token(TokenKind.NAME, text, position)
    if group in ("BRACKETS", "QUOTES"):
        return Token(TokenKind.DELIMITED_NAME, _unquoted(text), position)
    if group == "TEXT":
        return Token(TokenKind.TEXT, _unquoted(text), position)
    return Token(TokenKind[group], text, position)


def _unquoted(text: str) -> str:
    closing = text[-1]
    return text[1:-1].replace(closing * 2, closing)


def _unreadable(character: str, position: int) -> str:
    if character in _UNCLOSED:
        return f"the {_UNCLOSED[character]} empty or not closed, from position {position} on"
    return f"{character!r} at position {position} is not part of the language"
