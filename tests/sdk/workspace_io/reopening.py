"""A storage of these tests from words, in this process or in another one."""

from pathlib import Path
from typing import TYPE_CHECKING

from lucius_sdk.workspace_io import LocalStorage, Storage

if TYPE_CHECKING:
    from lucius_sdk.workspace_io import BlobStorage, S3Storage
    from lucius_sdk.workspace_io.blob.account import Patience

BLOCK = 256 * 1024
"""Of the blobs in these tests, so that a megabyte is several of them."""


def reopened(root: str, connection: str) -> Storage:
    """On blobs or S3 if there is a connection string, or an endpoint; what they need is imported
    for them alone."""
    if root.startswith("s3:"):
        return s3_storage(connection, root)
    if connection:
        return blob_storage(connection, root)
    return LocalStorage(Path(root.removeprefix("file://")))


def s3_storage(
    endpoint: str,
    root: str | None,
    readable: tuple[str, ...] = (),
    writable: tuple[str, ...] = (),
) -> "S3Storage":
    from lucius_sdk.workspace_io import S3Options, S3Storage

    return S3Storage(root, readable, writable, S3Options(endpoint, part=BLOCK, window=BLOCK))


def blob_storage(
    connection: str,
    root: str,
    readable: tuple[str, ...] = (),
    writable: tuple[str, ...] = (),
    patience: "Patience | None" = None,
) -> "BlobStorage":
    from lucius_azure.storage import StorageAccount
    from lucius_sdk.workspace_io.blob.account import open_account
    from lucius_sdk.workspace_io.blob.storage import BlobStorage
    from lucius_settings.secret import Secret

    account = open_account(StorageAccount(Secret(connection)), patience)
    return BlobStorage(account, root, readable, writable, block=BLOCK, window=BLOCK)
