"""From a uri to bytes, for those who may read them; and holds, for the jobs that will."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from posixpath import basename

from lucius_artifacts.decisions.blobs import needed
from lucius_artifacts.errors import Gone, Invalid, NotFound
from lucius_artifacts.model import Blob, Entry, Hold, Version
from lucius_artifacts.names import ArtifactUri, BlobUri, FileUri, parse_uri
from lucius_artifacts.owning import Content, own_content
from lucius_artifacts.ports.catalogue import Catalogue, Reader, Transaction
from lucius_artifacts.ports.objects import Objects, SignedRequest
from lucius_artifacts.states import VersionState
from lucius_artifacts.world import Limits, World

_UNTYPED = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Located:
    """Content that may be read, from the object that is the tenant's."""

    blob: Blob
    object_key: str
    file_name: str
    media_type: str = _UNTYPED


class Reading:
    def __init__(
        self, catalogue: Catalogue, objects: Objects, world: World, limits: Limits
    ) -> None:
        self._catalogue = catalogue
        self._objects = objects
        self._world = world
        self._limits = limits

    async def locate(self, tenant_id: str, uri: str, job_id: str | None = None) -> Located:
        """What a tenant may read: files of its published versions, and content by digest that it
        has uploaded. A job reads what is held for it, also if it was tombstoned since."""
        return await self._catalogue.read(lambda rows: _located(rows, tenant_id, uri, job_id))

    async def sign(self, located: Located) -> SignedRequest:
        until = self._world.clock() + self._limits.url_lifetime
        key = located.object_key
        return await self._objects.sign_read(key, until, located.media_type, located.file_name)

    def content(self, located: Located) -> AsyncIterator[bytes]:
        return self._objects.read(located.object_key)

    async def hold(self, job_id: str, tenant_id: str, uris: Sequence[str]) -> None:
        """Before a job is created: what it will read stays until it has ended. Again is no error.
        All of them, or none and the error of one that cannot be read."""
        now = self._world.clock()

        async def hold(rows: Transaction) -> None:
            for uri in uris:
                located = await _located(rows, tenant_id, uri, None)
                await _hold(rows, job_id, tenant_id, located.blob, now)

        await self._catalogue.change(hold)

    async def release(self, job_id: str) -> None:
        """The job was not created after all, or has ended."""
        await self._catalogue.change(lambda rows: rows.drop_holds(job_id))


async def _hold(rows: Transaction, job_id: str, tenant_id: str, blob: Blob, now: datetime) -> None:
    await rows.put_blob(needed(blob, now))
    await rows.put_hold(Hold(job_id, tenant_id, blob.digest, now))


async def _located(rows: Reader, tenant_id: str, uri: str, job_id: str | None) -> Located:
    match parse_uri(uri):
        case BlobUri(digest):
            return await _content(rows, tenant_id, digest, job_id)
        case FileUri(name, number, path):
            version = await rows.version(tenant_id, name, number)
            return await _file(rows, _shown(version, name, number), path, job_id)
        case ArtifactUri(name):
            raise Invalid("uri", f"names an artifact: name a file of it, artifact://{name}/v1/...")


async def _content(rows: Reader, tenant_id: str, digest: str, job_id: str | None) -> Located:
    held = await _is_held(rows, job_id, tenant_id, digest)
    if not held and await rows.claim(tenant_id, digest) is None:
        raise NotFound(f"blob {digest}")
    own = await _own(rows, tenant_id, digest)
    return Located(own.blob, own.object_key, digest)


async def _file(rows: Reader, version: Version, path: str, job_id: str | None) -> Located:
    entry = _entry(version, path)
    if version.state is VersionState.TOMBSTONED and not await _is_held(
        rows, job_id, version.tenant_id, entry.digest
    ):
        raise Gone(f"version {version.number} of artifact {version.name}")
    own = await _own(rows, version.tenant_id, entry.digest)
    return Located(own.blob, own.object_key, basename(path), entry.media_type)


def _shown(version: Version | None, name: str, number: int) -> Version:
    if version is None or version.state is VersionState.DRAFT:
        raise NotFound(f"published version {number} of artifact {name}")
    return version


def _entry(version: Version, path: str) -> Entry:
    for entry in version.entries:
        if entry.path == path:
            return entry
    raise NotFound(f"file {path} in version {version.number} of artifact {version.name}")


async def _is_held(rows: Reader, job_id: str | None, tenant_id: str, digest: str) -> bool:
    hold = None if job_id is None else await rows.hold(job_id, digest)
    return hold is not None and hold.tenant_id == tenant_id


async def _own(rows: Reader, tenant_id: str, digest: str) -> Content:
    own = await own_content(rows, tenant_id, digest)
    if own is None:
        raise Gone(f"blob {digest}")
    return own
