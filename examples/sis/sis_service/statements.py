"""A text in statements: sentences, and lines that stand for themselves."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from lucius_vectors import sentences

_LABEL = re.compile(r"[^\W\d_][^\s:]*(?: [^\s:]+){0,4} ?:\s+(?=\S)")
_INNER_LABEL = re.compile(r"(?<=\s)[A-Z][^\W\d_]*(?: [a-z]+){0,3}:\s+(?=\S)")
_LABEL_WIDTH = 40
_PIECE = re.compile(r"\S(?:.{0,998}\S(?=\s|\Z)|.{0,999})", re.DOTALL)
"""No statement is longer: a text without a single stop would cost the square of its length."""
_ITEM = re.compile(r"\(?(?:\d{1,3}|[a-zA-Z])[.)]\s+|[-*\u2022\u2013]\s+")
_HEADING_WORDS = 5
_SENTENCE_WORDS = 4
_STOPS = tuple(".!?:;,")


class Statement(NamedTuple):
    """It lies at `start` to `end` in the document. `said` is its text on one line."""

    start: int
    end: int
    text: str
    said: str
    label: str
    """What stands before a colon, as in `Customer: Harbour Light Bakery Ltd.`; mostly empty."""
    is_heading: bool = False


def statements(texts: Iterable[tuple[int, str]]) -> Iterator[Statement]:
    """Texts with the places where they begin."""
    for offset, text in texts:
        found = [
            one
            for sentence in sentences(text)
            for piece in _PIECE.finditer(sentence.text)
            for one in _parts(offset + sentence.start + piece.start(), piece[0])
        ]
        yield from _with_headings(found)


def _parts(start: int, text: str) -> Iterator[Statement]:
    """A line with several labels is as many statements."""
    cuts = [0, *(label.start() for label in _INNER_LABEL.finditer(text)), len(text)]
    for begin, end in pairwise(cuts):
        part = text[begin:end].rstrip()
        if part:
            yield _statement(start + begin, part)


def _statement(start: int, text: str) -> Statement:
    said = " ".join(text.split())
    label = _LABEL.match(said, 0, _LABEL_WIDTH)
    name = label[0].rstrip(": ") if label else ""
    return Statement(start, start + len(text), text, said, name)


def _with_headings(found: list[Statement]) -> Iterator[Statement]:
    for one, following in pairwise(found):
        yield one._replace(is_heading=_is_heading(one, following.said))
    yield from found[-1:]


def _is_heading(one: Statement, following: str) -> bool:
    """A few words without a number or a stop, and a sentence after them."""
    words = _ITEM.sub("", one.said, count=1).split()
    if one.label or not 0 < len(words) <= _HEADING_WORDS or one.said.endswith(_STOPS):
        return False
    has_number = any(letter.isdigit() for word in words for letter in word)
    is_sentence = following.endswith(_STOPS) and len(following.split()) >= _SENTENCE_WORDS
    return is_sentence and not has_number
