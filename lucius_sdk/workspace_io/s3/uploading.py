"""Objects in the making: parts that nobody sees, and a request that shows all of them at once."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io.s3.faults import faults, writing
from lucius_sdk.workspace_io.uris import shown

MOST_PARTS = 10_000


def _nothing() -> None: ...


class Upload:
    """What fits into one part is put with one request, by the commit. Of more than that one part is
    held here; the others lie at the store, which has compared a checksum of each."""

    def __init__(
        self,
        client: Any,
        named: Mapping[str, str],
        uri: str,
        media_type: str,
        metadata: Mapping[str, str],
        *,
        part: int,
        before_parts: Callable[[], None] = _nothing,
    ) -> None:
        self._client = client
        self._named = named
        self._uri = uri
        self._settings = {"ContentType": _checked(media_type), "Metadata": dict(metadata)}
        self._part = part
        self._before_parts = before_parts
        self._id: str | None = None
        self._sent: list[dict[str, Any]] = []
        self._rest = bytearray()
        self._is_over = False

    def write(self, data: bytes | memoryview) -> None:
        with memoryview(data).cast("B") as view:
            begin = 0
            while begin < len(view):
                if len(self._rest) == self._part:
                    self._send_full_part()
                end = begin + self._part - len(self._rest)
                self._rest += view[begin:end]
                begin = end

    def commit(self, **condition: str) -> None:
        """It may be tried again after an error. Faults are raised as the client raises them."""
        if self._id is None:
            body = bytes(self._rest)
            self._client.put_object(**self._named, **self._settings, **condition, Body=body)
            return
        if self._rest:
            self._send()
        self._client.complete_multipart_upload(
            **self._named, **condition, UploadId=self._id, MultipartUpload={"Parts": self._sent}
        )
        self._is_over = True

    def abort(self) -> None:
        """Drop parts that were not committed. Never raises: the bucket's lifecycle drops those that
        stay."""
        if self._id is not None and not self._is_over:
            self._is_over = True
            with suppress(BotoCoreError, ClientError):
                self._client.abort_multipart_upload(**self._named, UploadId=self._id)

    def _send_full_part(self) -> None:
        if self._id is None:
            self._before_parts()
        with faults(writing, self._uri):
            self._send()

    def _send(self) -> None:
        number = len(self._sent) + 1
        if number > MOST_PARTS:
            most = MOST_PARTS * self._part
            raise NonRetryableError(
                ErrorCode.INTERNAL, f"{shown(self._uri)} would have more than {most} bytes"
            )
        if self._id is None:
            begun = self._client.create_multipart_upload(
                **self._named, **self._settings, **self._checksum
            )
            self._id = begun["UploadId"]
        sent = self._client.upload_part(
            **self._named,
            **self._checksum,
            UploadId=self._id,
            PartNumber=number,
            Body=bytes(self._rest),
        )
        # What the store has said of a part is said again when all are joined.
        said = {name: sent[name] for name in ("ETag", "ChecksumCRC32") if name in sent}
        self._sent.append(said | {"PartNumber": number})
        self._rest.clear()

    @property
    def _checksum(self) -> dict[str, str]:
        """The one that the client sends with parts unless it was told not to; an upload that was
        begun without naming it would refuse them."""
        wanted = self._client.meta.config.request_checksum_calculation
        return {"ChecksumAlgorithm": "CRC32"} if wanted == "when_supported" else {}


class ObjectSink:
    """An object that no other run writes."""

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
        upload, self._upload = self._upload, None
        if upload is not None:
            upload.abort()

    def _open(self) -> Upload:
        if self._upload is None:
            raise ValueError("the sink was discarded")
        return self._upload


def _checked(media_type: str) -> str:
    """It goes into a header, where a line of its own would be another header."""
    if media_type.isascii() and media_type.isprintable():
        return media_type
    raise NonRetryableError(ErrorCode.INTERNAL, f"{media_type!r} is no media type")
