from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from lucius_artifacts.ports.workspaces import Workspaces
from lucius_artifacts.workspaces.azure_blob import AzureBlobWorkspaces
from lucius_artifacts.workspaces.files import FileWorkspaces
from lucius_azure.storage import StorageAccount, open_blobs
from lucius_settings.secret import Secret
from tests.azurite import Azurite
from tests.names import unique


class Place(NamedTuple):
    """`write` puts a file below the root, `names` are those that are there."""

    workspaces: Workspaces
    write: Callable[[str], Awaitable[None]]
    names: Callable[[], Awaitable[set[str]]]


@pytest.fixture
async def files_place(tmp_path: Path) -> AsyncIterator[Place]:
    root = tmp_path / "workspace"

    async def write(name: str) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")

    async def names() -> set[str]:
        return {str(each.relative_to(root)) for each in root.rglob("*") if each.is_file()}

    workspaces = FileWorkspaces(root, "lucius")
    yield Place(workspaces, write, names)
    await workspaces.close()


@pytest.fixture
async def azure_blob_place(azure_storage: Azurite) -> AsyncIterator[Place]:
    account = StorageAccount(Secret(azure_storage.connection))
    container = unique("workspaces")
    writing = open_blobs(account)
    client = writing.client.get_container_client(container)

    async def write(name: str) -> None:
        if not await client.exists():
            await client.create_container()
        await client.upload_blob(f"deep/root/{name}", b"x")

    async def names() -> set[str]:
        return {name.removeprefix("deep/root/") async for name in client.list_blob_names()}

    workspaces = AzureBlobWorkspaces.open(account, container, "deep/root", "lucius")
    yield Place(workspaces, write, names)
    await workspaces.close()
    await writing.close()


@pytest.fixture(params=["files", "azure_blob"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found
