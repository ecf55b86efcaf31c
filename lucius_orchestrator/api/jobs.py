"""Reading jobs, and telling them what to do."""

import hashlib
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from lucius_contract.canonical import resolve_arrows
from lucius_contract.states import JobState
from lucius_orchestrator.api.access import Access, caller_of, listed_tenant
from lucius_orchestrator.api.answers import json_response
from lucius_orchestrator.api.job_views import View, event_view, job_view, job_with_steps, step_view
from lucius_orchestrator.api.parameters import (
    Cursor,
    EventCursor,
    JobId,
    Limit,
    Since,
    Tenant,
    Text,
)
from lucius_orchestrator.api.parts import ApiParts
from lucius_orchestrator.ports.ledger import JobQuery, Stored

_EPOCH = datetime.fromtimestamp(0, UTC)
"""No job is older; ledgers need not reckon with the year 1."""

_REPRESENTATION = "2"
"""Changes when the same stored job is shown in another way."""


class Jobs:
    def __init__(self, parts: ApiParts, access: Access) -> None:
        self._ledger = parts.engine.ledger
        self._registry = parts.registry
        self._access = access
        self._max_page = parts.limits.max_page

    async def list(
        self,
        request: Request,
        tenant: Tenant = None,
        state: Annotated[JobState | None, Query(description="In this state.")] = None,
        request_type: Annotated[
            Text | None, Query(description="Of this request type, or an alias of it.")
        ] = None,
        since: Since = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """Newest first."""
        query = JobQuery(
            listed_tenant(caller_of(request), tenant),
            state,
            self._resolved(request_type),
            since and max(since, _EPOCH),
            min(limit, self._max_page),
            cursor,
        )
        page = await self._ledger.jobs(query)
        items = [job_view(job) for job in page.items]
        return json_response({"items": items, "next_cursor": page.cursor})

    async def read(self, request: Request, job_id: JobId) -> Response:
        stored = await self._access.job(request, job_id)
        return _tagged(request, stored, job_with_steps(stored.aggregate))

    async def steps(self, request: Request, job_id: JobId) -> Response:
        stored = await self._access.job(request, job_id)
        items = [step_view(step) for step in stored.aggregate.steps]
        return _tagged(request, stored, {"items": items, "next_cursor": None})

    async def events(
        self, request: Request, job_id: JobId, limit: Limit = 100, cursor: EventCursor = None
    ) -> Response:
        """Oldest first."""
        await self._access.job(request, job_id)
        size = min(limit, self._max_page)
        events = await self._ledger.events(job_id, cursor or 0, size)
        following = str(events[-1].seq) if len(events) == size else None
        items = [event_view(event) for event in events]
        return json_response({"items": items, "next_cursor": following})

    def _resolved(self, request_type: str | None) -> str | None:
        """Jobs are stored under the request type, whatever alias they came with."""
        if request_type is None:
            return None
        protocol = self._registry.snapshot().protocol_of(request_type)
        return protocol.request_type if protocol else resolve_arrows(request_type)


def _tagged(request: Request, stored: Stored, view: View) -> Response:
    """Every commit moves the version, so an unchanged one means an unchanged job."""
    tag = _tag(stored)
    headers = {"etag": tag, "cache-control": "private, no-cache"}
    if _matches(request.headers.getlist("if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    return json_response(view, headers=headers)


def _tag(stored: Stored) -> str:
    """Hashed: versions are the ledger's own affair."""
    text = f"{_REPRESENTATION} {stored.aggregate.job.job_id} {stored.version!r}"
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def _matches(given: "list[str]", tag: str) -> bool:
    """The weak comparison, which is the one for reads."""
    known = [item.strip().removeprefix("W/") for line in given for item in line.split(",")]
    return tag in known or "*" in known
