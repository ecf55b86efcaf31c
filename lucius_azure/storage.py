"""Clients of a storage account, by a connection string or by the identity of the process.

Azure's packages are loaded when a client is opened: who only names an account does without them.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from lucius_azure.identity import SharedCredential, blocking_credential, default_credential
from lucius_settings.secret import Secret

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential
    from azure.core.credentials_async import AsyncTokenCredential
    from azure.data.tables.aio import TableServiceClient
    from azure.storage.blob import BlobServiceClient
    from azure.storage.blob.aio import BlobServiceClient as AsyncBlobServiceClient

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

    def __init__(self, client: ClientT, credential: "TokenCredential | None") -> None:
        self.client = client
        self._credential = credential

    def close(self) -> None:
        try:
            self.client.close()
        finally:
            if isinstance(self._credential, _Closing):
                self._credential.close()


class AsyncOpened(Generic[AsyncClientT]):
    """A client with the credential that it needs. Nothing is connected yet."""

    def __init__(self, client: AsyncClientT, credential: "AsyncTokenCredential | None") -> None:
        self.client = client
        self._credential = credential

    async def close(self) -> None:
        try:
            await self.client.close()
        finally:
            if self._credential is not None:
                await self._credential.close()


def open_tables(account: StorageAccount, **options: Any) -> "AsyncOpened[TableServiceClient]":
    """`ValueError` for a connection string that cannot be read."""
    from azure.data.tables.aio import TableServiceClient

    client, credential = _client(account, TableServiceClient, _shared_credential, options)
    return AsyncOpened(client, credential)


def open_blobs(account: StorageAccount, **options: Any) -> "AsyncOpened[AsyncBlobServiceClient]":
    """`ValueError` for a connection string that cannot be read."""
    from azure.storage.blob.aio import BlobServiceClient

    options = {"api_version": BLOB_API_VERSION, **options}
    client, credential = _client(account, BlobServiceClient, _shared_credential, options)
    return AsyncOpened(client, credential)


def open_blocking_blobs(account: StorageAccount, **options: Any) -> "Opened[BlobServiceClient]":
    """`ValueError` for a connection string that cannot be read."""
    from azure.storage.blob import BlobServiceClient

    options = {"api_version": BLOB_API_VERSION, **options}
    client, credential = _client(account, BlobServiceClient, blocking_credential, options)
    return Opened(client, credential)


def _shared_credential() -> SharedCredential:
    return SharedCredential(default_credential())


def _client(
    account: StorageAccount, kind: Any, credential_of: Any, options: dict[str, Any]
) -> tuple[Any, Any]:
    if account.connection is None:
        credential = credential_of()
        return kind(account.endpoint, credential=credential, **options), credential
    try:
        return kind.from_connection_string(account.connection.reveal(), **options), None
    except ValueError:
        # What the client says of it may repeat a part.
        raise ValueError(
            f"the connection string cannot be read by {kind.__name__}: it must name the account or"
            " the endpoint of this service, and hold a key or a shared access signature"
        ) from None
