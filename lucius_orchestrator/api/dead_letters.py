"""What failed for good."""

from typing import Annotated

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from lucius_contract.audit import DeadLetterKind
from lucius_orchestrator.api.access import caller_of, listed_tenant
from lucius_orchestrator.api.answers import json_response
from lucius_orchestrator.api.job_views import View
from lucius_orchestrator.api.parameters import Cursor, Limit, Tenant, Text
from lucius_orchestrator.api.parts import ApiParts
from lucius_orchestrator.ports.ledger import DeadLetterQuery, DeadLetterRow


class DeadLetters:
    def __init__(self, parts: ApiParts) -> None:
        self._ledger = parts.engine.ledger
        self._max_page = parts.limits.max_page

    async def list(
        self,
        request: Request,
        tenant: Tenant = None,
        kind: Annotated[DeadLetterKind | None, Query(description="Of this kind.")] = None,
        code: Annotated[Text | None, Query(description="With this error code.")] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """Newest first. Those of no tenant are for callers with all tenants."""
        owner = listed_tenant(caller_of(request), tenant)
        query = DeadLetterQuery(owner, kind, code, min(limit, self._max_page), cursor)
        page = await self._ledger.dead_letters(query)
        items = [letter_view(row) for row in page.items]
        return json_response({"items": items, "next_cursor": page.cursor})


def letter_view(row: DeadLetterRow) -> View:
    return {
        "id": row.id,
        "kind": row.kind,
        "tenant_id": row.tenant_id,
        "jobId": row.job_id,
        "stepId": row.step_id,
        "attempt_no": row.attempt_no,
        "code": row.code,
        "message": row.message,
        "first_at": row.first_at,
        "last_at": row.last_at,
        "redriven_by": row.redriven_by,
    }
