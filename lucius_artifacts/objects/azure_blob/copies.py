"""Frozen objects: copies of places, which nobody outside has ever had an address to write to."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobProperties
from azure.storage.blob.aio import BlobClient, ContainerClient

from lucius_artifacts.errors import NotFound, Unavailable
from lucius_artifacts.objects.azure_blob.blocks import sizes_of
from lucius_artifacts.objects.azure_blob.faults import MANY_TRIES, faults, is_missing, is_overtaken
from lucius_artifacts.objects.keys import checked_key
from lucius_artifacts.ports.objects import CHUNK
from lucius_azure.faults import code_of

_ASKED_AGAIN_AFTER = 0.25  # seconds
_UNDER_WAY = "pending"
_CAME_TO_NOTHING = frozenset({"failed", "aborted"})


class Copies:
    """`patience` is how long a copy is waited for: the service promises no time."""

    def __init__(self, container: ContainerClient, patience: timedelta) -> None:
        self._container = container
        self._patience = patience.total_seconds()

    def blob(self, key: str) -> BlobClient:
        return self._container.get_blob_client(f"objects/{checked_key(key)}")

    async def found(self, key: str) -> BlobProperties | None:
        """None unless it is whole."""
        found = await self._properties(key)
        return None if found is None or _status(found) is not None else found

    async def is_whole(self, key: str) -> bool:
        """Waits for a copy that is under way. One that came to nothing is removed."""
        found = await self._settled(key)
        if found is not None and _status(found) in _CAME_TO_NOTHING:
            await self.remove(key)
            return False
        return found is not None

    async def start(self, key: str, place: BlobClient, etag: str) -> None:
        """Copy the place as it was with this ETag, unless there is a copy. Whoever was overtaken
        finds out when it looks."""
        with faults():
            try:
                await self.blob(key).start_copy_from_url(
                    place.url,
                    source_etag=etag,
                    source_match_condition=MatchConditions.IfNotModified,
                    match_condition=MatchConditions.IfMissing,
                )
            except HttpResponseError as error:
                if not is_overtaken(error) and not is_missing(error):
                    raise

    async def sizes(self, key: str) -> dict[int, int] | None:
        """Of the parts; None if there is no object."""
        if await self.found(key) is None:
            return None
        with faults():
            try:
                committed, _ = await self.blob(key).get_block_list("committed")
            except HttpResponseError as error:
                if is_missing(error):
                    return None
                raise
        return sizes_of(committed)

    async def read(self, key: str, start: int, end: int | None) -> AsyncIterator[bytes]:
        """One request for each chunk, all of them for the same state of the blob."""
        found = await self.found(key)
        if found is None:
            raise NotFound(f"object {key}")
        end = found.size if end is None else min(end, found.size)
        for begin in range(start, end, CHUNK):
            yield await self._range(key, begin, min(CHUNK, end - begin), str(found.etag))

    async def remove(self, key: str) -> None:
        for _ in range(MANY_TRIES):
            found = await self._properties(key)
            if found is None:
                return
            with faults():
                await self._remove(key, found)
        raise Unavailable(f"object {key} cannot be removed while it is copied")

    async def _remove(self, key: str, found: BlobProperties) -> None:
        """A copy that is under way is stopped before."""
        blob = self.blob(key)
        try:
            if _status(found) == _UNDER_WAY:
                await blob.abort_copy(found.copy.id or "")
            await blob.delete_blob(delete_snapshots="include")
        except HttpResponseError as error:
            has_ended = code_of(error) in {"NoPendingCopyOperation", "PendingCopyOperation"}
            if not has_ended and not is_missing(error):
                raise

    async def _settled(self, key: str) -> BlobProperties | None:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience
        while True:
            found = await self._properties(key)
            if found is None or _status(found) != _UNDER_WAY:
                return found
            if loop.time() >= until:
                raise Unavailable(f"object {key} is still being copied: ask again")
            await asyncio.sleep(_ASKED_AGAIN_AFTER)

    async def _properties(self, key: str) -> BlobProperties | None:
        with faults():
            try:
                return await self.blob(key).get_blob_properties()
            except HttpResponseError as error:
                if is_missing(error):
                    return None
                raise

    async def _range(self, key: str, start: int, length: int, etag: str) -> bytes:
        with faults():
            try:
                stream = await self.blob(key).download_blob(
                    start, length, etag=etag, match_condition=MatchConditions.IfNotModified
                )
                return await stream.readall()
            except HttpResponseError as error:
                if is_missing(error) or is_overtaken(error):
                    raise NotFound(f"object {key}") from None
                raise


def _status(found: BlobProperties) -> str | None:
    """Of the copy; None if there is nothing to say about it any more."""
    status = found.copy.status
    return None if status in {None, "success"} else str(status)
