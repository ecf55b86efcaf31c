"""Blobs of one storage account."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import BinaryIO, Self

from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient

from lucius_azure.storage import Opened
from lucius_sdk.workspace_io.access import Access, Location, Tenant
from lucius_sdk.workspace_io.blob.account import AT_ONCE
from lucius_sdk.workspace_io.blob.faults import FORBIDDEN, away, code_of, faults, reading
from lucius_sdk.workspace_io.blob.places import SCHEME, Place, blob_place, folder_place
from lucius_sdk.workspace_io.blob.publishing import Publication
from lucius_sdk.workspace_io.blob.reading import WINDOW, open_blob
from lucius_sdk.workspace_io.blob.uploading import BLOCK, BlobSink, Upload
from lucius_sdk.workspace_io.fence import Fence
from lucius_sdk.workspace_io.names import RESERVED
from lucius_sdk.workspace_io.port import Source
from lucius_sdk.workspace_io.uris import as_output, refused

_SCHEMES = frozenset({SCHEME})


class BlobStorage:
    """The workspace below `root`; reads below the folders in `readable` too, and publishes below
    those in `writable`: all of them uris. Without `root` there is no workspace.

    Folders of blobs are beginnings of names: nothing makes them, and nothing is in their way.
    """

    def __init__(
        self,
        account: Opened[BlobServiceClient],
        root: str | None,
        readable: Sequence[str] = (),
        writable: Sequence[str] = (),
        *,
        block: int = BLOCK,
        window: int = WINDOW,
    ) -> None:
        self._account = account
        self._root = None if root is None else folder_place(root)
        self._access = Access(
            None if self._root is None else self._root.location,
            tuple(folder_place(folder).location for folder in readable),
            tuple(folder_place(folder).location for folder in writable),
        )
        self._block = block
        self._window = window

    @property
    def schemes(self) -> frozenset[str]:
        return _SCHEMES

    def of_tenant(self, tenant: Tenant) -> Self:
        bound = copy(self)
        bound._access = self._access._replace(tenant=tenant)
        return bound

    def open_read(self, uri: str) -> BinaryIO:
        return open_blob(self._to_read(uri), uri, self._window)

    def size_of(self, uri: str) -> int:
        with faults(reading, uri):
            return self._to_read(uri).get_blob_properties().size

    def prepare(self) -> None:
        """Make the workspace's container, once, when a service starts. Who may not must find it
        there."""
        if self._root is None:
            return
        with faults(away, self._root.uri):
            try:
                self._container_of(self._root).create_container()
            except HttpResponseError as error:
                if code_of(error) == "ContainerAlreadyExists":
                    return
                if error.status_code != FORBIDDEN:
                    raise
        self.check()

    def create(self, uri: str, media_type: str) -> BlobSink:
        blob = self._to_write(uri, self._access.check_write)
        return BlobSink(Upload(blob, uri, media_type, self._block), uri)

    def publish(self, uri: str, source: Source, fence: Fence, media_type: str) -> None:
        blob = self._to_write(uri, self._access.check_publish)
        Publication(blob, uri, fence, media_type, self._block).run(source)

    def check(self) -> None:
        """Of the workspace's container; its folders need not be there."""
        if self._root is None:
            return
        with faults(away, self._root.uri):
            try:
                self._container_of(self._root).get_container_properties(**AT_ONCE)
            except HttpResponseError as error:
                if error.status_code != FORBIDDEN:
                    raise
                self._look_for_a_blob(self._root)

    def close(self) -> None:
        self._account.close()

    def _look_for_a_blob(self, root: Place) -> None:
        """A signature for the blobs of a container does not allow to look at the container."""
        blob = self._blob(Place(root.container, (*root.segments, f"{RESERVED}check")))
        try:
            blob.get_blob_properties(**AT_ONCE)
        except ResourceNotFoundError as error:
            if code_of(error) == "ContainerNotFound":
                raise

    def _to_read(self, uri: str) -> BlobClient:
        place = blob_place(uri)
        self._access.check_read(place.location, uri)
        return self._blob(place)

    def _to_write(self, uri: str, check: Callable[[Location, str], None]) -> BlobClient:
        with as_output():
            place = blob_place(uri)
            if place.segments[-1].startswith(RESERVED):
                raise refused(uri, "does not name a blob that may be written")
            if any(segment.endswith(".") for segment in place.segments):
                raise refused(
                    uri, "has a segment that ends with a dot, which the service would drop"
                )
        check(place.location, uri)
        return self._blob(place)

    def _blob(self, place: Place) -> BlobClient:
        return self._account.client.get_blob_client(place.container, place.name)

    def _container_of(self, place: Place) -> ContainerClient:
        return self._account.client.get_container_client(place.container)
