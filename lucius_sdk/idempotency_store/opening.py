"""A store from its address."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from lucius_sdk.idempotency_store.azure_address import blobs_of, table_of
from lucius_sdk.idempotency_store.errors import StoreUnusable
from lucius_sdk.idempotency_store.memory import MemoryStore
from lucius_sdk.idempotency_store.port import DedupStore
from lucius_sdk.idempotency_store.records import RETENTION

if TYPE_CHECKING:
    from lucius_azure.storage import StorageAccount

_ALLOWED = (
    "memory: (for tests), sqlite:///absolute/path, sqlite:relative/path, "
    "redis://host:6379/0, rediss://host:6380/0, unix:///path/to/redis.sock, "
    "aztable:table or azblob:container/folder"
)


def open_store(
    url: str,
    *,
    retention: timedelta = RETENTION,
    tables: "StorageAccount | None" = None,
    blobs: "StorageAccount | None" = None,
) -> DedupStore:
    """Nothing is read or connected before the first verb. `tables` and `blobs` are the accounts of
    the stores on Azure. `ValueError` for an address that is none of these, or one without its
    account; `StoreUnusable` where a package is missing."""
    scheme, _, rest = url.partition(":")
    if url == "memory:":
        return MemoryStore()
    if scheme == "sqlite":
        return _sqlite(rest, retention)
    if scheme in ("redis", "rediss", "unix") and rest.startswith("//"):
        return _redis(url, retention)
    if scheme == "aztable":
        return _table(rest, retention, tables)
    if scheme == "azblob":
        return _blob(rest, retention, blobs)
    # The address may hold a password in a place that nobody foresaw, so it is not repeated.
    raise ValueError(f"the address of a dedup store is one of {_ALLOWED}")


def sqlite_path(url: str) -> Path | None:
    """The file of a store, where its address names one."""
    scheme, _, rest = url.partition(":")
    return Path(_path(rest)) if scheme == "sqlite" else None


def _path(rest: str) -> str:
    """Some tools write four slashes for an absolute path; a path that begins with two is none."""
    return f"/{rest.lstrip('/')}" if rest.startswith("///") else rest


def _sqlite(rest: str, retention: timedelta) -> DedupStore:
    from lucius_sdk.idempotency_store.sqlite import SqliteStore

    path = _path(rest)
    if path in ("", ":memory:") or path.startswith("//") or path.endswith("/"):
        raise ValueError(f"sqlite: wants the path of a file: {_ALLOWED}")
    return SqliteStore(Path(path), retention)


def _redis(url: str, retention: timedelta) -> DedupStore:
    try:
        from lucius_sdk.idempotency_store.redis import RedisStore
    except ModuleNotFoundError as error:
        raise StoreUnusable("a Redis store needs: pip install 'lucius-sdk[redis]'") from error
    return RedisStore(url, retention)


def _table(address: str, retention: timedelta, account: "StorageAccount | None") -> DedupStore:
    table = table_of(address)
    if account is None:
        raise ValueError(
            "aztable: is a table of a storage account, and none is set: set LUCIUS_TABLE_CONNECTION"
            " or LUCIUS_TABLE_ENDPOINT"
        )
    try:
        from lucius_sdk.idempotency_store.azure_table import AzureTableStore

        return AzureTableStore(account, table, retention)
    except ModuleNotFoundError as error:
        raise _needs_azure("a table") from error


def _blob(address: str, retention: timedelta, account: "StorageAccount | None") -> DedupStore:
    container, folder = blobs_of(address)
    if account is None:
        raise ValueError(
            "azblob: is a container of a storage account, and none is set: set"
            " LUCIUS_BLOB_CONNECTION or LUCIUS_BLOB_ENDPOINT"
        )
    try:
        from lucius_sdk.idempotency_store.azure_blob import AzureBlobStore

        return AzureBlobStore(account, container, folder, retention)
    except ModuleNotFoundError as error:
        raise _needs_azure("blobs") from error


def _needs_azure(what: str) -> StoreUnusable:
    return StoreUnusable(f"a store in {what} needs: pip install 'lucius-sdk[azure]'")
