"""What the tests of the workspace share."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lucius_contract.documents import Artifact
from lucius_contract.errors import ERRORS, ErrorCode
from lucius_sdk.error_model import NonRetryableError, RetryableError
from lucius_sdk.workspace_io import Fence

WORKSPACE = "lucius/acme/job_1/"
DEADLINE = 20.0

Uri = Callable[[str], str]


@contextmanager
def raises(code: ErrorCode, match: str | None = None) -> Iterator[None]:
    """The one kind of error that the contract has for this code."""
    kind = RetryableError if ERRORS[code].retryable else NonRetryableError
    with pytest.raises(kind, match=match) as caught:
        yield
    assert caught.value.code == code


def fence(attempt_no: int = 1, epoch: int = 1, job: int = 1, step: int = 3) -> Fence:
    return Fence(f"job_{job}", f"step_{step:02d}", attempt_no, epoch)


def artifact_of(content: bytes, uri: str, name: str = "output.txt") -> Artifact:
    digest = hashlib.sha256(content).hexdigest()
    return Artifact(name=name, uri=uri, sha256=digest, size=len(content), media_type="text/plain")


def visible(folder: Path) -> dict[str, bytes]:
    """Every file below that is not one of ours."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".lucius-")
    }


def unfinished(folder: Path) -> list[Path]:
    return list(folder.rglob(".lucius-*.part"))


class Stop(Exception):
    """What a check raises in these tests."""


class Checks:
    """A `check_open` that lets `allowed` looks pass."""

    def __init__(self, allowed: int) -> None:
        self.seen = 0
        self._allowed = allowed

    def __call__(self) -> None:
        self.seen += 1
        if self.seen > self._allowed:
            raise Stop
