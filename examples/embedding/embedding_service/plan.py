"""Where the chunks of a text lie, found before the first is embedded: how many there are decides
the form of the vector document."""

from array import array
from collections.abc import Callable, Iterator

from lucius_vectors import Chunk, Model, chunks

_CHECKED_EVERY = 256


class Plan:
    """Offsets alone, sixteen bytes a chunk; the texts are cut out of the source when they are
    needed."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._offsets = array("Q")

    @classmethod
    def make(
        cls, text: str, size: int, overlap: int, model: Model, check: Callable[[], None]
    ) -> "Plan":
        """`check` is called now and then; it raises to stop."""
        plan = cls(text)
        for chunk in chunks(text, size, overlap, model.count_tokens):
            if chunk.index % _CHECKED_EVERY == 0:
                check()
            plan._offsets.extend((chunk.start, chunk.end))
        return plan

    def __len__(self) -> int:
        return len(self._offsets) // 2

    def __getitem__(self, index: int) -> Chunk:
        start, end = self._offsets[2 * index : 2 * index + 2]
        return Chunk(index, start, end, self._text[start:end])

    def batches(self, size: int) -> Iterator[list[Chunk]]:
        for first in range(0, len(self), size):
            yield [self[index] for index in range(first, min(first + size, len(self)))]
