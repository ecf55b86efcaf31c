"""Clients of a storage account, by a connection string or by the identity of the process."""

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from azure.core.credentials import TokenCredential
from azure.core.credentials_async import AsyncTokenCredential
from azure.data.tables.aio import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.blob.aio import BlobServiceClient as AsyncBlobServiceClient

from lucius_azure.identity import blocking_credential, default_credential
from lucius_settings.secret import Secret

BLOB_API_VERSION = "2025-11-05"
"""Older than the client's own, so that emulators know it too; nothing later is used."""


@dataclass(frozen=True, slots=True)
class StorageAccount:
    """One of the two is set: a connection string, which holds a key or a shared access signature,
    or the address of the service, for which the identity of the process counts."""

    connection: Secret | None = None
    endpoint: str | None = None

    def __post_init__(self) -> None:
        if (self.connection is None) == (self.endpoint is None):
            raise ValueError("a storage account has either a connection string or an endpoint")


@runtime_checkable
class _Closing(Protocol):
    def close(self) -> None: ...


class _AsyncClosing(Protocol):
    async def close(self) -> None: ...


ClientT = TypeVar("ClientT", bound=_Closing)
AsyncClientT = TypeVar("AsyncClientT", bound=_AsyncClosing)


class Opened(Generic[ClientT]):
    """A client that blocks, with the credential that it needs. Nothing is connected yet."""

    def __init__(self, client: ClientT, credential: TokenCredential | None) -> None:
        self.client = client
        self._credential = credential

    def close(self) -> None:
        self.client.close()
        if isinstance(self._credential, _Closing):
            self._credential.close()


class AsyncOpened(Generic[AsyncClientT]):
    """A client with the credential that it needs. Nothing is connected yet."""

    def __init__(self, client: AsyncClientT, credential: AsyncTokenCredential | None) -> None:
        self.client = client
        self._credential = credential

    async def close(self) -> None:
        await self.client.close()
        if self._credential is not None:
            await self._credential.close()


def open_tables(account: StorageAccount, **options: Any) -> AsyncOpened[TableServiceClient]:
    """`ValueError` for a connection string that cannot be read."""
    return _opened(account, TableServiceClient, options)


def open_blobs(account: StorageAccount, **options: Any) -> AsyncOpened[AsyncBlobServiceClient]:
    """`ValueError` for a connection string that cannot be read."""
    return _opened(account, AsyncBlobServiceClient, {"api_version": BLOB_API_VERSION, **options})


def open_blocking_blobs(account: StorageAccount, **options: Any) -> Opened[BlobServiceClient]:
    """`ValueError` for a connection string that cannot be read."""
    options = {"api_version": BLOB_API_VERSION, **options}
    if account.connection is not None:
        text = account.connection.reveal()
        return Opened(BlobServiceClient.from_connection_string(text, **options), None)
    assert account.endpoint is not None, "one of the two is set"
    credential = blocking_credential()
    return Opened(BlobServiceClient(account.endpoint, credential, **options), credential)


def _opened(account: StorageAccount, kind: Any, options: dict[str, Any]) -> AsyncOpened[Any]:
    if account.connection is not None:
        return AsyncOpened(
            kind.from_connection_string(account.connection.reveal(), **options), None
        )
    credential = default_credential()
    return AsyncOpened(kind(account.endpoint, credential=credential, **options), credential)
