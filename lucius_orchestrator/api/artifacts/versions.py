"""Artifacts and their versions."""

from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from typing import Annotated

from fastapi import Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from lucius_artifacts.model import Fence, Producer, Version
from lucius_artifacts.names import checked_name
from lucius_artifacts.publishing import Author, NewEntry
from lucius_orchestrator.api.access import caller_of
from lucius_orchestrator.api.answers import json_response
from lucius_orchestrator.api.artifacts.access import (
    ArtifactAccess,
    body_of,
    check_tenant,
    named_tenant,
)
from lucius_orchestrator.api.artifacts.shapes import (
    NewVersion,
    OfTenant,
    ProducerRef,
    Tombstoning,
)
from lucius_orchestrator.api.artifacts.views import artifact_view, version_view
from lucius_orchestrator.api.parameters import (
    MAX_VERSION,
    ArtifactName,
    Limit,
    Tenant,
    VersionNumber,
)
from lucius_orchestrator.api.parts import ApiParts
from lucius_orchestrator.api.paths import version_path

NameCursor = Annotated[
    Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,127}$")] | None,
    Query(description="The next_cursor of the page before."),
]
VersionCursor = Annotated[
    Annotated[int, Field(ge=1, le=MAX_VERSION)] | None,
    Query(description="The next_cursor of the page before."),
]


_MOST_VERSIONS = 50
"""On a page: each may have a thousand entries."""


class Versions:
    def __init__(self, parts: ApiParts, access: ArtifactAccess) -> None:
        self._access = access
        self._tokens = parts.tokens
        self._max_page = parts.limits.max_page

    async def artifacts(
        self,
        request: Request,
        tenant: Tenant = None,
        limit: Limit = 50,
        cursor: NameCursor = None,
    ) -> Response:
        """By name."""
        owner, size = named_tenant(request, tenant), min(limit, self._max_page)
        found = await self._access.artifacts.listing.artifacts(owner, cursor, size)
        following = found[-1].name if len(found) == size else None
        return json_response(
            {"artifacts": list(map(artifact_view, found)), "next_cursor": following}
        )

    async def list(
        self,
        request: Request,
        name: ArtifactName,
        tenant: Tenant = None,
        limit: Limit = 50,
        cursor: VersionCursor = None,
    ) -> Response:
        """Newest first."""
        owner, size = named_tenant(request, tenant), min(limit, self._max_page, _MOST_VERSIONS)
        found = await self._access.artifacts.listing.versions(owner, name, cursor, size)
        following = str(found[-1].number) if len(found) == size else None
        return json_response({"versions": list(map(version_view, found)), "next_cursor": following})

    async def publish(self, request: Request, name: ArtifactName) -> Response:
        """A new version, or the newest one if it has this content already."""
        asked = await body_of(request, NewVersion)
        check_tenant(request, asked.tenant_id)
        artifacts = self._access.artifacts
        author = _author(request, asked.tenant_id)
        if asked.producer is not None:
            author = replace(author, producer=self._proven(asked.tenant_id, asked.producer))
        latest = await artifacts.listing.latest_number(asked.tenant_id, checked_name(name))
        entries = [NewEntry(each.path, each.digest, each.media_type) for each in asked.entries]
        version = await artifacts.publishing.publish(author, name, entries)
        status = HTTPStatus.CREATED if version.number > latest else HTTPStatus.OK
        headers = {"location": version_path(version.name, version.number)}
        return json_response(version_view(version), status, headers)

    async def read(
        self,
        request: Request,
        name: ArtifactName,
        version: VersionNumber,
        tenant: Tenant = None,
    ) -> Response:
        owner, publishing = named_tenant(request, tenant), self._access.artifacts.publishing
        return _shown(await publishing.version(owner, checked_name(name), version))

    async def publish_draft(
        self, request: Request, name: ArtifactName, version: VersionNumber
    ) -> Response:
        """Ask the policy again."""
        author, publishing = await self._asked(request), self._access.artifacts.publishing
        return _shown(
            await publishing.publish_draft(
                author.tenant_id, author.actor, checked_name(name), version
            )
        )

    async def tombstone(
        self, request: Request, name: ArtifactName, version: VersionNumber
    ) -> Response:
        asked = await body_of(request, Tombstoning)
        check_tenant(request, asked.tenant_id)
        tombstoned = await self._access.artifacts.publishing.tombstone(
            _author(request, asked.tenant_id),
            checked_name(name),
            version,
            authorized=True,  # the route has asked for the role
            retention=timedelta(seconds=asked.retention_seconds),
            reason=asked.reason or "",
        )
        return _shown(tombstoned)

    async def restore(
        self, request: Request, name: ArtifactName, version: VersionNumber
    ) -> Response:
        author, publishing = await self._asked(request), self._access.artifacts.publishing
        return _shown(await publishing.restore(author, checked_name(name), version))

    def _proven(self, tenant_id: str, run: ProducerRef) -> Producer:
        """FORBIDDEN unless the caller has the token of the attempt: a producer's version takes the
        place of those that earlier runs of its job have published."""
        self._tokens.check_producer(run.token, tenant_id, run.job_id, run.step_id, run.attempt_no)
        return Producer(run.job_id, Fence(run.step_id, run.attempt_no, run.epoch))

    async def _asked(self, request: Request) -> Author:
        asked = await body_of(request, OfTenant)
        check_tenant(request, asked.tenant_id)
        return _author(request, asked.tenant_id)


def _author(request: Request, tenant_id: str) -> Author:
    return Author(tenant_id, caller_of(request).name)


def _shown(version: Version) -> Response:
    return json_response(version_view(version))
