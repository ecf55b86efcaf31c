"""`ctx.workspace`: where a step writes what it makes."""

import asyncio
import hashlib
import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pydantic_core

from lucius_contract.documents import Artifact
from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io.names import check_name
from lucius_sdk.workspace_io.outcome import BYTES
from lucius_sdk.workspace_io.port import Sink
from lucius_sdk.workspace_io.step_folder import StepFolder
from lucius_sdk.workspace_io.streams import CHUNK, CheckOpen, always_open

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


class ArtifactWriter(io.BufferedWriter):
    """A binary file, open for writing; its digest is counted as it is written."""

    def __init__(self, stream: "_DigestingStream") -> None:
        super().__init__(stream, CHUNK)
        self._artifact: Artifact | None = None

    @property
    def artifact(self) -> Artifact:
        """What was written, once the `with` block has ended well."""
        if self._artifact is None:
            raise ValueError("the artifact is not finished: leave the 'with' block first")
        return self._artifact


class Workspace:
    """The folder of this run. Each name is written once; what is written is whole or absent."""

    def __init__(self, folder: StepFolder, check_open: CheckOpen = always_open) -> None:
        self._folder = folder
        self._check_open = check_open
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self._artifacts: list[Artifact] = []

    @property
    def uri(self) -> str:
        return self._folder.uri

    @property
    def artifacts(self) -> list[Artifact]:
        """All that was finished, in the order in which it was."""
        with self._lock:
            return list(self._artifacts)

    def write(
        self, name: str, data: bytes | bytearray | memoryview | str, media_type: str | None = None
    ) -> Artifact:
        """Text is written in UTF-8."""
        content = data.encode() if isinstance(data, str) else data
        with self.open(name, media_type or (TEXT if isinstance(data, str) else BYTES)) as file:
            file.write(content)
        return file.artifact

    def write_json(self, name: str, value: Any) -> Artifact:
        """Models, dates and the like are written as pydantic would; NaN is refused."""
        text = json.dumps(
            value,
            ensure_ascii=False,
            allow_nan=False,
            default=pydantic_core.to_jsonable_python,
        )
        return self.write(name, text, JSON)

    @contextmanager
    def open(self, name: str, media_type: str | None = None) -> Iterator[ArtifactWriter]:
        """For what is too large for memory. An exception inside discards what was written."""
        self._check_open()
        kind = media_type or BYTES
        with self._reserved(check_name(name)), _discarding(self._folder.create(name, kind)) as sink:
            stream = _DigestingStream(sink, self._check_open)
            writer = ArtifactWriter(stream)
            try:
                yield writer
                writer.close()
            finally:
                stream.ignore()
                writer.close()
            self._check_open()
            sink.commit()
            artifact = stream.artifact(name, self._folder.uri_of(name), kind)
            self._finish(writer, artifact)

    async def awrite(
        self, name: str, data: bytes | bytearray | memoryview | str, media_type: str | None = None
    ) -> Artifact:
        return await asyncio.to_thread(self.write, name, data, media_type)

    async def awrite_json(self, name: str, value: Any) -> Artifact:
        return await asyncio.to_thread(self.write_json, name, value)

    @contextmanager
    def _reserved(self, name: str) -> Iterator[None]:
        """Free again if nothing came of it, so that a handler may try once more."""
        with self._lock:
            if name in self._names:
                raise NonRetryableError(
                    ErrorCode.INTERNAL, f"the artifact {name!r} was already written in this run"
                )
            self._names.add(name)
        try:
            yield
        except BaseException:
            with self._lock:
                self._names.discard(name)
            raise

    def _finish(self, writer: ArtifactWriter, artifact: Artifact) -> None:
        writer._artifact = artifact
        with self._lock:
            self._artifacts.append(artifact)


@contextmanager
def _discarding(sink: Sink) -> Iterator[Sink]:
    """Whatever happens, nothing unfinished stays."""
    try:
        yield sink
    finally:
        sink.discard()


class _DigestingStream(io.RawIOBase):
    """Takes a chunk at a time, so that stopped work stops within a large write as well."""

    def __init__(self, sink: Sink, check_open: CheckOpen) -> None:
        self._sink = sink
        self._check_open = check_open
        self._digest = hashlib.sha256()
        self._size = 0
        self._is_ignored = False

    def writable(self) -> bool:
        return True

    def write(self, data: "ReadableBuffer", /) -> int:
        with memoryview(data).cast("B") as view, view[:CHUNK] as chunk:
            if not self._is_ignored:
                self._put(chunk)
            return len(chunk)

    def ignore(self) -> None:
        """What is still in a buffer goes nowhere."""
        self._is_ignored = True

    def artifact(self, name: str, uri: str, media_type: str) -> Artifact:
        return Artifact(
            name=name,
            uri=uri,
            sha256=self._digest.hexdigest(),
            size=self._size,
            media_type=media_type,
        )

    def _put(self, chunk: memoryview) -> None:
        self._check_open()
        self._sink.write(chunk)
        self._digest.update(chunk)
        self._size += len(chunk)
