"""The storage itself."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Self

from azure.core.exceptions import HttpResponseError
from azure.storage.blob.aio import BlobServiceClient

from lucius_artifacts.errors import NotFound, Unavailable
from lucius_artifacts.objects.azure_blob.blocks import block_query
from lucius_artifacts.objects.azure_blob.copies import Copies
from lucius_artifacts.objects.azure_blob.faults import MANY_TRIES, faults, is_missing
from lucius_artifacts.objects.azure_blob.sending import Sending
from lucius_artifacts.objects.azure_blob.signing import Signatures, keys_of
from lucius_artifacts.objects.azure_blob.staging import Staging
from lucius_artifacts.objects.keys import check_part
from lucius_artifacts.ports.objects import SignedRequest
from lucius_azure.faults import code_of
from lucius_azure.storage import AsyncOpened, StorageAccount, open_blobs

_PATIENCE = timedelta(minutes=1)
_TRIES: dict[str, Any] = {"retry_total": 3, "initial_backoff": 1, "increment_base": 2}
_TIMES: dict[str, Any] = {"connection_timeout": 5.0, "read_timeout": 60.0}


def _utc_now() -> datetime:
    return datetime.now(UTC)


class AzureBlobObjects:
    """No signature says how long a part must be: whoever has all parts compares their sizes."""

    largest_part = 4000 * 1024**2
    most_parts = 50_000

    def __init__(
        self,
        account: AsyncOpened[BlobServiceClient],
        container: str,
        *,
        clock: Callable[[], datetime] = _utc_now,
        patience: timedelta = _PATIENCE,
    ) -> None:
        """`account` is closed with it. ValueError if nothing can be signed with what it has."""
        self._account = account
        self._container = account.client.get_container_client(container)
        self._signatures = Signatures(account.client, keys_of(account.client, clock))
        self._staging = Staging(self._container)
        self._copies = Copies(self._container, patience)

    @classmethod
    async def open(
        cls, account: StorageAccount, container: str, *, patience: timedelta = _PATIENCE
    ) -> Self:
        """Makes the container, once; who may not must find it there."""
        opened = open_blobs(account, **_TRIES, **_TIMES)
        try:
            objects = cls(opened, container, patience=patience)
            await objects._prepare()
        except BaseException:
            await opened.close()
            raise
        return objects

    async def begin(self, key: str) -> None:
        await self._staging.make(key)

    async def sign_part(
        self, key: str, number: int, length: int, expires_at: datetime
    ) -> SignedRequest:
        check_part(number, length, self.most_parts, self.largest_part)
        blob = self._staging.blob(key)
        query, until = await self._signatures.to_write(blob, expires_at)
        return SignedRequest("PUT", f"{blob.url}?{block_query(number)}&{query}", until)

    async def put_part(
        self, key: str, number: int, length: int, content: AsyncIterator[bytes]
    ) -> None:
        check_part(number, length, self.most_parts, self.largest_part)
        await self._staging.put(key, number, length, Sending(content, number, length))

    async def parts(self, key: str) -> dict[int, int]:
        """The object is asked for twice, since the place may become one after the first time."""
        for where in (self._copies, self._staging, self._copies):
            sizes = await where.sizes(key)
            if sizes is not None:
                return sizes
        return {}

    async def freeze(self, key: str, count: int) -> None:
        """Every step may be done again, by us after a crash or by another one meanwhile: the copy
        that is there first stays, and every later one finds it."""
        await self._copy(key, count)
        await self._staging.remove(key)

    async def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        async for chunk in self._copies.read(key, start, end):
            yield chunk

    async def sign_read(
        self, key: str, expires_at: datetime, media_type: str, file_name: str
    ) -> SignedRequest:
        blob = self._copies.blob(key)
        query, until = await self._signatures.to_read(blob, expires_at, media_type, file_name)
        return SignedRequest("GET", f"{blob.url}?{query}", until)

    async def delete(self, key: str) -> None:
        """The place first: no copy of it begins later."""
        await self._staging.remove(key)
        await self._copies.remove(key)

    async def check(self) -> None:
        """With a blob that is not there: not everybody may look at the container."""
        with faults():
            try:
                await self._copies.blob("check").get_blob_properties(retry_total=0)
            except HttpResponseError as error:
                if not is_missing(error):
                    raise

    async def close(self) -> None:
        await self._account.close()

    async def _copy(self, key: str, count: int) -> None:
        for _ in range(MANY_TRIES):
            if await self._copies.is_whole(key):
                return
            try:
                etag = await self._staging.commit(key, count)
            except NotFound:
                if await self._copies.is_whole(key):  # another one was faster
                    return
                raise
            if etag is not None:
                await self._copies.start(key, self._staging.blob(key), etag)
        raise Unavailable(f"others change the parts of {key} all the time")

    async def _prepare(self) -> None:
        with faults():
            try:
                await self._container.create_container()
            except HttpResponseError as error:
                if code_of(error) == "ContainerAlreadyExists":
                    return
                if error.status_code != HTTPStatus.FORBIDDEN:
                    raise
        await self.check()
