"""A text in chunks of bounded length that overlap, cut between sentences where that is possible."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from lucius_vectors.spans import Chunk
from lucius_vectors.splitting import sentences

CHARACTERS_PER_TOKEN = 32
"""A chunk has at most as many times more characters than tokens. It bounds what is counted in one
go, and what a text of gaps and unknown words makes of an overlap; real texts have four or five."""

_WORD = re.compile(r"\S+")


def chunks(
    text: str, size: int, overlap: int, count_tokens: Callable[[str], int]
) -> Iterator[Chunk]:
    """Chunks of at most `size` tokens, in order, that have every character but white space.

    A chunk begins with the last sentences of the one before, or its last words if not even one
    sentence fits: never more than `overlap` tokens, and only what leaves room for what comes next.
    A sentence longer than `size` is cut between words, and a word longer than `size` within.

    Two neighbours must not count more together than each for itself. A single character that
    counts more than `size` is left whole.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"an overlap of {overlap} tokens does not fit into chunks of {size}")
    cut = _Cut(text, size, overlap, count_tokens)
    index, held = 0, list[_Part]()
    tokens = 0
    for part in cut.parts():
        if held and not cut.takes(held[0], tokens, part):
            yield cut.chunk(index, held)
            index, held = index + 1, cut.carried(held, part)
            tokens = sum(each.tokens for each in held)
        held.append(part)
        tokens += part.tokens
    if held:
        yield cut.chunk(index, held)


class _Part(NamedTuple):
    """A sentence, a word of one that is too long, or a piece of a word that is too long."""

    start: int
    end: int
    tokens: int
    """At least one, so that what no model can see adds up too."""
    is_glued: bool = False
    """To the piece before it: nobody knows what the two would count together."""


@dataclass(frozen=True, slots=True)
class _Cut:
    text: str
    size: int
    overlap: int
    count_tokens: Callable[[str], int]

    @property
    def _longest(self) -> int:
        return self.size * CHARACTERS_PER_TOKEN

    def chunk(self, index: int, parts: list[_Part]) -> Chunk:
        start, end = parts[0].start, parts[-1].end
        return Chunk(index, start, end, self.text[start:end])

    def takes(self, first: _Part, tokens: int, part: _Part) -> bool:
        """Whether the chunk that begins with `first` has room for one more."""
        is_short = part.end - first.start <= self._longest
        return is_short and tokens + part.tokens <= self.size and not part.is_glued

    def parts(self) -> Iterator[_Part]:
        for sentence in sentences(self.text):
            part = self._whole(sentence.start, sentence.end)
            if part is not None:
                yield part
            else:
                yield from self._words(sentence.start, sentence.end)

    def _words(self, start: int, end: int) -> Iterator[_Part]:
        for word in _WORD.finditer(self.text, start, end):
            part = self._whole(*word.span())
            if part is not None:
                yield part
            else:
                yield from self._pieces(*word.span())

    def _pieces(self, start: int, end: int) -> Iterator[_Part]:
        """Of as many characters as a chunk has tokens, or fewer: most tokens have one or more."""
        begin = start
        while begin < end:
            width = min(self.size, end - begin)
            while (tokens := self._count(begin, begin + width)) > self.size and width > 1:
                width //= 2
            yield _Part(begin, begin + width, tokens, is_glued=begin > start)
            begin += width

    def _whole(self, start: int, end: int) -> _Part | None:
        """None if it is too long."""
        if end - start > self._longest:
            return None
        tokens = self._count(start, end)
        return _Part(start, end, tokens) if tokens <= self.size else None

    def _count(self, start: int, end: int) -> int:
        return max(self.count_tokens(self.text[start:end]), 1)

    def carried(self, held: list[_Part], part: _Part) -> list[_Part]:
        """What the chunk of `part` begins with."""
        if part.is_glued:
            return []
        limit = min(self.overlap, self.size - part.tokens)
        since = part.end - self._longest
        kept = _tail(reversed(held), limit, since)
        if not kept and limit > 0:
            kept = _tail(self._words_backwards(held[-1]), limit, since)
        return kept[::-1]

    def _words_backwards(self, part: _Part) -> Iterator[_Part]:
        for word in reversed(list(_WORD.finditer(self.text, part.start, part.end))):
            yield _Part(*word.span(), self._count(*word.span()))


def _tail(parts: Iterable[_Part], limit: int, since: int) -> list[_Part]:
    """As many as have no more than `limit` tokens and begin at `since` or later."""
    kept: list[_Part] = []
    for part in parts:
        if part.tokens > limit or part.start < since:
            break
        limit -= part.tokens
        kept.append(part)
    return kept
