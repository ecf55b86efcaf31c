"""The store on Azure Blob Storage: shared by the processes of many machines."""

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from azure.core import MatchConditions
from azure.storage.blob import BlobProperties
from azure.storage.blob.aio import BlobClient

from lucius_azure.storage import StorageAccount, open_blobs
from lucius_sdk.idempotency_store.azure_blob_names import (
    CHECK,
    LAPSED,
    Entry,
    StoredBlob,
    Version,
    bucket_prefix,
    content_of,
    new_token,
    record_blob,
)
from lucius_sdk.idempotency_store.azure_calls import (
    PATIENCE,
    Calls,
    Chance,
    Refused,
    Verb,
    together,
)
from lucius_sdk.idempotency_store.azure_layout import (
    Place,
    conflict,
    lapse_of,
    place_of,
)
from lucius_sdk.idempotency_store.errors import RecordUnreadable, StoreError
from lucius_sdk.idempotency_store.port import Stored, system_now
from lucius_sdk.idempotency_store.records import RETENTION, Record, StepKey

_PAGE = 1000
_PURGED_AT_ONCE = 16
_ALWAYS = {"overwrite": True}

Condition = Mapping[str, Any]


class AzureBlobStore:
    """A record is a blob. A result that waits to be reported has an entry beside it, an empty blob
    whose name begins with the moment at which it lapses: made before the record is written, and
    removed when the record is another. So there may be an entry too many, never one too few, and
    whoever reads the entries looks at their records.

    How old a record is, is by the clock of the service. What nobody has touched for `retention` is
    purged, a bucket at a time, as new ones come.
    """

    def __init__(
        self,
        account: StorageAccount,
        container: str,
        folder: str = "",
        retention: timedelta = RETENTION,
        *,
        now: Callable[[], datetime] = system_now,
        patience: timedelta = PATIENCE,
        chance: Chance = random.random,
    ) -> None:
        opened = open_blobs(account, retry_total=0)
        self._container = opened.client.get_container_client(container)
        self._folder = f"{folder}/" if folder else ""
        self._calls = Calls(opened, "Azure Blobs", patience, chance)
        self._retention = retention
        self._now = now
        self._is_proved = False

    async def read(self, key: StepKey) -> Stored | None:
        async with self._calls.verb() as verb:
            found = await self._stored(verb, place_of(key))
        if found is None:
            return None
        record = found.record
        return Stored(record, str(Version(found.etag, lapse_of(record), found.token)))

    async def write(self, key: StepKey, record: Record, expected: str | None) -> str:
        place = place_of(key)
        before = None if expected is None else Version(*expected.split("|"))
        token, lapse = new_token(before), lapse_of(record)
        async with self._calls.verb() as verb:
            if lapse:
                await self._put(verb, Entry(lapse, place.name, token).blob, b"", _ALWAYS)
            content = content_of(key, token, record)
            try:
                etag = await self._put(verb, record_blob(place), content, _condition(before))
            except Refused:
                if (found := await self._own(verb, place, token)) is None:
                    raise conflict(key) from None
                etag = found
            if before is not None and before.lapse:
                await self._remove(verb, Entry(before.lapse, place.name, before.token).blob)
        self._calls.written(partial(self._purge, place.bucket))
        return str(Version(etag, lapse, token))

    async def lapsed_results(self, before: datetime, limit: int) -> list[StepKey]:
        """Looks at the record of every entry that is due, and removes the entries that are void."""
        found: list[StepKey] = []
        page: str | None = ""
        async with self._calls.verb() as verb:
            while page is not None and len(found) < limit:
                blobs, page = await self._page(verb, LAPSED, page, limit)
                named = [Entry.named(self._name_of(blob)) for blob in blobs]
                entries = [entry for entry in named if entry is not None]
                due = [entry for entry in entries if entry.is_before(before)]
                seen = await together(self._step(verb, entry) for entry in due)
                found += [step for step in seen if step is not None]
                if len(due) < len(entries):
                    break
        return found[:limit]

    async def check(self) -> None:
        """At first with a deletion and a write, so that who may only read is told at once."""
        async with self._calls.verb() as verb:
            if self._is_proved and await self._is_there(verb, CHECK):
                return
            with suppress(Refused):
                await verb.ask(self._blob(CHECK).delete_blob)
            await self._put(verb, CHECK, b"", _ALWAYS)
            self._is_proved = True

    async def close(self) -> None:
        await self._calls.close()

    async def _stored(self, verb: Verb, place: Place) -> StoredBlob | None:
        blob = self._blob(record_blob(place))

        async def download() -> tuple[bytes, str]:
            stream = await blob.download_blob()
            return await stream.readall(), _bare(stream.properties.etag)

        try:
            return StoredBlob.read(*await verb.ask(download))
        except Refused:
            return None

    async def _own(self, verb: Verb, place: Place, token: str) -> str | None:
        """The ETag of what is stored, if that is our write."""
        try:
            found = await self._stored(verb, place)
        except RecordUnreadable:
            return None
        return found.etag if found is not None and found.token == token else None

    async def _is_there(self, verb: Verb, name: str) -> bool:
        try:
            await verb.ask(self._blob(name).get_blob_properties)
        except Refused:
            return False
        return True

    async def _put(self, verb: Verb, blob: str, content: bytes, condition: Condition) -> str:
        """The new ETag. The container is made if it is missing, unless the blob should be there."""
        put = partial(self._blob(blob).upload_blob, content, **condition)
        try:
            answer = await verb.ask(put)
        except Refused as refused:
            if not refused.is_absent or "etag" in condition:
                raise
            name = self._container.container_name
            await verb.make(self._container.create_container, f"the container {name}")
            answer = await verb.ask(put)
        return _bare(answer["etag"])

    async def _remove(self, verb: Verb, name: str, condition: Condition | None = None) -> None:
        """Where that fails, somebody else comes by and does it."""
        with suppress(StoreError, Refused):
            await verb.ask(partial(self._blob(name).delete_blob, **condition or {}))

    async def _page(
        self, verb: Verb, start: str, page: str, size: int
    ) -> tuple[list[BlobProperties], str | None]:
        """Blobs whose names begin so, in order, and where the next page begins."""
        prefix, most = f"{self._folder}{start}", min(size, _PAGE)

        async def look() -> tuple[list[BlobProperties], str | None]:
            listed = self._container.list_blobs(name_starts_with=prefix, results_per_page=most)
            pages: Any = listed.by_page(page or None)
            async for found in pages:
                return [blob async for blob in found], pages.continuation_token or None
            return [], None

        try:
            return await verb.ask(look)
        except Refused:
            return [], None  # there is no container yet

    async def _step(self, verb: Verb, entry: Entry) -> StepKey | None:
        """The step whose result the entry names, if that is what is stored."""
        try:
            stored = await self._stored(verb, entry.place)
        except RecordUnreadable:  # who reads the step is told; it holds up no other
            return None
        if stored is not None and stored.token == entry.token:
            return stored.key
        is_old = entry.is_before(self._now() - self._retention)
        if is_old or not entry.can_come_true(stored.etag if stored else None):
            await self._remove(verb, entry.blob)
        return None

    def _blob(self, name: str) -> BlobClient:
        return self._container.get_blob_client(f"{self._folder}{name}")

    def _name_of(self, blob: BlobProperties) -> str:
        return str(blob.name).removeprefix(self._folder)

    async def _purge(self, bucket: str) -> None:
        before = self._now() - self._retention
        page: str | None = ""
        with suppress(StoreError):  # nobody waits for it; a later write tries again
            while page is not None:
                async with self._calls.verb() as verb:
                    blobs, page = await self._page(verb, bucket_prefix(bucket), page, _PAGE)
                old = [blob for blob in blobs if blob.last_modified < before]
                for start in range(0, len(old), _PURGED_AT_ONCE):
                    await self._forget(old[start : start + _PURGED_AT_ONCE])

    async def _forget(self, blobs: list[BlobProperties]) -> None:
        """Unless they were written meanwhile."""
        async with self._calls.verb() as verb:
            await together(
                self._remove(verb, self._name_of(blob), _if_it_is(_bare(blob.etag)))
                for blob in blobs
            )


def _condition(before: Version | None) -> Condition:
    return {"overwrite": False} if before is None else _ALWAYS | _if_it_is(before.etag)


def _if_it_is(etag: str) -> dict[str, Any]:
    return {"etag": f'"{etag}"', "match_condition": MatchConditions.IfNotModified}


def _bare(etag: str) -> str:
    """The service writes it with quotes in headers, and without them in lists."""
    return etag.strip('"')
