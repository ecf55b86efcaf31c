"""The storages that the settings name."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os.path import abspath
from pathlib import Path
from typing import TYPE_CHECKING

from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io.access import DEFAULT_SYSTEM
from lucius_sdk.workspace_io.local import LocalStorage
from lucius_sdk.workspace_io.port import Catalogues, Reader, Storage
from lucius_sdk.workspace_io.s3.storage import S3Options, S3Storage
from lucius_sdk.workspace_io.storages import Storages
from lucius_sdk.workspace_io.uris import file_path

if TYPE_CHECKING:
    from azure.storage.blob import BlobServiceClient

    from lucius_azure.storage import Opened, StorageAccount
    from lucius_sdk.workspace_io.blob.storage import BlobStorage
    from lucius_settings.secret import Secret


def open_storages(
    workspace_root: str,
    input_roots: Sequence[str] = (),
    blobs: "StorageAccount | None" = None,
    catalogues: Catalogues | None = None,
    *,
    output_roots: Sequence[str] = (),
    s3_endpoint: str | None = None,
    system: str = DEFAULT_SYSTEM,
    allow_private_addresses: bool = False,
    https_max_bytes: int = 2**30,
) -> Storages:
    """The workspace is a folder: a path, a file uri, or an az uri of the account `blobs`; other
    roots may be s3 uris too. ValueError for anything else. `catalogues` are those of
    `open_catalogues`. The last two are about `https` refs.

    The workspace's root, and folders of outputs, are made if they are missing; one that goes
    missing later is a fault of storage, and is not made again.
    """
    # With httpx, only where it is used.
    from lucius_sdk.workspace_io.remote import HttpLimits, HttpReader

    https = HttpReader(
        allow_private=allow_private_addresses, limits=HttpLimits(size=https_max_bytes)
    )
    inputs, outputs = _by_scheme(input_roots), _by_scheme(output_roots)
    local = LocalStorage(
        None if is_az(workspace_root) else _folder(workspace_root),
        tuple(map(_folder, inputs["file"])),
        tuple(map(_folder, outputs["file"])),
    )
    others: list[Storage | Reader] = [https]
    workspace: LocalStorage | BlobStorage = local
    if is_az(workspace_root):
        workspace = _blob_storage(blobs, workspace_root, inputs["az"], outputs["az"])
        others.append(local)
    elif inputs["az"] or outputs["az"]:
        others.append(_blob_storage(blobs, None, inputs["az"], outputs["az"]))
    others.append(_s3_storage(s3_endpoint, inputs["s3"], outputs["s3"]))
    storages = Storages(workspace, others, catalogues, system)
    try:
        local.prepare()
        if workspace is not local:
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


def is_az(root: str) -> bool:
    return root.lower().startswith("az:")


def is_s3(root: str) -> bool:
    return root.lower().startswith("s3:")


def _by_scheme(roots: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"az": [], "file": [], "s3": []}
    for root in roots:
        found["az" if is_az(root) else "s3" if is_s3(root) else "file"].append(root)
    return found


def _folder(root: str) -> Path:
    if "://" not in root:
        return Path(abspath(root))
    with _as_a_setting():
        return file_path(root)


def _blob_storage(
    blobs: "StorageAccount | None",
    root: str | None,
    readable: Sequence[str],
    writable: Sequence[str],
) -> "BlobStorage":
    account = _account(blobs)
    from lucius_sdk.workspace_io.blob.storage import BlobStorage

    with _as_a_setting():
        return BlobStorage(account, root, readable, writable)


def _s3_storage(
    endpoint: str | None, readable: Sequence[str], writable: Sequence[str]
) -> S3Storage:
    """Without roots too: then it says what is missing."""
    with _as_a_setting():
        return S3Storage(None, readable, writable, S3Options(endpoint))


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
            f"{error.message}: give a path, or a uri file:///absolute/path, az://container/folder"
            " or, but not for the workspace, s3://bucket/folder"
        ) from error
