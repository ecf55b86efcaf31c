"""A storage of these tests from words, in this process or in another one."""

from pathlib import Path
from typing import TYPE_CHECKING

from lucius_sdk.workspace_io import LocalStorage, Storage

if TYPE_CHECKING:
    from lucius_sdk.workspace_io import BlobStorage
    from lucius_sdk.workspace_io.blob.account import Patience

BLOCK = 256 * 1024
"""Of the blobs in these tests, so that a megabyte is several of them."""


def reopened(root: str, connection: str) -> Storage:
    """On blobs if there is a connection string; what they need is imported for them alone."""
    if connection:
        return blob_storage(connection, root)
    return LocalStorage(Path(root.removeprefix("file://")))


def blob_storage(
    connection: str,
    root: str,
    readable: tuple[str, ...] = (),
    patience: "Patience | None" = None,
) -> "BlobStorage":
    from lucius_azure.storage import StorageAccount
    from lucius_sdk.workspace_io.blob.account import open_account
    from lucius_sdk.workspace_io.blob.storage import BlobStorage
    from lucius_settings.secret import Secret

    account = open_account(StorageAccount(Secret(connection)), patience)
    return BlobStorage(account, root, readable, block=BLOCK, window=BLOCK)
