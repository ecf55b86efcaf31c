"""A range of an object as pieces of its parts."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from lucius_artifacts.errors import NotFound, Unavailable
from lucius_artifacts.ports.objects import CHUNK


class Piece(NamedTuple):
    """`size` bytes of a part, from `start`."""

    number: int
    start: int
    size: int


def pieces(sizes: Mapping[int, int], start: int, end: int | None) -> Iterator[Piece]:
    """Those that make the bytes from `start` to before `end`; none is larger than CHUNK."""
    before = 0
    for number, size in sizes.items():
        first = max(0, start - before)
        last = size if end is None else min(size, end - before)
        for begin in range(first, last, CHUNK):
            yield Piece(number, begin, min(CHUNK, last - begin))
        before += size


def read_piece(folder: Path, piece: Piece) -> bytes:
    """Opened each time: who stops reading leaves nothing open."""
    try:
        with open(folder / str(piece.number), "rb", buffering=0) as file:
            file.seek(piece.start)
            content = file.read(piece.size)
    except FileNotFoundError as error:
        raise NotFound(f"object {folder.name}") from error
    if len(content) != piece.size:
        raise Unavailable(f"part {piece.number} of object {folder.name} has lost bytes")
    return content
