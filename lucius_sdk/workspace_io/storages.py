"""All that a service reaches: the workspace's storage, readers of other refs, and artifacts."""

from collections.abc import Iterable
from typing import BinaryIO

from lucius_sdk.workspace_io.port import Catalogue, Catalogues, Reader, Storage
from lucius_sdk.workspace_io.uris import ARTIFACT, no_catalogue, refused, split_uri


class Storages:
    """A `Reader` over all of them, by the scheme of the uri. Of two that read the same scheme the
    first counts, and the workspace is the first of all. Artifacts are a job's: see `of_job`."""

    def __init__(
        self,
        workspace: Storage,
        readers: Iterable[Reader] = (),
        catalogues: Catalogues | None = None,
    ) -> None:
        self.workspace = workspace
        self._all: tuple[Reader, ...] = (workspace, *readers)
        self._catalogues = catalogues
        self._readers = {
            scheme: reader for reader in reversed(self._all) for scheme in reader.schemes
        }

    @property
    def schemes(self) -> frozenset[str]:
        return frozenset(self._readers)

    def of_job(self, tenant_id: str, job_id: str, token: str | None = None) -> "JobStorages":
        """With the artifacts that the job may read, and with its `token` publish."""
        found = self._catalogues
        return JobStorages(self, None if found is None else found.of_job(tenant_id, job_id, token))

    def open_read(self, uri: str) -> BinaryIO:
        scheme = split_uri(uri).scheme
        reader = self._readers.get(scheme)
        if reader is not None:
            return reader.open_read(uri)
        if scheme == ARTIFACT:
            raise no_catalogue(uri)
        known = ", ".join(sorted(self._readers))
        raise refused(uri, f"has a scheme that this service does not read (it reads: {known})")

    def check(self) -> None:
        """Of the workspace: places that inputs come from are not this service's to be ready for."""
        self.workspace.check()

    def close(self) -> None:
        for reader in self._all:
            reader.close()
        if self._catalogues is not None:
            self._catalogues.close()


class JobStorages:
    """What one job reaches. It is closed with the storages that it was made of."""

    __slots__ = ("_storages", "catalogue", "workspace")

    def __init__(self, storages: Storages, catalogue: Catalogue | None) -> None:
        self.workspace = storages.workspace
        self.catalogue = catalogue
        self._storages = storages

    @property
    def schemes(self) -> frozenset[str]:
        of_artifacts = frozenset[str]() if self.catalogue is None else self.catalogue.schemes
        return self._storages.schemes | of_artifacts

    def open_read(self, uri: str) -> BinaryIO:
        if self.catalogue is not None and split_uri(uri).scheme in self.catalogue.schemes:
            return self.catalogue.open_read(uri)
        return self._storages.open_read(uri)

    def close(self) -> None:
        """There is nothing of its own."""
