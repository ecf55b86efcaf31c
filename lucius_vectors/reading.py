"""Reads a vector document, and refuses what is none."""

from __future__ import annotations

import json
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

from pydantic import BaseModel, Field, ValidationError

from lucius_vectors.document import FORMAT, VectorDocument
from lucius_vectors.errors import VectorsInvalid, installed
from lucius_vectors.spans import Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_HEADER = 1024
_PIECE = 1024 * 1024
_Count = Annotated[int, Field(ge=0, strict=True)]
_Number = Annotated[float, Field(ge=-3e38, le=3e38, allow_inf_nan=False, strict=True)]
"""Fits into a float32."""


class _Chunk(BaseModel):
    index: _Count
    start: _Count
    end: _Count
    text: str
    vector: list[_Number] | None = None


class _Matrix(BaseModel):
    file: str
    dtype: Literal["float32"]
    shape: tuple[_Count, _Count]
    sha256: str | None = None


class _Document(BaseModel):
    format: Literal["lucius.vectors/1"]
    model: str
    dimension: Annotated[int, Field(ge=1, strict=True)]
    chunk_size: _Count
    overlap: _Count
    characters: _Count
    chunks: list[_Chunk]
    vectors: _Matrix | None = None


def read_vectors(document: bytes | BinaryIO, binary: BinaryIO | None = None) -> VectorDocument:
    """`binary` is the second file of a large document. `VectorsInvalid` says what is wrong."""
    content = document if isinstance(document, bytes) else document.read()
    read = _parse(content)
    chunks = [Chunk(c.index, c.start, c.end, c.text) for c in read.chunks]
    _check_chunks(chunks, read.characters)
    return VectorDocument(
        model=read.model,
        dimension=read.dimension,
        chunk_size=read.chunk_size,
        overlap=read.overlap,
        characters=read.characters,
        chunks=chunks,
        vectors=_inline(read) if read.vectors is None else _matrix(read, read.vectors, binary),
    )


def _parse(content: bytes) -> _Document:
    try:
        value: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise VectorsInvalid("the vector document is no JSON, or not whole") from error
    found = value.get("format") if isinstance(value, dict) else None
    if found != FORMAT:
        told = repr(found[:40]) if isinstance(found, str) else "something else"
        raise VectorsInvalid(f"the format must be {FORMAT!r}; it is {told}")
    try:
        return _Document.model_validate(value)
    except ValidationError as error:
        raise VectorsInvalid(f"the vector document is wrong: {_told(error)}") from error


def _told(error: ValidationError) -> str:
    """The first place and its rule, never the value: it is a document's."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"/{'/'.join(map(str, first['loc']))} {first['msg']}"


def _check_chunks(chunks: list[Chunk], characters: int) -> None:
    for number, chunk in enumerate(chunks):
        if chunk.index != number:
            raise VectorsInvalid(f"chunk {number} has the index {chunk.index}")
        if len(chunk.text) != chunk.end - chunk.start or chunk.end > characters:
            raise VectorsInvalid(f"chunk {number} does not lie where its offsets say")


def _inline(read: _Document) -> NDArray[np.float32]:
    with installed():
        import numpy as np
    for chunk in read.chunks:
        if chunk.vector is None:
            raise VectorsInvalid(f"chunk {chunk.index} has no vector")
        if len(chunk.vector) != read.dimension:
            raise VectorsInvalid(
                f"the vector of chunk {chunk.index} has {len(chunk.vector)} numbers"
                f" instead of {read.dimension}"
            )
    vectors = np.array([chunk.vector for chunk in read.chunks], np.float32)
    return vectors.reshape(len(read.chunks), read.dimension)


def _matrix(read: _Document, matrix: _Matrix, binary: BinaryIO | None) -> NDArray[np.float32]:
    with installed():
        import numpy as np
    expected = (len(read.chunks), read.dimension)
    if matrix.shape != expected:
        raise VectorsInvalid(f"vectors has the shape {list(matrix.shape)}, not {list(expected)}")
    if binary is None:
        raise VectorsInvalid(f"the vectors are in a second file, {matrix.file[:60]!r}: give it too")
    content = _read(binary, 4 * expected[0] * expected[1] + _MOST_HEADER)
    if matrix.sha256 is not None and sha256(content).hexdigest() != matrix.sha256:
        raise VectorsInvalid(f"{matrix.file[:60]!r} is not the file that the document names")
    vectors = np.frombuffer(_rows(content, expected), "<f4").reshape(expected)
    if not np.isfinite(vectors).all():
        raise VectorsInvalid(f"{matrix.file[:60]!r} has a number that is not finite")
    return vectors


def _read(binary: BinaryIO, limit: int) -> bytes:
    """In pieces, as a wrong document may ask for more than there is memory."""
    content = bytearray()
    while len(content) < limit and (piece := binary.read(min(_PIECE, limit - len(content)))):
        content += piece
    return bytes(content)


def _rows(content: bytes, expected: tuple[int, int]) -> bytes:
    """The header is read before the numbers: a wrong one must not cost memory."""
    from numpy.lib import format as npy

    stream = BytesIO(content)
    try:
        version = npy.read_magic(stream)
        shape, is_fortran, dtype = npy.read_array_header_1_0(stream)
    except ValueError as error:
        raise VectorsInvalid("the second file is not in NumPy's format") from error
    if version != (1, 0) or dtype.str != "<f4" or is_fortran or shape != expected:
        raise VectorsInvalid(f"the second file must have float32 in the shape {list(expected)}")
    rows = stream.read()
    if len(rows) != 4 * expected[0] * expected[1]:
        raise VectorsInvalid("the second file is cut off, or has more than its header says")
    return rows
