"""Reading content: from a uri to an address that can be read for a while."""

from typing import Annotated

from fastapi import Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from lucius_contract.refs import URI_LIMIT
from lucius_orchestrator.api.answers import json_response
from lucius_orchestrator.api.artifacts.access import ArtifactAccess, named_tenant
from lucius_orchestrator.api.artifacts.uploads import SECRET
from lucius_orchestrator.api.artifacts.views import content_view
from lucius_orchestrator.api.parameters import Tenant, Text

ArtifactUri = Annotated[
    Annotated[str, Field(min_length=1, max_length=URI_LIMIT)],
    Query(description="As artifact://invoices/v3/scan.pdf, or artifact://blobs/ and a digest."),
]


class Contents:
    def __init__(self, access: ArtifactAccess) -> None:
        self._access = access

    async def read(
        self,
        request: Request,
        uri: ArtifactUri,
        tenant: Tenant = None,
        job_id: Annotated[
            Text | None, Query(description="The job that reads: what is held for it can be read.")
        ] = None,
    ) -> Response:
        owner, reading = named_tenant(request, tenant), self._access.artifacts.reading
        located = await reading.locate(owner, uri, job_id)
        view = content_view(uri, located, await reading.sign(located))
        return json_response(view, headers=SECRET)
