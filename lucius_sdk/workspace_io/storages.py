"""All that a service reaches: the workspace's storage, other storages, readers, and artifacts."""

from collections.abc import Iterable
from typing import BinaryIO

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError, StepError
from lucius_sdk.workspace_io.access import (
    DEFAULT_SYSTEM,
    Tenant,
    outside_input_roots,
    outside_output_roots,
)
from lucius_sdk.workspace_io.fence import Fence
from lucius_sdk.workspace_io.port import Catalogue, Catalogues, Reader, Source, Storage
from lucius_sdk.workspace_io.uris import ARTIFACT, as_output, no_catalogue, refused, split_uri

_OF_STORAGES = frozenset({"az", "file", "s3"})


class Storages:
    """What is configured. Nothing of it is read or written but for a job: see `of_job`.

    By the scheme of a uri; of two that have the same one the first counts, and the workspace is the
    first of all. `system` is the folder of the workspace that holds the folders of tenants.
    """

    def __init__(
        self,
        workspace: Storage,
        others: Iterable[Storage | Reader] = (),
        catalogues: Catalogues | None = None,
        system: str = DEFAULT_SYSTEM,
    ) -> None:
        self._workspace = workspace
        self._all: tuple[Storage | Reader, ...] = (workspace, *others)
        self._catalogues = catalogues
        self._system = system

    def of_job(self, tenant_id: str, job_id: str, token: str | None = None) -> "JobStorages":
        """Bound to the tenant, with the artifacts that the job may read, and with its `token`
        publish."""
        tenant, found = Tenant.of(self._system, tenant_id), self._catalogues
        workspace, *others = (
            each.of_tenant(tenant) if isinstance(each, Storage) else each for each in self._all
        )
        assert isinstance(workspace, Storage), "it was one before it was bound"
        return JobStorages(
            workspace, others, None if found is None else found.of_job(tenant_id, job_id, token)
        )

    def check(self) -> None:
        """Of the workspace: places that inputs come from are not this service's to be ready for."""
        self._workspace.check()

    def close(self) -> None:
        for each in self._all:
            each.close()
        if self._catalogues is not None:
            self._catalogues.close()


class JobStorages:
    """What one job reaches. It is closed with the storages that it was made of."""

    __slots__ = ("_readers", "_storages", "catalogue", "workspace")

    def __init__(
        self,
        workspace: Storage,
        others: Iterable[Storage | Reader],
        catalogue: Catalogue | None,
    ) -> None:
        self.workspace = workspace
        self.catalogue = catalogue
        every = [workspace, *others, *([] if catalogue is None else [catalogue])]
        self._readers = {scheme: each for each in reversed(every) for scheme in each.schemes}
        self._storages = {
            scheme: each for scheme, each in self._readers.items() if isinstance(each, Storage)
        }

    @property
    def schemes(self) -> frozenset[str]:
        """Of the uris that can be read."""
        return frozenset(self._readers)

    @property
    def output_schemes(self) -> frozenset[str]:
        """Of the uris that can be published to."""
        of_artifacts = frozenset[str]() if self.catalogue is None else self.catalogue.schemes
        return frozenset(self._storages) | of_artifacts

    def open_read(self, uri: str) -> BinaryIO:
        scheme = split_uri(uri).scheme
        reader = self._readers.get(scheme)
        if reader is not None:
            return reader.open_read(uri)
        if scheme == ARTIFACT:
            raise no_catalogue(uri)
        if scheme in _OF_STORAGES:
            raise outside_input_roots(uri)
        known = ", ".join(sorted(self.schemes))
        raise refused(uri, f"has a scheme that this service does not read (it reads: {known})")

    def publish(self, uri: str, source: Source, fence: Fence, media_type: str) -> None:
        with as_output():
            scheme = split_uri(uri).scheme
        storage = self._storages.get(scheme)
        if storage is None:
            raise self._unpublishable(uri, scheme)
        storage.publish(uri, source, fence, media_type)

    def close(self) -> None:
        """There is nothing of its own."""

    def _unpublishable(self, uri: str, scheme: str) -> StepError:
        if scheme in _OF_STORAGES:
            return outside_output_roots(uri)
        known = ", ".join(sorted(self.output_schemes))
        problem = f"has a scheme to which this service cannot publish (it can: {known})"
        return NonRetryableError(ErrorCode.OUTPUT_UNSUPPORTED, refused(uri, problem).message)
