"""Which lines of a text belong together.

Text that comes from OCR has a line break where the paper had one. Most of them mean nothing; some
end a heading, a row of a table, or a label with its value. The rules look at two neighbouring
lines and at the width of the paragraph so far, so that a text of any length is read in one pass.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_LINE = re.compile(r"([^\n\r\v\f\x85\u2028\u2029]*+)(\r\n|[\n\r\v\f\x85\u2028\u2029]|\Z)")
_PARAGRAPH_ENDS = frozenset("\f\u2029")
_WORD = re.compile(r"\S+")
_ITEM = re.compile(r"[-*\u2022\u00b7\u2013\u25aa\u25e6\u2023]\s|\(?\d{1,3}[.)]\s|\(?[a-zA-Z]\)\s")
_LABEL = re.compile(r"[^\s:]++(?: [^\s:]++){0,4} ?:\s")
_COLUMNS = re.compile(r"\S(?:\t| {3})")
_LAST_NUMBER = re.compile(r"\d[\d.,]*\s?[%\u20ac$\u00a3A-Z)-]{0,4}\Z")

_LABEL_WIDTH = 40
_SHORT = 60
_NARROW = 40
"""A paragraph that is not wider was hardly wrapped."""
_RAGGED = 0.85
"""Of the widest line: letters differ in width, so full lines differ in their number of letters."""


class Line(NamedTuple):
    """Without the white space around it, and never empty."""

    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def is_item(self) -> bool:
        """Of a list."""
        return _ITEM.match(self.text) is not None

    @property
    def is_label(self) -> bool:
        """A name and its value, as `Invoice date: 3 March 2026`."""
        return _LABEL.match(self.text, 0, _LABEL_WIDTH) is not None

    @property
    def is_row(self) -> bool:
        """Of a table with wide gaps."""
        return _COLUMNS.search(self.text) is not None

    @property
    def ends_in_number(self) -> bool:
        return _LAST_NUMBER.search(self.text[-20:]) is not None


def passages(text: str) -> Iterator[tuple[int, int]]:
    """Where the runs of lines lie that belong together, without white space around them."""
    start = width = 0
    before: Line | None = None
    for line in _lines(text):
        width = max(width, len(line.text)) if line else 0
        joined = before is not None and line is not None and _joined(before, line, width)
        if before and not joined:
            yield start, before.end
        if line and not joined:
            start = line.start
        before = line


def _lines(text: str) -> Iterator[Line | None]:
    """None where a paragraph ends; it ends at the end of the text too."""
    for match in _LINE.finditer(text):
        content = match[1].lstrip()
        if content:
            yield Line(match.end(1) - len(content), content.rstrip())
        if not content or match[2] in _PARAGRAPH_ENDS:
            yield None


def _joined(first: Line, second: Line, width: int) -> bool:
    if second.is_item or second.is_label or _in_table(first, second):
        return False
    if first.text[-1] == ":" or second.text[0].islower():
        return True
    if first.is_label and len(first.text) <= _SHORT:
        return False
    return width >= _NARROW and _was_full(first, second, width)


def _in_table(first: Line, second: Line) -> bool:
    both_end_in_number = first.ends_in_number and second.ends_in_number
    return first.is_row or second.is_row or both_end_in_number


def _was_full(first: Line, second: Line, width: int) -> bool:
    """A line that had room for the next word was ended on purpose."""
    word = _WORD.match(second.text)
    return len(first.text) + 1 + (len(word[0]) if word else 0) > width * _RAGGED
