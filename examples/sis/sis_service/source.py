"""What a step answers from: vectors that a step before it has made, or its input."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import Any

import numpy as np
from lucius_sdk import ErrorCode, NonRetryableError, StepContext
from lucius_vectors import (
    DEFAULT_MODEL,
    Chunk,
    Model,
    UnknownModel,
    VectorDocument,
    VectorsInvalid,
    chunks,
    is_vector_document,
    load_model,
    read_vectors,
)
from numpy.typing import NDArray

EMBEDDING = "EMBEDDING"
VECTORS, MATRIX = "vectors.json", "vectors.npy"
MOST_TEXT = 5_000_000
MOST_VECTORS = 100_000_000
CHUNK_SIZE = 128
OVERLAP = 16
_BATCH = 32


@dataclass(frozen=True, slots=True)
class Source:
    """`texts` are the parts of the document that are known, and where each begins in it. `vectors`
    has a row of unit length for each chunk."""

    model: Model
    chunks: list[Chunk]
    vectors: NDArray[np.float32]
    texts: list[tuple[int, str]]


def read_source(ctx: StepContext[Any]) -> Source:
    if EMBEDDING in ctx.prior:
        document = ctx.prior.find(EMBEDDING, VECTORS).read(limit=MOST_VECTORS)
        return _of_vectors(document, _matrix(ctx))
    content = ctx.input.read(limit=MOST_VECTORS)
    if is_vector_document(content[:1024]):
        return _of_vectors(content, None)
    return _of_text(ctx, _text(content))


def _matrix(ctx: StepContext[Any]) -> BytesIO | None:
    """Small documents have none."""
    names = [one.artifact.name for one in ctx.prior[EMBEDDING]]
    if MATRIX not in names:
        return None
    return BytesIO(ctx.prior.find(EMBEDDING, MATRIX).read(limit=MOST_VECTORS))


def _of_vectors(content: bytes, matrix: BytesIO | None) -> Source:
    try:
        document = read_vectors(content, matrix)
        model = load_model(document.model)
    except VectorsInvalid as error:
        raise NonRetryableError(ErrorCode.INPUT_INVALID, str(error)) from error
    except UnknownModel as error:
        raise NonRetryableError(
            "SIS_MODEL_UNKNOWN",
            f"the vectors were made with a model that is not installed here: {error}",
        ) from error
    if document.dimension != model.dimension:
        raise NonRetryableError(
            ErrorCode.INPUT_INVALID,
            f"the vectors have {document.dimension} numbers each; {model.name} makes"
            f" {model.dimension}",
        )
    return Source(model, document.chunks, _unit(document), list(_joined(document.chunks)))


def _unit(document: VectorDocument) -> NDArray[np.float32]:
    lengths = np.linalg.norm(document.vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = document.vectors / np.maximum(lengths, 1e-12)
    return unit


def _joined(found: Iterable[Chunk]) -> Iterator[tuple[int, str]]:
    """Chunks that overlap make one text again; a sentence that the cut went through is whole."""
    start = end = 0
    parts: list[str] = []
    for chunk in sorted(found, key=lambda chunk: chunk.start):
        if chunk.start > end:
            yield start, "".join(parts)
            start = end = chunk.start
            parts = []
        parts.append(chunk.text[end - chunk.start :])
        end = max(end, chunk.end)
    yield start, "".join(parts)


def _text(content: bytes) -> str:
    if len(content) > MOST_TEXT:
        raise NonRetryableError(
            ErrorCode.INPUT_TOO_LARGE,
            f"a text of more than {MOST_TEXT} bytes needs an EMBEDDING step before this one",
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _no_text() from error
    if "\0" in text:
        raise _no_text()
    return text


def _no_text() -> NonRetryableError:
    return NonRetryableError(
        ErrorCode.INPUT_INVALID,
        "the input is neither a vector document nor text in UTF-8; other documents need the"
        " steps OCR and EMBEDDING before this one",
    )


def _of_text(ctx: StepContext[Any], text: str) -> Source:
    model = load_model(DEFAULT_MODEL)
    cut = list(chunks(text, CHUNK_SIZE, OVERLAP, model.count_tokens))
    vectors = np.empty((len(cut), model.dimension), np.float32)
    for first in range(0, len(cut), _BATCH):
        ctx.check()
        batch = [chunk.text for chunk in islice(cut, first, first + _BATCH)]
        vectors[first : first + len(batch)] = model.embed(batch)
    return Source(model, cut, vectors, [(0, text)])
