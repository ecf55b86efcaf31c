"""The vector document: what is written is what is read, and what is damaged is refused."""

import io
import json
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from lucius_vectors import (
    Chunk,
    DocumentWriter,
    Header,
    MatrixFile,
    MatrixWriter,
    VectorsInvalid,
    is_vector_document,
    read_vectors,
)

HEADER = Header(model="a-model", dimension=3, chunk_size=5, overlap=2, characters=20)
CHUNKS = [Chunk(0, 0, 4, "one "), Chunk(1, 2, 6, "\u00e9\U0001f44d\n'"), Chunk(2, 9, 20, "x" * 11)]
VECTORS = np.array([[1, 0, 0], [0.6, -0.8, 0], [1 / 3, 2 / 3, 2 / 3]], np.float32)

Vectors = NDArray[np.float32]


def inline(chunks: list[Chunk] = CHUNKS, vectors: Vectors = VECTORS) -> bytes:
    out = io.BytesIO()
    document = DocumentWriter(out, HEADER)
    for row, chunk in enumerate(chunks):
        document.add([chunk], vectors[row : row + 1])
    document.finish()
    return out.getvalue()


def apart(vectors: Vectors = VECTORS) -> tuple[bytes, bytes]:
    out, matrix = io.BytesIO(), io.BytesIO()
    document = DocumentWriter(out, HEADER)
    document.add(CHUNKS)
    writer = MatrixWriter(matrix, len(vectors), 3)
    for row in range(len(vectors)):
        writer.add(vectors[row : row + 1])
    digest = sha256(matrix.getvalue()).hexdigest()
    document.finish(MatrixFile("vectors.npy", len(vectors), "file:///v.npy", digest))
    return out.getvalue(), matrix.getvalue()


def changed(document: bytes, **members: Any) -> bytes:
    return json.dumps(json.loads(document) | members).encode()


def test_a_document_is_json_with_a_vector_beside_each_text() -> None:
    assert json.loads(inline()) == {
        "format": "lucius.vectors/1",
        "model": "a-model",
        "dimension": 3,
        "chunk_size": 5,
        "overlap": 2,
        "characters": 20,
        "chunks": [
            {"index": 0, "start": 0, "end": 4, "text": "one ", "vector": [1.0, 0.0, 0.0]},
            {**CHUNKS[1]._asdict(), "vector": [0.6, -0.8, 0.0]},
            {**CHUNKS[2]._asdict(), "vector": [0.3333333, 0.6666667, 0.6666667]},
        ],
    }


def test_a_large_document_names_the_file_that_has_the_vectors() -> None:
    document, matrix = apart()
    value = json.loads(document)
    assert value["vectors"] == {
        "file": "vectors.npy",
        "uri": "file:///v.npy",
        "sha256": sha256(matrix).hexdigest(),
        "dtype": "float32",
        "shape": [3, 3],
    }
    assert value["chunks"] == [chunk._asdict() for chunk in CHUNKS]
    assert (np.load(io.BytesIO(matrix)) == VECTORS).all()


def test_what_was_written_is_read_back() -> None:
    for read in (read_vectors(inline()), read_vectors(io.BytesIO(inline()))):
        assert (read.model, read.dimension, read.characters) == ("a-model", 3, 20)
        assert (read.chunk_size, read.overlap) == (5, 2)
        assert read.chunks == CHUNKS
        assert read.vectors == pytest.approx(VECTORS, abs=1e-7)
        assert read.vectors.dtype == np.float32


def test_a_large_document_is_read_back_to_the_bit() -> None:
    document, matrix = apart()
    read = read_vectors(document, io.BytesIO(matrix))
    assert read.chunks == CHUNKS
    assert (read.vectors == VECTORS).all()


def test_a_document_of_an_empty_text_is_read_back() -> None:
    read = read_vectors(inline([]))
    assert (read.chunks, read.vectors.shape) == ([], (0, 3))


@given(arrays.arrays(np.float32, (1, 3), elements=st.floats(-1, 1, width=32)))
def test_numbers_lose_less_than_a_float_can_tell(vectors: Vectors) -> None:
    assert read_vectors(inline(CHUNKS[:1], vectors)).vectors == pytest.approx(vectors, rel=1e-6)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b" \n"])
