"""What artifacts and versions a tenant has."""

from lucius_artifacts.errors import NotFound
from lucius_artifacts.model import Version
from lucius_artifacts.names import checked_name
from lucius_artifacts.ports.catalogue import ArtifactSummary, Catalogue


class Listing:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def artifacts(
        self, tenant_id: str, after: str | None, limit: int
    ) -> list[ArtifactSummary]:
        """By name."""
        return await self._catalogue.read(lambda rows: rows.artifacts(tenant_id, after, limit))

    async def versions(
        self, tenant_id: str, name: str, before: int | None, limit: int
    ) -> list[Version]:
        """The newest first, drafts and tombstoned ones too. `NotFound` if there never was one."""
        checked_name(name)
        found = await self._catalogue.read(
            lambda rows: rows.versions(tenant_id, name, before, limit)
        )
        if not found and before is None:
            raise NotFound(f"artifact {name}")
        return found

    async def latest_number(self, tenant_id: str, name: str) -> int:
        """0 if there is none."""
        return await self._catalogue.read(lambda rows: rows.latest_number(tenant_id, name))
