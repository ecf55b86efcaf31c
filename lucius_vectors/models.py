"""The models, by name. One is loaded once per process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from lucius_vectors.errors import UnknownModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT_MODEL = "all-minilm-l6-v2"
MODELS = (DEFAULT_MODEL,)
"""All that can be loaded."""


class Model(Protocol):
    """May be used by several threads at once."""

    @property
    def name(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def max_tokens(self) -> int:
        """What is longer is cut off there."""

    def count_tokens(self, text: str) -> int:
        """Of the text alone, without what the model puts around it."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row of unit length for each text. The vector of a text does not depend on the others,
        and the memory does not grow with their number."""


_loaded: dict[tuple[str, int], Model] = {}
_loading = threading.Lock()


def load_model(name: str = DEFAULT_MODEL, threads: int = 1) -> Model:
    """`threads` is for one text; callers may embed in several threads of their own beside.

    `UnknownModel`, `ModelBroken`, `VectorsNotInstalled`.
    """
    if name not in MODELS:
        raise UnknownModel(name, MODELS)
    with _loading:
        if (name, threads) not in _loaded:
            from lucius_vectors.minilm import MiniLm

            _loaded[name, threads] = MiniLm.load(name, threads)
        return _loaded[name, threads]