def test_it_is_known_by_its_first_bytes(mark: bytes) -> None:
    assert is_vector_document((mark + inline())[:64])
    assert is_vector_document(mark + b'{\n  "format" : "lucius.vectors/2"')


@pytest.mark.parametrize(
    "head", [b"", b"{", b"Dear Ms. Okafor", b'{"format": "other/1"}', b'[{"format": "lucius']
)
def test_other_texts_are_known_too(head: bytes) -> None:
    assert not is_vector_document(head)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"", "no JSON"),
        (inline()[:-20], "no JSON, or not whole"),
        (b"\xff\xfe{}", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "the format must be"),
        (changed(inline(), format="lucius.vectors/2"), "it is 'lucius.vectors/2'"),
        (changed(inline(), dimension=4), "chunk 0 has 3 numbers instead of 4"),
        (changed(inline(), dimension=0), "/dimension"),
        (changed(inline(), characters=19), "chunk 2 does not lie"),
        (changed(inline(), chunks=None), "/chunks"),
        (inline().replace(b'"index": 1', b'"index": 7'), "chunk 1 has the index 7"),
        (inline().replace(b'"end": 4', b'"end": 5'), "chunk 0 does not lie"),
        (inline().replace(b"-0.8", b"NaN"), "/chunks/1/vector/1"),
        (inline().replace(b"-0.8", b"1e400"), "/chunks/1/vector/1"),
        (inline().replace(b"-0.8", b"1e300"), "/chunks/1/vector/1"),
        (inline().replace(b"-0.8", b'"x"'), "/chunks/1/vector/1"),
        (inline().replace(b'"vector": [1', b'"other": [1'), "chunk 0 has no vector"),
        (apart()[0], r"in a second file, 'vectors.npy': give it too"),
    ],
)
def test_what_is_no_vector_document_is_refused_with_a_reason(document: bytes, reason: str) -> None:
    with pytest.raises(VectorsInvalid, match=reason):
        read_vectors(document)


def test_a_reason_has_nothing_of_the_text_in_it() -> None:
    secret = inline([Chunk(0, 0, 6, "secret")]).replace(b'"secret"', b'["secret"]')
    with pytest.raises(VectorsInvalid) as refused:
        read_vectors(secret)
    assert "secret" not in str(refused.value)


def _without_digest(document: bytes) -> bytes:
    vectors = json.loads(document)["vectors"]
    return changed(document, vectors={**vectors, "sha256": None})


def _saved(array: NDArray[Any]) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        (b"", "not in NumPy's format"),
        (b"PK\3\4" * 100, "not in NumPy's format"),
        (_saved(VECTORS)[:-4], "cut off"),
        (_saved(VECTORS) + b"more", "more than its header says"),
        (_saved(VECTORS[:2]), "shape"),
        (_saved(VECTORS.astype(np.float64)), "float32"),
        (_saved(np.asfortranarray(VECTORS)), "shape"),
        (_saved(VECTORS * np.float32(np.nan)), "not finite"),
        (_saved(np.zeros((3, 3), object)), "float32"),
    ],
)
def test_a_second_file_that_is_not_the_vectors_is_refused(matrix: bytes, reason: str) -> None:
    document, _ = apart()
    with pytest.raises(VectorsInvalid, match="is not the file that the document names"):
        read_vectors(document, io.BytesIO(matrix))
    with pytest.raises(VectorsInvalid, match=reason):
        read_vectors(_without_digest(document), io.BytesIO(matrix))


def test_a_shape_that_does_not_fit_the_chunks_is_refused() -> None:
    document, matrix = apart(VECTORS[:2])
    with pytest.raises(VectorsInvalid, match=r"shape \[2, 3\], not \[3, 3\]"):
        read_vectors(document, io.BytesIO(matrix))


def test_a_document_that_asks_for_more_than_there_is_costs_no_memory() -> None:
    document, matrix = apart()
    much = 10**18
    vectors = {"file": "vectors.npy", "dtype": "float32", "shape": [3, much]}
    with pytest.raises(VectorsInvalid, match="shape"):
        read_vectors(changed(document, dimension=much, vectors=vectors), io.BytesIO(matrix))


def test_of_a_second_file_without_end_only_the_beginning_is_read() -> None:
    document, matrix = apart()
    endless = io.BytesIO(matrix + bytes(1_000_000))
    with pytest.raises(VectorsInvalid):
        read_vectors(document, endless)
    assert endless.tell() < 10_000
