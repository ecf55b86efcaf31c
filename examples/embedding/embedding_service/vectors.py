"""Embeds the chunks of a text and writes the vector document, a batch at a time."""

from collections.abc import Iterator

import numpy as np
from lucius_sdk import Artifact, StepContext
from lucius_vectors import Chunk, DocumentWriter, Header, MatrixFile, MatrixWriter, Model
from numpy.typing import NDArray

from embedding_service.payload import Payload
from embedding_service.plan import Plan

DOCUMENT, MATRIX = "vectors.json", "vectors.npy"
_JSON = "application/json"
_BATCH = 16

Batch = tuple[list[Chunk], NDArray[np.float32]]


def write_inline(ctx: StepContext[Payload], header: Header, batches: Iterator[Batch]) -> Artifact:
    """One file, with each vector beside its text."""
    with ctx.workspace.open(DOCUMENT, _JSON) as file:
        document = DocumentWriter(file, header)
        for chunks, vectors in batches:
            document.add(chunks, vectors)
        document.finish()
    return file.artifact


def write_apart(
    ctx: StepContext[Payload], header: Header, rows: int, batches: Iterator[Batch]
) -> Artifact:
    """Two files: as JSON the numbers of a large document would be three times as long."""
    with ctx.workspace.open(DOCUMENT, _JSON) as file:
        document = DocumentWriter(file, header)
        with ctx.workspace.open(MATRIX) as matrix_file:
            matrix = MatrixWriter(matrix_file, rows, header.dimension)
            for chunks, vectors in batches:
                matrix.add(vectors)
                document.add(chunks)
        matrix_artifact = matrix_file.artifact
        document.finish(MatrixFile(MATRIX, rows, str(matrix_artifact.uri), matrix_artifact.sha256))
    return file.artifact


def embedded(ctx: StepContext[Payload], model: Model, plan: Plan) -> Iterator[Batch]:
    """Between batches it says how far it is, and stops if it has to."""
    for chunks in plan.batches(_BATCH):
        ctx.check()
        yield chunks, model.embed([chunk.text for chunk in chunks])
        done = chunks[-1].index + 1
        ctx.progress(done / len(plan), f"chunk {done} of {len(plan)}")
