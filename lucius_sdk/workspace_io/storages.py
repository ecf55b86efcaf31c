"""All that a service reaches: the storage of the workspace, and readers of other refs."""

from collections.abc import Iterable
from typing import BinaryIO

from lucius_sdk.workspace_io.port import Reader, Storage
from lucius_sdk.workspace_io.uris import refused, split_uri


class Storages:
    """A `Reader` over all of them, by the scheme of the uri. Of two that read the same scheme the
    first counts, and the workspace is the first of all."""

    def __init__(self, workspace: Storage, readers: Iterable[Reader] = ()) -> None:
        self.workspace = workspace
        self._all: tuple[Reader, ...] = (workspace, *readers)
        self._readers = {
            scheme: reader for reader in reversed(self._all) for scheme in reader.schemes
        }

    @property
    def schemes(self) -> frozenset[str]:
        return frozenset(self._readers)

    def open_read(self, uri: str) -> BinaryIO:
        reader = self._readers.get(split_uri(uri).scheme)
        if reader is None:
            known = ", ".join(sorted(self._readers))
            raise refused(uri, f"has a scheme that this service does not read (it reads: {known})")
        return reader.open_read(uri)

    def check(self) -> None:
        """Of the workspace: places that inputs come from are not this service's to be ready for."""
        self.workspace.check()

    def close(self) -> None:
        for reader in self._all:
            reader.close()
