"""Publishing to a blob: its fence is in its metadata, and one request commits both.

The condition of that request is the ETag of what was looked at, or that there is nothing. Who was
overtaken looks again: a higher fence ends it, any other is replaced. So whatever the order, the
highest that publishes stays, and nobody waits for anybody. A commit whose answer was lost is met
again as an equal fence, and made once more: the same blocks under the same fence.

Blocks are staged under the target's own name, since no copy from another blob is to be had under a
condition for every size and every kind of credential. There they are lost when another run commits.
To a run that goes on, only one with a lower fence can do that, and each does it once; then the
content is read and staged again.
"""

from shutil import copyfileobj
from typing import Any, NamedTuple, Self

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.blob import BlobClient, BlobProperties

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import RetryableError
from lucius_sdk.workspace_io.blob.faults import BLOCKS_GONE, code_of, faults, unavailable, writing
from lucius_sdk.workspace_io.blob.uploading import BLOCK, Upload
from lucius_sdk.workspace_io.fence import Fence, check_may_replace, unreadable
from lucius_sdk.workspace_io.port import Source
from lucius_sdk.workspace_io.streams import CHUNK
from lucius_sdk.workspace_io.uris import shown

FENCE = "lucius_fence"
_TRIES = 32
_OVERTAKEN = frozenset({"BlobAlreadyExists", "BlobNotFound", "ConditionNotMet", BLOCKS_GONE})


class _Stored(NamedTuple):
    """What stands at the target."""

    etag: str
    fence: Fence | None

    @classmethod
    def read(cls, found: BlobProperties, uri: str) -> Self:
        # Some accounts give names of metadata back with a capital.
        metadata = {name.lower(): value for name, value in found.metadata.items()}
        text = metadata.get(FENCE)
        try:
            fence = None if text is None else Fence.from_header(text)
        except ValueError as error:
            raise unreadable(f"in the metadata of {shown(uri)}") from error
        return cls(found.etag, fence)


class Publication:
    """One run's try to publish at one place."""

    def __init__(
        self, blob: BlobClient, uri: str, fence: Fence, media_type: str, block: int = BLOCK
    ) -> None:
        self._blob = blob
        self._uri = uri
        self._fence = fence
        self._media_type = media_type
        self._block = block
        self._stored: _Stored | None = None

    def run(self, source: Source) -> None:
        upload = self._uploaded(source)
        for _ in range(_TRIES):
            overtaken = self._commit(upload)
            if overtaken is None:
                return
            self._look()
            if code_of(overtaken) == BLOCKS_GONE:
                upload = self._uploaded(source)
            elif self._stored is None:
                # Blocks that somebody left behind may count as a blob, unless blocks are committed.
                upload.stage()
        raise RetryableError(
            ErrorCode.STORAGE_UNAVAILABLE, f"others publish at {shown(self._uri)} all the time"
        )

    def _uploaded(self, source: Source) -> Upload:
        """A blob that is large enough for blocks is worth a look whether it has a chance."""
        upload = Upload(self._blob, self._uri, self._media_type, self._block, self._look)
        with source() as stream:
            copyfileobj(stream, upload, CHUNK)
        return upload

    def _commit(self, upload: Upload) -> HttpResponseError | None:
        """The answer, if that is that something else stands there than what was looked at."""
        metadata = {FENCE: self._fence.to_header()}
        with faults(writing, self._uri):
            try:
                upload.commit(metadata=metadata, **self._condition())
            except HttpResponseError as error:
                if code_of(error) not in _OVERTAKEN:
                    raise
                return error
        return None

    def _condition(self) -> dict[str, Any]:
        if self._stored is None:
            return {"match_condition": MatchConditions.IfMissing}
        return {"match_condition": MatchConditions.IfNotModified, "etag": self._stored.etag}

    def _look(self) -> None:
        """OUTPUT_CONFLICT if a higher fence has published."""
        with faults(unavailable, self._uri):
            try:
                found = self._blob.get_blob_properties()
            except ResourceNotFoundError as error:
                if code_of(error) == "ContainerNotFound":
                    raise
                self._stored = None
                return
        self._stored = _Stored.read(found, self._uri)
        if self._stored.fence is not None:
            check_may_replace(self._fence, self._stored.fence)
