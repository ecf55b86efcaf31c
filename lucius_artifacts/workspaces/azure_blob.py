"""Workspaces as blobs: a folder is what blobs have in common up to a slash."""

from collections.abc import AsyncIterator

from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.blob.aio import BlobPrefix, BlobServiceClient, ContainerClient

from lucius_artifacts.objects.azure_blob.faults import faults, is_missing
from lucius_artifacts.ports.workspaces import JobFolder
from lucius_artifacts.workspaces.names import is_job_id
from lucius_azure.storage import AsyncOpened, StorageAccount, open_blobs


class AzureBlobWorkspaces:
    def __init__(
        self, account: AsyncOpened[BlobServiceClient], container: str, folder: str, system: str
    ) -> None:
        """`account` is closed with it; `folder` is the root's, empty for the whole container."""
        self._account = account
        self._container: ContainerClient = account.client.get_container_client(container)
        self._prefix = "/".join([*filter(None, folder.split("/")), system, ""])

    @classmethod
    def open(
        cls, account: StorageAccount, container: str, folder: str, system: str
    ) -> "AzureBlobWorkspaces":
        """Nothing is connected yet. ValueError for a connection string that cannot be read."""
        return cls(open_blobs(account), container, folder, system)

    async def folders(self) -> AsyncIterator[JobFolder]:
        with faults():
            async for tenant in self._below(self._prefix):
                async for folder in self._below(tenant):
                    name = folder.rstrip("/").rpartition("/")[2]
                    if is_job_id(name):
                        yield JobFolder(name, folder)

    async def delete(self, folder: JobFolder) -> None:
        """Blob by blob: what a crash leaves is still a folder."""
        with faults():
            async for name in self._container.list_blob_names(name_starts_with=folder.place):
                await self._delete(name)

    async def close(self) -> None:
        await self._account.close()

    async def _below(self, prefix: str) -> AsyncIterator[str]:
        try:
            async for each in self._container.walk_blobs(prefix, delimiter="/"):
                if isinstance(each, BlobPrefix):
                    yield each.name
        except ResourceNotFoundError:
            return  # no job has made the container yet

    async def _delete(self, name: str) -> None:
        try:
            await self._container.delete_blob(name, delete_snapshots="include")
        except HttpResponseError as error:
            if not is_missing(error):
                raise
