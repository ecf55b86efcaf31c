"""Blobs of one storage account."""

from collections.abc import Sequence
from typing import BinaryIO

from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.blob import BlobClient, BlobServiceClient

from lucius_azure.storage import Opened
from lucius_sdk.workspace_io.blob.account import AT_ONCE
from lucius_sdk.workspace_io.blob.faults import FORBIDDEN, away, code_of, faults, reading
from lucius_sdk.workspace_io.blob.places import SCHEME, Place, blob_place, folder_place
from lucius_sdk.workspace_io.blob.publishing import Publication
from lucius_sdk.workspace_io.blob.reading import WINDOW, open_blob
from lucius_sdk.workspace_io.blob.uploading import BLOCK, BlobSink, Upload
from lucius_sdk.workspace_io.fence import Fence
from lucius_sdk.workspace_io.names import RESERVED
from lucius_sdk.workspace_io.port import Source
from lucius_sdk.workspace_io.uris import refused

_SCHEMES = frozenset({SCHEME})


class BlobReader:
    """Reads below the folders in `readable`, which are uris."""

    def __init__(
        self,
        account: Opened[BlobServiceClient],
        readable: Sequence[str],
        *,
        window: int = WINDOW,
    ) -> None:
        self._account = account
        self._readable = tuple(map(folder_place, readable))
        self._window = window

    @property
    def schemes(self) -> frozenset[str]:
        return _SCHEMES

    def open_read(self, uri: str) -> BinaryIO:
        return open_blob(self._to_read(uri), uri, self._window)

    def size_of(self, uri: str) -> int:
        with faults(reading, uri):
            return self._to_read(uri).get_blob_properties().size

    def close(self) -> None:
        self._account.close()

    def _to_read(self, uri: str) -> BlobClient:
        place = blob_place(uri)
        if not any(map(place.is_below, self._readable)):
            raise refused(uri, "leads out of the containers and folders that this service may read")
        return self._blob(place)

    def _blob(self, place: Place) -> BlobClient:
        return self._account.client.get_blob_client(place.container, place.name)


class BlobStorage(BlobReader):
    """Writes below `root`; reads there and below the folders in `readable`.

    Folders of blobs are beginnings of names: nothing makes them, and nothing is in their way.
    """

    def __init__(
        self,
        account: Opened[BlobServiceClient],
        root: str,
        readable: Sequence[str] = (),
        *,
        block: int = BLOCK,
        window: int = WINDOW,
    ) -> None:
        super().__init__(account, (root, *readable), window=window)
        self._root = self._readable[0]
        self._container = account.client.get_container_client(self._root.container)
        self._block = block

    def prepare(self) -> None:
        """Make the container, once, when a service starts. Who may not must find it there."""
        with faults(away, self._root.uri):
            try:
                self._container.create_container()
            except HttpResponseError as error:
                if code_of(error) == "ContainerAlreadyExists":
                    return
                if error.status_code != FORBIDDEN:
                    raise
        self.check()

    def create(self, uri: str, media_type: str) -> BlobSink:
        return BlobSink(Upload(self._to_write(uri), uri, media_type, self._block), uri)

    def publish(self, uri: str, source: Source, fence: Fence, media_type: str) -> None:
        Publication(self._to_write(uri), uri, fence, media_type, self._block).run(source)

    def check(self) -> None:
        """Of the container; its folders need not be there."""
        with faults(away, self._root.uri):
            try:
                self._container.get_container_properties(**AT_ONCE)
            except HttpResponseError as error:
                if error.status_code != FORBIDDEN:
                    raise
                self._look_for_a_blob()

    def _look_for_a_blob(self) -> None:
        """A signature for the blobs of a container does not allow to look at the container."""
        blob = self._blob(Place(self._root.container, (*self._root.segments, f"{RESERVED}check")))
        try:
            blob.get_blob_properties(**AT_ONCE)
        except ResourceNotFoundError as error:
            if code_of(error) == "ContainerNotFound":
                raise

    def _to_write(self, uri: str) -> BlobClient:
        place = blob_place(uri)
        if not place.is_below(self._root):
            raise refused(uri, "leads out of the workspace's root")
        if place.segments[-1].startswith(RESERVED):
            raise refused(uri, "does not name a blob that may be written")
        if any(segment.endswith(".") for segment in place.segments):
            raise refused(uri, "has a segment that ends with a dot, which the service would drop")
        return self._blob(place)
