"""What may go wrong.

VectorsError
├── VectorsNotInstalled      a package is missing: install the extra `vectors`
├── UnknownModel             nobody knows a model of this name
├── ModelBroken              a file of the model is not the one that it should be
└── VectorsInvalid           this is no vector document, or a damaged one
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class VectorsError(Exception):
    """The text says what to do, and has nothing of a document in it."""


class VectorsNotInstalled(VectorsError):
    def __init__(self, package: str | None) -> None:
        super().__init__(
            f"the package {package} is not installed: pip install 'lucius-sdk[vectors]'"
        )


class UnknownModel(VectorsError):
    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.known = tuple(known)
        super().__init__(f"there is no model {name[:60]!r}; known: {', '.join(self.known)}")


class ModelBroken(VectorsError):
    """A file of a model is missing, or is another one."""


class VectorsInvalid(VectorsError):
    """What was read is no vector document."""


@contextmanager
def installed() -> Iterator[None]:
    """Around imports of what comes with the extra `vectors`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise VectorsNotInstalled(error.name) from error
