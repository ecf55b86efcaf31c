"""The storages that the settings name."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os.path import abspath
from pathlib import Path
from typing import TYPE_CHECKING

from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io.local import LocalStorage
from lucius_sdk.workspace_io.port import Catalogues, Reader
from lucius_sdk.workspace_io.storages import Storages
from lucius_sdk.workspace_io.uris import file_path

if TYPE_CHECKING:
    from azure.storage.blob import BlobServiceClient

    from lucius_azure.storage import Opened, StorageAccount
    from lucius_sdk.workspace_io.blob.storage import BlobReader, BlobStorage
    from lucius_settings.secret import Secret


def open_storages(
    workspace_root: str,
    input_roots: Sequence[str] = (),
    blobs: "StorageAccount | None" = None,
    catalogues: Catalogues | None = None,
    *,
    allow_private_addresses: bool = False,
    https_max_bytes: int = 2**30,
) -> Storages:
    """Roots are folders: paths, file uris, or az uris of the account `blobs`. ValueError for
    anything else. `catalogues` are those of `open_catalogues`. The last two are about `https` refs.

    The workspace's root is made if it is missing; one that goes missing later is a fault of
    storage, and is not made again.
    """
    # With httpx, only where it is used.
    from lucius_sdk.workspace_io.remote import HttpLimits, HttpReader

    limits = HttpLimits(size=https_max_bytes)
    local = [_folder(root) for root in input_roots if not _is_of_blobs(root)]
    remote = [root for root in input_roots if _is_of_blobs(root)]
    readers: list[Reader] = [HttpReader(allow_private=allow_private_addresses, limits=limits)]
    workspace: LocalStorage | BlobStorage
    if _is_of_blobs(workspace_root):
        workspace = _blob_storage(workspace_root, remote, blobs)
        readers += [LocalStorage(local[0], tuple(local[1:]))] if local else []
    else:
        workspace = LocalStorage(_folder(workspace_root), tuple(local))
        readers += [_blob_reader(remote, blobs)] if remote else []
    storages = Storages(workspace, readers, catalogues)
    try:
        workspace.prepare()
    except BaseException:
        storages.close()
        raise
    return storages


def open_catalogues(url: str | None, key: "Secret | None") -> Catalogues | None:
    """The artifacts of the API at `url`; None where no address is set."""
    if url is None:
        return None
    from lucius_sdk.workspace_io.artifact.catalogues import ApiCatalogues

    return ApiCatalogues(url, key)


def _is_of_blobs(root: str) -> bool:
    return root.lower().startswith("az:")


def _folder(root: str) -> Path:
    if "://" not in root:
        return Path(abspath(root))
    with _as_a_setting():
        return file_path(root)


def _blob_storage(
    root: str, readable: Sequence[str], blobs: "StorageAccount | None"
) -> "BlobStorage":
    account = _account(blobs)
    from lucius_sdk.workspace_io.blob.storage import BlobStorage

    with _as_a_setting():
        return BlobStorage(account, root, readable)


def _blob_reader(readable: Sequence[str], blobs: "StorageAccount | None") -> "BlobReader":
    account = _account(blobs)
    from lucius_sdk.workspace_io.blob.storage import BlobReader

    with _as_a_setting():
        return BlobReader(account, readable)


def _account(blobs: "StorageAccount | None") -> "Opened[BlobServiceClient]":
    if blobs is None:
        raise ValueError(
            "az uris name blobs of a storage account, and none is set:"
            " set LUCIUS_BLOB_CONNECTION or LUCIUS_BLOB_ENDPOINT"
        )
    try:
        from lucius_sdk.workspace_io.blob.account import open_account

        return open_account(blobs)
    except ModuleNotFoundError as error:
        raise ValueError("az uris need more: pip install 'lucius-sdk[azure]'") from error


@contextmanager
def _as_a_setting() -> Iterator[None]:
    """A root is not an input: what is wrong with it is a matter of settings."""
    try:
        yield
    except NonRetryableError as error:
        raise ValueError(
            f"{error.message}: give a path, or a uri file:///absolute/path or az://container/folder"
        ) from error
