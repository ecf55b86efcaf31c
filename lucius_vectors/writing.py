"""Writes a vector document batch by batch: no more than a batch is in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from lucius_vectors.document import DTYPE, FORMAT, Header
from lucius_vectors.errors import installed
from lucius_vectors.spans import Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DIGITS = 7
"""As many as float32 has."""


class MatrixFile(NamedTuple):
    """Where the vectors of a large document are; uri and digest where they are known."""

    file: str
    rows: int
    uri: str | None = None
    sha256: str | None = None


class DocumentWriter:
    """`vectors.json`. Call `add` for each batch, then `finish`."""

    def __init__(self, out: BinaryIO, header: Header) -> None:
        self._out = out
        self._dimension = header.dimension
        self._is_first = True
        members = {"format": FORMAT, **asdict(header)}
        self._out.write(_json(members)[:-1] + b', "chunks": [')

    def add(self, chunks: Sequence[Chunk], vectors: NDArray[np.float32] | None = None) -> None:
        """Without vectors if they go into a file of their own."""
        for row, chunk in enumerate(chunks):
            members: dict[str, Any] = chunk._asdict()
            if vectors is not None:
                members["vector"] = [float(f"{x:.{_DIGITS}g}") for x in vectors[row].tolist()]
            self._out.write((b"\n" if self._is_first else b",\n") + _json(members))
            self._is_first = False

    def finish(self, matrix: MatrixFile | None = None) -> None:
        self._out.write(b"\n]")
        if matrix is not None:
            described = {"dtype": DTYPE, "shape": [matrix.rows, self._dimension]}
            known = {k: v for k, v in matrix._asdict().items() if k != "rows" and v is not None}
            self._out.write(b', "vectors": ' + _json(known | described))
        self._out.write(b"}\n")


class MatrixWriter:
    """`vectors.npy`, whose number of rows has to be known before the first."""

    def __init__(self, out: BinaryIO, rows: int, dimension: int) -> None:
        with installed():
            from numpy.lib import format as npy
        self._out = out
        npy.write_array_header_1_0(
            out, {"descr": "<f4", "fortran_order": False, "shape": (rows, dimension)}
        )

    def add(self, vectors: NDArray[np.float32]) -> None:
        self._out.write(vectors.astype("<f4", copy=False).tobytes())


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
