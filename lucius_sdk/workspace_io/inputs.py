"""`ctx.input` and `ctx.prior`: what a step reads."""

import asyncio
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

from lucius_contract.documents import Artifact
from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io.port import Reader
from lucius_sdk.workspace_io.streams import CHUNK, CheckOpen, always_open, open_checked
from lucius_sdk.workspace_io.uris import shown


class Input:
    """What the directive's `input_ref` names."""

    def __init__(self, reader: Reader, uri: str, check_open: CheckOpen = always_open) -> None:
        self.uri = uri
        self._reader = reader
        self._check_open = check_open

    def open(self) -> io.BufferedReader:
        """Use it in a `with` statement. It can be sought in if the storage can."""
        self._check_open()
        return open_checked(self._reader.open_read(self.uri), self._check_open)

    def read(self, limit: int | None = None) -> bytes:
        """All of it; INPUT_TOO_LARGE if that is more than `limit` bytes."""
        with self.open() as stream:
            return _read_all(stream, limit, shown(self.uri))

    async def aread(self, limit: int | None = None) -> bytes:
        return await asyncio.to_thread(self.read, limit)


class PriorArtifact:
    """What a step before this one has written. Its size and digest are compared as it is read:
    INPUT_INVALID if it is not what that step wrote."""

    def __init__(
        self, reader: Reader, artifact: Artifact, check_open: CheckOpen = always_open
    ) -> None:
        self.artifact = artifact
        self._reader = reader
        self._check_open = check_open

    def open(self) -> io.BufferedReader:
        """Use it in a `with` statement, and read to the end: only then it is known to be right.
        It cannot be sought in; `io.BytesIO(prior.read())` can."""
        self._check_open()
        source = self._reader.open_read(self.artifact.uri)
        return open_checked(source, self._check_open, self.artifact)

    def read(self, limit: int | None = None) -> bytes:
        """All of it, verified; INPUT_TOO_LARGE if that is more than `limit` bytes."""
        _check_size(self.artifact.size, limit, self.artifact.name)
        with self.open() as stream:
            return stream.read()

    async def aread(self, limit: int | None = None) -> bytes:
        return await asyncio.to_thread(self.read, limit)


class PriorArtifacts(Mapping[str, list[PriorArtifact]]):
    """What the steps before this one have written, by step type."""

    def __init__(
        self,
        reader: Reader,
        artifacts: Mapping[str, Sequence[Artifact]],
        check_open: CheckOpen = always_open,
    ) -> None:
        self._found = {
            step_type: [PriorArtifact(reader, artifact, check_open) for artifact in written]
            for step_type, written in artifacts.items()
        }

    def __getitem__(self, step_type: str) -> list[PriorArtifact]:
        return self._found[step_type]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def find(self, step_type: str, name: str) -> PriorArtifact:
        """The one of that name, the last if there are several; INPUT_NOT_FOUND if there is none."""
        for prior in reversed(self._found.get(step_type, [])):
            if prior.artifact.name == name:
                return prior
        raise NonRetryableError(
            ErrorCode.INPUT_NOT_FOUND,
            f"no step {step_type} before this one has written {name!r}; {self._told()}",
        )

    def _told(self) -> str:
        names = [f"{step}: {p.artifact.name}" for step, found in self.items() for p in found]
        return f"there is {', '.join(names[:10])}" if names else "there are no artifacts at all"


def _read_all(stream: BinaryIO, limit: int | None, name: str) -> bytes:
    if limit is None:
        return stream.read()
    content = io.BytesIO()  # gives its bytes away without another copy
    while piece := stream.read(min(CHUNK, limit + 1 - content.tell())):
        content.write(piece)
    _check_size(content.tell(), limit, name)
    return content.getvalue()


def _check_size(size: int, limit: int | None, name: str) -> None:
    if limit is not None and size > limit:
        raise NonRetryableError(
            ErrorCode.INPUT_TOO_LARGE, f"{name} has more than the {limit} bytes that are allowed"
        )
