"""The API of artifacts, as storage of a service."""

import io
import threading
from typing import TYPE_CHECKING, Any, BinaryIO

from lucius_artifacts.client import ArtifactsClient, Measured
from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError, RetryableError
from lucius_sdk.workspace_io.artifact.faults import faults, publishing, reading, uploading
from lucius_sdk.workspace_io.artifact.names import artifact_name, path_of, producer_of
from lucius_sdk.workspace_io.fence import Fence
from lucius_sdk.workspace_io.outcome import Outcome
from lucius_sdk.workspace_io.streams import CHUNK
from lucius_sdk.workspace_io.uris import ARTIFACT, as_output, shown
from lucius_settings.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import WriteableBuffer

_SCHEMES = frozenset({ARTIFACT})


class ApiCatalogues:
    """The connection is opened when the first job needs it."""

    def __init__(self, url: str, key: Secret | None = None, **options: Any) -> None:
        self._url = url
        self._key = key
        self._options = options
        self._lock = threading.Lock()
        self._client: ArtifactsClient | None = None

    def of_job(self, tenant_id: str, job_id: str, token: str | None = None) -> "ApiCatalogue":
        return ApiCatalogue(self, tenant_id, job_id, token)

    @property
    def client(self) -> ArtifactsClient:
        with self._lock:
            if self._client is None:
                key = None if self._key is None else self._key.reveal()
                self._client = ArtifactsClient(self._url, key, **self._options)
            return self._client

    def close(self) -> None:
        """A later call opens anew."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()


class ApiCatalogue:
    __slots__ = ("_catalogues", "_job_id", "_tenant_id", "_token")

    def __init__(
        self, catalogues: ApiCatalogues, tenant_id: str, job_id: str, token: str | None
    ) -> None:
        self._catalogues = catalogues
        self._tenant_id = tenant_id
        self._job_id = job_id
        self._token = token

    @property
    def schemes(self) -> frozenset[str]:
        return _SCHEMES

    def open_read(self, uri: str) -> BinaryIO:
        with faults(reading, uri):
            stream = self._catalogues.client.open(uri, self._tenant_id, self._job_id)
        return io.BufferedReader(_ArtifactStream(stream, uri), CHUNK)

    def publish(self, uri: str, outcome: Outcome, fence: Fence, media_type: str) -> str:
        with as_output():
            name = artifact_name(uri)
        client, tenant_id = self._catalogues.client, self._tenant_id
        producer = producer_of(fence, self._proof(uri))
        with faults(uploading, uri):
            source = _OutcomeSource(outcome, uri)
            digest = client.upload(source, tenant_id, progress=source.check).digest
        entry = {
            "path": path_of(outcome, media_type),
            "digest": digest,
            "media_type": media_type,
        }
        with faults(publishing, uri):
            version = client.publish(name, [entry], tenant_id, producer)
        return _published(version)

    def _proof(self, uri: str) -> str:
        """Before anything is uploaded in vain."""
        if self._token is None:
            raise RetryableError(
                ErrorCode.STORAGE_UNAVAILABLE,
                f"{shown(uri)} cannot be published: the directive has no artifact_token. It comes"
                " from an older orchestrator; upgrade that first",
            )
        return self._token

    def close(self) -> None:
        """It is closed with all others."""


def _published(version: dict[str, Any]) -> str:
    """The uri of its one file."""
    uri = str(version["entries"][0]["uri"])
    if version["state"] == "published":
        return uri
    raise NonRetryableError(
        ErrorCode.OUTPUT_CONFLICT,
        f"{shown(uri)} is in quarantine, so nobody can read it: {version.get('reason')}",
    )


class _OutcomeSource:
    """An outcome, as the client uploads it. Its digest is known, and the server verifies it."""

    def __init__(self, outcome: Outcome, uri: str) -> None:
        self._outcome = outcome
        self._uri = uri

    @property
    def name(self) -> str:
        return self._outcome.name or "the outcome"

    @property
    def size(self) -> int:
        return self._outcome.size

    def measure(self, count: "Callable[[int], None]") -> Measured:
        del count
        return Measured(self._outcome.sha256, self._outcome.size)

    def open_at(self, offset: int) -> BinaryIO:
        return self._outcome.open_at(offset)

    def has_changed(self) -> bool:
        return False

    def check(self, *_: object) -> None:
        self._outcome.check_open()


class _ArtifactStream(io.RawIOBase):
    def __init__(self, stream: BinaryIO, uri: str) -> None:
        self._stream = stream
        self._uri = uri

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        with faults(reading, self._uri), memoryview(buffer).cast("B") as view:
            chunk = self._stream.read(len(view))
            view[: len(chunk)] = chunk
            return len(chunk)

    def close(self) -> None:
        self._stream.close()
        super().close()
