"""The vector document: chunks of one text, and a vector for each.

A small one is one JSON file. A large one has its vectors in a second file, in NumPy's format, and
says so in its member `vectors`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lucius_vectors.spans import Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORMAT = "lucius.vectors/1"
DTYPE = "float32"

_HEAD = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"format"\s*:\s*"lucius\.vectors/')


@dataclass(frozen=True, slots=True)
class Header:
    """How the vectors came about."""

    model: str
    dimension: int
    chunk_size: int
    overlap: int
    characters: int
    """Of the whole text."""


@dataclass(frozen=True, slots=True)
class VectorDocument:
    """`vectors` has one row per chunk."""

    model: str
    dimension: int
    chunk_size: int
    overlap: int
    characters: int
    chunks: list[Chunk]
    vectors: NDArray[np.float32]


def is_vector_document(head: bytes) -> bool:
    """By its first bytes (64 are enough): a vector document of some version, not plain text."""
    return _HEAD.match(head) is not None
