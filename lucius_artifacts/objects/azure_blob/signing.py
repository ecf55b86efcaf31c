"""Shared access signatures for one blob: with the account's key, or with a key that the service has
lent to the identity of this process."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from azure.storage.blob import UserDelegationKey, generate_blob_sas
from azure.storage.blob.aio import BlobClient, BlobServiceClient

from lucius_artifacts.objects.azure_blob.faults import faults
from lucius_artifacts.objects.disposition import attachment

_UNTYPED = "application/octet-stream"
_CLOCKS_DIFFER_BY = timedelta(minutes=15)
_LENT_FOR = timedelta(days=1)
_LONGEST_LOAN = timedelta(days=6)  # the service lends for a week


class Signed(NamedTuple):
    query: str
    until: datetime


class Keys(Protocol):
    async def at(self, until: datetime) -> tuple[dict[str, Any], datetime]:
        """What signs an address that is good until then, or until an earlier time."""
        ...


class AccountKey:
    def __init__(self, key: str) -> None:
        self._key = key

    async def at(self, until: datetime) -> tuple[dict[str, Any], datetime]:
        return {"account_key": self._key}, until


class LentKeys:
    """One at a time, which is asked for again when an address is to be good for longer."""

    def __init__(self, client: BlobServiceClient, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._clock = clock
        self._one_by_one = asyncio.Lock()
        self._key: UserDelegationKey | None = None
        self._until: datetime | None = None

    async def at(self, until: datetime) -> tuple[dict[str, Any], datetime]:
        until = min(until, self._now() + _LONGEST_LOAN)
        async with self._one_by_one:
            if self._until is None or self._until < until:
                await self._borrow(max(until, self._now() + _LENT_FOR))
        return {"user_delegation_key": self._key}, until

    async def _borrow(self, until: datetime) -> None:
        with faults():
            start = self._now() - _CLOCKS_DIFFER_BY
            self._key = await self._client.get_user_delegation_key(start, until)
        self._until = until

    def _now(self) -> datetime:
        return self._clock().replace(microsecond=0)


class Signatures:
    """For blobs of one account."""

    def __init__(self, client: BlobServiceClient, keys: Keys) -> None:
        if client.account_name is None:
            raise ValueError("the address of the account does not show its name, which is signed")
        self._account = client.account_name
        self._keys = keys
        self._protocol = "https" if client.url.startswith("https:") else "https,http"

    async def to_write(self, blob: BlobClient, until: datetime) -> Signed:
        return await self._signed(blob, until, permission="w")

    async def to_read(
        self, blob: BlobClient, until: datetime, media_type: str, file_name: str
    ) -> Signed:
        """With what the service is to say of it, whatever it knows itself."""
        is_plain = media_type.isascii() and media_type.isprintable()
        return await self._signed(
            blob,
            until,
            permission="r",
            content_type=media_type if is_plain else _UNTYPED,
            content_disposition=attachment(file_name),
        )

    async def _signed(self, blob: BlobClient, until: datetime, **options: Any) -> Signed:
        key, until = await self._keys.at(until.replace(microsecond=0))
        query = generate_blob_sas(
            self._account,
            blob.container_name,
            blob.blob_name,
            expiry=until,
            protocol=self._protocol,
            **key,
            **options,
        )
        return Signed(query, until)


def keys_of(client: BlobServiceClient, clock: Callable[[], datetime]) -> Keys:
    """ValueError for an account that was opened with a signature: it cannot make another one."""
    credential: Any = client.credential
    key = getattr(credential, "account_key", None)
    if key is not None:
        return AccountKey(key)
    if hasattr(credential, "get_token"):
        return LentKeys(client, clock)
    raise ValueError(
        "objects need an account's key or an identity: addresses cannot be signed with a signature"
    )
