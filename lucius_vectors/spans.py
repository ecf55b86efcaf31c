"""A piece of a text, and where it lies."""

from typing import NamedTuple


class Chunk(NamedTuple):
    """`text` is `source[start:end]`; the offsets count characters, that is code points."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    start: int
    end: int
    text: str
