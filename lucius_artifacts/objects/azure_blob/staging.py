"""Places for parts. Whoever has an address of a part may spoil its place: put another blob there,
or take a lease. That may end an upload, and is never in the way of removing it."""

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.blob import ContentSettings
from azure.storage.blob.aio import BlobClient, BlobLeaseClient, ContainerClient

from lucius_artifacts.errors import Gone, NotFound, Unavailable
from lucius_artifacts.objects.azure_blob.blocks import block_id, block_list, sizes_of
from lucius_artifacts.objects.azure_blob.faults import (
    MANY_TRIES,
    faults,
    is_leased,
    is_missing,
    is_overtaken,
)
from lucius_artifacts.objects.azure_blob.sending import Sending
from lucius_artifacts.objects.keys import checked_key
from lucius_azure.faults import code_of

_PLAIN = ContentSettings(content_type="application/octet-stream")
_NOT_THESE_BLOCKS = frozenset({"InvalidBlockList", "InvalidBlobOrBlock", "InvalidBlobType"})


class Staging:
    def __init__(self, container: ContainerClient) -> None:
        self._container = container

    def blob(self, key: str) -> BlobClient:
        return self._container.get_blob_client(f"staging/{checked_key(key)}")

    async def make(self, key: str) -> None:
        """One that is there stays, with the blocks that were put to it."""
        with faults():
            try:
                await self.blob(key).upload_blob(b"", overwrite=False)
            except ResourceExistsError:
                return

    async def etag(self, key: str) -> str | None:
        """None if there is no place. Putting blocks does not change it."""
        with faults():
            try:
                found = await self.blob(key).get_blob_properties()
            except HttpResponseError as error:
                if is_missing(error):
                    return None
                raise
        return str(found.etag)

    async def put(self, key: str, number: int, length: int, content: Sending) -> None:
        """The service takes blocks also where no place is: nobody will ever see those."""
        if await self.etag(key) is None:
            raise Gone(f"the place for parts of {key}")
        with faults():
            try:
                await self.blob(key).stage_block(
                    block_id(number),
                    content,  # type: ignore[arg-type]  # as bytes arrive; its hints know less
                    length=length,
                    retry_total=0,
                )
            except Exception:
                if content.failure is not None:
                    raise content.failure from None
                raise

    async def sizes(self, key: str) -> dict[int, int] | None:
        """Of the parts. None if there is no place."""
        if await self.etag(key) is None:
            return None
        with faults():
            try:
                committed, waiting = await self.blob(key).get_block_list("all")
            except HttpResponseError as error:
                if is_missing(error):
                    return None
                raise
        return sizes_of([*committed, *waiting])

    async def commit(self, key: str, count: int) -> str | None:
        """Make one blob of the parts, and give its ETag. None: others were there meanwhile, look
        again. `NotFound` if there is no place, or a part is missing."""
        seen = await self.etag(key)
        if seen is None:
            raise NotFound(f"place for parts of {key}")
        with faults():
            try:
                done = await self.blob(key).commit_block_list(
                    block_list(count),
                    content_settings=_PLAIN,
                    etag=seen,
                    match_condition=MatchConditions.IfNotModified,
                )
            except HttpResponseError as error:
                if code_of(error) in _NOT_THESE_BLOCKS:
                    raise NotFound(f"part of {key} among those from 1 to {count}") from None
                if is_leased(error):
                    await self._break_lease(key)
                elif not is_overtaken(error) and not is_missing(error):
                    raise
                return None
        return str(done["etag"])

    async def remove(self, key: str) -> None:
        """Also blocks that were never committed: those go when others are committed."""
        for _ in range(MANY_TRIES):
            with faults():
                try:
                    await self._remove(key)
                except HttpResponseError as error:
                    if not is_leased(error):
                        raise
                    await self._break_lease(key)
                    continue
            return
        raise Unavailable(f"somebody holds the place for parts of {key}")

    async def _remove(self, key: str) -> None:
        blob = self.blob(key)
        try:
            await blob.commit_block_list([])
        except HttpResponseError as error:
            if code_of(error) not in _NOT_THESE_BLOCKS:
                raise
        try:
            await blob.delete_blob(delete_snapshots="include")
        except HttpResponseError as error:
            if not is_missing(error):
                raise

    async def _break_lease(self, key: str) -> None:
        try:
            await BlobLeaseClient(self.blob(key)).break_lease(lease_break_period=0)
        except HttpResponseError as error:
            if not is_missing(error) and code_of(error) != "LeaseNotPresentWithLeaseOperation":
                raise
