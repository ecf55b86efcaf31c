"""What one tenant has. Content that it has not brought does not exist for it, whoever else has."""

from typing import NamedTuple

from lucius_artifacts.model import Blob, Claim
from lucius_artifacts.ports.catalogue import Reader


class Content(NamedTuple):
    blob: Blob
    claim: Claim

    @property
    def object_key(self) -> str:
        """Of the object that the tenant reads."""
        return self.claim.object_key or self.blob.object_key


async def own_content(rows: Reader, tenant_id: str, digest: str) -> Content | None:
    claim = await rows.claim(tenant_id, digest)
    blob = None if claim is None else await rows.blob(digest)
    return None if claim is None or blob is None else Content(blob, claim)
