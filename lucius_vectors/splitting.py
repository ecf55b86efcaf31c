"""Where the sentences of a text begin and end."""

import re
from collections.abc import Iterator

from lucius_vectors.lines import passages
from lucius_vectors.spans import Chunk

_CLOSING = r"[\"'\u201d\u2019\u00bb)\]\u300d\u300f\uff09]*+"
_STOP = re.compile(
    # A run of stops is looked at once, from its beginning: a megabyte of dots stays linear.
    rf"(?<![.!?\u2026\u061f\u06d4\u0964])[.!?\u2026\u061f\u06d4\u0964]++{_CLOSING}(?=\s)"
    rf"|(?P<wide>[\u3002\uff01\uff1f\uff61]++{_CLOSING})"
)
_NOT_SPACE = re.compile(r"\S")
_LAST_WORD = re.compile(r"[^\s(\[\"'\u201c\u201e\u00ab/]+\Z")
_WORD_LIMIT = 20
_LETTERS_WITH_DOTS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_NUMBER = re.compile(r"[\d+#(\u00a7]")
_REST_OF_DATE = re.compile(r"\s+[^\W\d_]{3,12}\.?\s+\d{4}\b")
_LEADER = "...."

_ABBREVIATION = re.compile(
    "approx|attn|bzgl|bzw|ca|cf|dept|dr|est|evtl|excl|ggf|hr|incl|inkl|messrs|"
    "mr|mrs|ms|prof|rev|sr|st|str|vgl|viz|vs|zzgl"
)
_BEFORE_NUMBER = re.compile(
    "abs|acct|act|art|bd|cap|ch|cl|eq|ext|figs?|inv|kap|max|min|nos?|nr|"
    "para|pg|pos|pp|ref|reg|sect?|seq|tab|tel|vol"
)


def sentences(text: str) -> Iterator[Chunk]:
    """Together they have every character of the text but white space between them.

    Lines of a paragraph are read on; a blank line, a form feed, a heading, an item of a list, a
    row of a table and a short line `label: value` end where their line ends.
    """
    index = 0
    for begin, end in passages(text):
        for start, stop in _spans(text, begin, end):
            yield Chunk(index, start, stop, text[start:stop])
            index += 1


def _spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for stop in _STOP.finditer(text, start, end):
        following = _NOT_SPACE.search(text, stop.end(), end)
        if following and _is_end(text, start, stop, following.start()):
            yield start, stop.end()
            start = following.start()
    yield start, end


def _is_end(text: str, start: int, stop: re.Match[str], following: int) -> bool:
    if stop["wide"]:
        return True
    if text[following].islower() or stop[0].startswith(_LEADER):
        return False
    return stop[0] != "." or not _is_dot_within(text, start, stop.start(), following)


def _is_dot_within(text: str, start: int, dot: int, following: int) -> bool:
    """Whether it stands alone, or belongs to the word before it: `No. 7`, `e.g.`, `J. Smith`,
    `3. Mai 2026`."""
    if dot == start or text[dot - 1].isspace():
        return True
    found = _LAST_WORD.search(text[max(start, dot - _WORD_LIMIT) : dot])
    if found is None:
        return False
    word = found[0].lower()
    if word.isdecimal():
        is_item = dot - len(word) == start
        return len(word) <= 3 and (is_item or _REST_OF_DATE.match(text, dot + 1) is not None)
    if _BEFORE_NUMBER.fullmatch(word):
        return _NUMBER.match(text, following) is not None
    return any(known.fullmatch(word) for known in (_ABBREVIATION, _LETTERS_WITH_DOTS))
