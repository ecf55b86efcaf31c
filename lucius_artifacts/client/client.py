"""The artifacts of a server, for programs that block: uploads that survive a kill, downloads that
are whole or absent, and everything else that the API has."""

import io
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Self

import httpx

from lucius_artifacts.client.answers import Content, JsonObject
from lucius_artifacts.client.api import Api
from lucius_artifacts.client.chunks import Chunks
from lucius_artifacts.client.downloading import download
from lucius_artifacts.client.exchange import WithoutSignatures, new_http
from lucius_artifacts.client.patience import Patience
from lucius_artifacts.client.progress import Meter, Phase, Progress, untold
from lucius_artifacts.client.resuming import ResumeFile
from lucius_artifacts.client.sources import FileSource, Source
from lucius_artifacts.client.storage import CHUNK, Storage
from lucius_artifacts.client.streams import ContentStream
from lucius_artifacts.client.uploading import Uploaded, Uploader, UploadOptions

PARALLEL = 4
_TIMEOUT = httpx.Timeout(40.0, connect=5.0)


class ArtifactsClient:
    """Of many threads at once. Use it in a `with` statement, or close it.

    `tenant` may be left out by a caller who has but one. Errors are those of
    `lucius_artifacts.client.errors`, and OSError for files of this machine.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        *,
        parallel: int = PARALLEL,
        patience: Patience | None = None,
        timeout: httpx.Timeout = _TIMEOUT,
    ) -> None:
        self._parallel = parallel
        self._patience = patience or Patience()
        self._stack = ExitStack()
        self._stack.enter_context(WithoutSignatures())
        tls = httpx.create_ssl_context()  # one for both: it takes its time
        http = self._stack.enter_context(new_http(base_url, timeout, tls, key))
        bare = self._stack.enter_context(new_http(base_url, timeout, tls))
        self._api = Api(http, self._patience)
        self._storage = Storage(bare)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def check(self) -> None:
        """`Unavailable` at once, and not after some tries, unless somebody answers."""
        self._api.check()

    def upload(
        self,
        content: str | os.PathLike[str] | Source,
        tenant: str | None = None,
        *,
        part_size: int | None = None,
        progress: Progress = untold,
        resume: ResumeFile | None = None,
        prove: bool = True,
    ) -> Uploaded:
        """A file, or anything that can be read again. Content that the server has already is not
        sent; `prove=False` spares the second reading that this takes, for content that is new.
        With `resume`, what an interrupted upload has brought counts for the next one."""
        source = FileSource(Path(content)) if isinstance(content, str | os.PathLike) else content
        options = UploadOptions(tenant, part_size, progress, resume, prove)
        uploader = Uploader(
            self._api, self._storage, source, options, self._patience, self._parallel
        )
        return uploader.run()

    def content(self, uri: str, tenant: str | None = None, job_id: str | None = None) -> Content:
        """What a uri names. A job reads what is held for it, also if that was deleted since."""
        return self._api.content(uri, tenant, job_id)

    def download(
        self,
        uri: str,
        target: str | os.PathLike[str],
        tenant: str | None = None,
        *,
        progress: Progress = untold,
    ) -> Content:
        """To a file, which is replaced when all of it has come and is right. An interrupted
        download is gone on with."""
        content = self.content(uri, tenant)
        self.save(content, target, tenant, progress=progress)
        return content

    def save(
        self,
        content: Content,
        target: str | os.PathLike[str],
        tenant: str | None = None,
        *,
        progress: Progress = untold,
    ) -> None:
        """The same, for who has asked for the content before."""
        meter = Meter(progress, Phase.DOWNLOADING, content.length)
        download(content, self._chunks(content.uri, tenant, None), Path(target), meter)

    def open(self, uri: str, tenant: str | None = None, job_id: str | None = None) -> BinaryIO:
        """A stream, verified by its end; it cannot be sought in. Close it."""
        content = self.content(uri, tenant, job_id)
        chunks = self._chunks(uri, tenant, job_id).of(content)
        return io.BufferedReader(ContentStream(content, chunks), CHUNK)

    def artifacts(
        self, tenant: str | None = None, *, limit: int | None = None, cursor: str | None = None
    ) -> JsonObject:
        return self._api.artifacts(tenant, limit, cursor)

    def versions(
        self,
        name: str,
        tenant: str | None = None,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> JsonObject:
        """The newest first."""
        return self._api.versions(name, tenant, limit, cursor)

    def version(self, name: str, number: int, tenant: str | None = None) -> JsonObject:
        return self._api.version(name, number, tenant)

    def publish(
        self,
        name: str,
        entries: Sequence[Mapping[str, str]],
        tenant: str | None = None,
        producer: Mapping[str, str | int] | None = None,
    ) -> JsonObject:
        """The next version, or a draft that is in quarantine. Entries have `path`, `digest` and
        perhaps `media_type`; a producer has `jobId`, `stepId`, `attempt_no`, `epoch`
        and the `token` of its directive."""
        body = {"tenant_id": tenant, "entries": list(entries), "producer": producer}
        return self._api.publish(name, body)

    def publish_draft(self, name: str, number: int, tenant: str | None = None) -> JsonObject:
        return self._api.command(name, number, "publish", {"tenant_id": tenant})

    def tombstone(
        self,
        name: str,
        number: int,
        retention_seconds: int,
        tenant: str | None = None,
        reason: str | None = None,
    ) -> JsonObject:
        """Nobody new can read it; for so long it can be restored."""
        body: dict[str, Any] = {"tenant_id": tenant, "retention_seconds": retention_seconds}
        return self._api.command(name, number, "tombstone", {**body, "reason": reason})

    def restore(self, name: str, number: int, tenant: str | None = None) -> JsonObject:
        return self._api.command(name, number, "restore", {"tenant_id": tenant})

    def collect(self, *, dry_run: bool = False) -> JsonObject:
        """Delete what nobody needs any more, or only say what that is."""
        return self._api.run(dry_run=dry_run)

    def _chunks(self, uri: str, tenant: str | None, job_id: str | None) -> Chunks:
        ask = partial(self._api.content, uri, tenant, job_id)
        return Chunks(self._storage, ask, self._patience)
