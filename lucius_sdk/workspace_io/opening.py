"""The storages that the settings name."""

from collections.abc import Sequence
from os.path import abspath
from pathlib import Path

from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io.local import LocalStorage
from lucius_sdk.workspace_io.storages import Storages
from lucius_sdk.workspace_io.uris import file_path


def open_storages(workspace_root: str, input_roots: Sequence[str] = ()) -> Storages:
    """Roots are folders, as paths or as file uris. ValueError for anything else.

    The workspace's root is made if it is missing; one that goes missing later is a fault of
    storage, and is not made again.
    """
    from lucius_sdk.workspace_io.remote import HttpReader  # with httpx, only where it is used

    readable = tuple(_folder(root) for root in input_roots)
    workspace = LocalStorage(_folder(workspace_root), readable)
    workspace.prepare()
    return Storages(workspace, [HttpReader()])


def _folder(root: str) -> Path:
    if "://" not in root:
        return Path(abspath(root))
    try:
        return file_path(root)
    except NonRetryableError as error:
        raise ValueError(f"{error.message}: give a path or a uri file:///absolute/path") from error
