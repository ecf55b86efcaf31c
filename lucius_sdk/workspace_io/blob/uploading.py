"""Blobs in the making: blocks that nobody sees, and a commit that shows all of them at once."""

import uuid
from collections.abc import Callable
from typing import Any

from azure.storage.blob import BlobBlock, BlobClient, ContentSettings

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io.blob.faults import faults, writing
from lucius_sdk.workspace_io.uris import shown

BLOCK = 4 * 1024 * 1024
MOST_BLOCKS = 50_000


def _nothing() -> None: ...


class Upload:
    """What fits into one block is put with one request, by the commit. Of more than that one block
    is held here; the others lie at the service, which has compared a checksum of each.

    Uploads to one blob share the names of blocks, so each has a prefix of its own.
    """

    def __init__(
        self,
        blob: BlobClient,
        uri: str,
        media_type: str,
        block: int = BLOCK,
        before_staging: Callable[[], None] = _nothing,
    ) -> None:
        self._blob = blob
        self._uri = uri
        self._settings = ContentSettings(content_type=_checked(media_type))
        self._block = block
        self._before_staging = before_staging
        self._prefix = uuid.uuid4().hex
        self._is_staged = False
        self._staged: list[BlobBlock] = []
        self._rest = bytearray()

    def write(self, data: bytes | memoryview) -> None:
        with memoryview(data).cast("B") as view:
            begin = 0
            while begin < len(view):
                if len(self._rest) == self._block:
                    self.stage()
                end = begin + self._block - len(self._rest)
                self._rest += view[begin:end]
                begin = end

    def commit(self, **options: Any) -> None:
        """Under these conditions, with this metadata. It may be tried again after an error, since
        the same blocks make the same blob. Faults are raised as the client raises them."""
        settings: dict[str, Any] = {"content_settings": self._settings, "validate_content": True}
        if self._is_staged:
            self.stage()
            self._blob.commit_block_list(self._staged, **settings, **options)
        else:
            self._blob.upload_blob(bytes(self._rest), overwrite=True, **settings, **options)

    def stage(self) -> None:
        """Leave nothing here, so that a commit is one of blocks."""
        if not self._is_staged:
            self._before_staging()
        self._is_staged = True
        if self._rest:
            self._stage()

    def _stage(self) -> None:
        if len(self._staged) == MOST_BLOCKS:
            most = MOST_BLOCKS * self._block
            raise NonRetryableError(
                ErrorCode.INTERNAL, f"{shown(self._uri)} would have more than {most} bytes"
            )
        block = BlobBlock(f"{self._prefix}{len(self._staged):06d}")
        with faults(writing, self._uri):
            self._blob.stage_block(block.id, bytes(self._rest), validate_content=True)
        self._staged.append(block)
        self._rest.clear()


class BlobSink:
    """A blob that no other run writes."""

    def __init__(self, upload: Upload, uri: str) -> None:
        self._upload: Upload | None = upload
        self._uri = uri

    def write(self, data: bytes | memoryview) -> None:
        self._open().write(data)

    def commit(self) -> None:
        """One whose answer was lost may be repeated."""
        with faults(writing, self._uri):
            self._open().commit()

    def discard(self) -> None:
        """Blocks that were never committed are nowhere to be seen; the service drops them after a
        week."""
        self._upload = None

    def _open(self) -> Upload:
        if self._upload is None:
            raise ValueError("the sink was discarded")
        return self._upload


def _checked(media_type: str) -> str:
    """It goes into a header, where a line of its own would be another header."""
    if media_type.isascii() and media_type.isprintable():
        return media_type
    raise NonRetryableError(ErrorCode.INTERNAL, f"{media_type!r} is no media type")
