"""Whose artifacts a request may be about, and what it says."""

import re
from typing import TypeVar

from starlette.requests import Request

from lucius_artifacts.artifacts import Artifacts
from lucius_artifacts.errors import NotFound
from lucius_artifacts.model import Upload
from lucius_contract.documents import Document, read_object
from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_orchestrator.api.access import caller_of, listed_tenant, require_tenant
from lucius_orchestrator.api.parts import ApiParts

D = TypeVar("D", bound=Document)
_UPLOAD_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class ArtifactAccess:
    def __init__(self, parts: ApiParts) -> None:
        self._artifacts = parts.artifacts
        self._why_off = parts.artifacts_off

    @property
    def artifacts(self) -> Artifacts:
        if self._artifacts is None:
            raise ContractError(ErrorCode.UNAVAILABLE, self._why_off)
        return self._artifacts

    async def upload(self, request: Request, upload_id: str) -> Upload:
        """The session, if the caller sees it. One of another tenant does not exist."""
        uploads = self.artifacts.uploads
        found = await uploads.find(upload_id) if _UPLOAD_ID.fullmatch(upload_id) else None
        if found is None or not caller_of(request).sees(found.tenant_id):
            raise NotFound(f"upload {upload_id}")
        return found


def named_tenant(request: Request, tenant_id: str | None) -> str:
    """The one that the query names. A caller with one tenant need not name it."""
    found = listed_tenant(caller_of(request), tenant_id)
    if found is None:
        problem = Problem("/query/tenant_id", "must name a tenant")
        raise ContractError(ErrorCode.ENVELOPE_INVALID, "whose artifacts is not said", [problem])
    return found


async def body_of(request: Request, model: type[D]) -> D:
    return model.read(read_object(await request.body()))


def check_tenant(request: Request, tenant_id: str) -> None:
    """The one that the body names."""
    require_tenant(caller_of(request), tenant_id, "/tenant_id")
