"""Publishing to S3: the fence is in the metadata of the object, and one request commits both.

The condition of that request (`If-Match`, `If-None-Match`) is the ETag of what was looked at, or
that there is nothing. Who was overtaken looks again: a higher fence, or one of another tenant, ends
it, any other is replaced. So whatever the order, the highest that publishes stays, and nobody waits
for anybody. A commit whose answer was lost is met again as an equal fence, and made once more.

Parts of an upload belong to it alone, so those of runs that publish at once never meet. S3 answers
409 where two commits meet, after which the parts may be gone: then they are sent again.
"""

from collections.abc import Callable, Mapping
from shutil import copyfileobj
from typing import Any, NamedTuple, Self

from botocore.exceptions import ClientError

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import RetryableError
from lucius_sdk.workspace_io.fence import Fence, check_may_replace, unreadable
from lucius_sdk.workspace_io.port import Source
from lucius_sdk.workspace_io.s3.faults import (
    NOT_FOUND,
    code_of,
    faults,
    status_of,
    unavailable,
    writing,
)
from lucius_sdk.workspace_io.s3.uploading import Upload
from lucius_sdk.workspace_io.streams import CHUNK
from lucius_sdk.workspace_io.uris import shown

FENCE = "lucius-fence"
_TRIES = 32
_UPLOAD_LOST = frozenset({"ConditionalRequestConflict", "NoSuchUpload"})
_OVERTAKEN = _UPLOAD_LOST | {"NoSuchKey", "PreconditionFailed"}


class _Stored(NamedTuple):
    """What stands at the target."""

    etag: str
    fence: Fence | None

    @classmethod
    def read(cls, found: Mapping[str, Any], uri: str) -> Self:
        metadata = {name.lower(): value for name, value in found["Metadata"].items()}
        text = metadata.get(FENCE)
        try:
            fence = None if text is None else Fence.from_header(text)
        except ValueError as error:
            raise unreadable(f"in the metadata of {shown(uri)}") from error
        return cls(found["ETag"], fence)


class Publication:
    """One run's try to publish at one place."""

    def __init__(
        self,
        client: Any,
        named: Mapping[str, str],
        uri: str,
        fence: Fence,
        begin: Callable[[dict[str, str], Callable[[], None]], Upload],
    ) -> None:
        self._client = client
        self._named = named
        self._uri = uri
        self._fence = fence
        self._begin = begin
        self._stored: _Stored | None = None

    def run(self, source: Source) -> None:
        upload = self._uploaded(source)
        try:
            for _ in range(_TRIES):
                overtaken = self._commit(upload)
                if overtaken is None:
                    return
                self._look()
                if code_of(overtaken) in _UPLOAD_LOST:
                    upload.abort()
                    upload = self._uploaded(source)
        finally:
            upload.abort()
        raise RetryableError(
            ErrorCode.STORAGE_UNAVAILABLE, f"others publish at {shown(self._uri)} all the time"
        )

    def _uploaded(self, source: Source) -> Upload:
        """An object that is large enough for parts is worth a look whether it has a chance."""
        upload = self._begin({FENCE: self._fence.to_header()}, self._look)
        try:
            with source() as stream:
                copyfileobj(stream, upload, CHUNK)
        except BaseException:
            upload.abort()
            raise
        return upload

    def _commit(self, upload: Upload) -> ClientError | None:
        """The answer, if that is that something else stands there than what was looked at."""
        with faults(writing, self._uri):
            try:
                upload.commit(**self._condition())
            except ClientError as error:
                if code_of(error) not in _OVERTAKEN:
                    raise
                return error
        return None

    def _condition(self) -> dict[str, str]:
        return {"IfNoneMatch": "*"} if self._stored is None else {"IfMatch": self._stored.etag}

    def _look(self) -> None:
        """OUTPUT_CONFLICT if a higher fence, or one of another tenant, has published."""
        with faults(unavailable, self._uri):
            try:
                found = self._client.head_object(**self._named)
            except ClientError as error:
                if status_of(error) != NOT_FOUND:
                    raise
                self._stored = None
                return
        self._stored = _Stored.read(found, self._uri)
        if self._stored.fence is not None:
            check_may_replace(self._fence, self._stored.fence)
