"""Collections that an operator asks for."""

from starlette.requests import Request
from starlette.responses import Response

from lucius_artifacts.artifacts import Artifacts
from lucius_artifacts.collection.explaining import Candidate
from lucius_artifacts.errors import Busy
from lucius_contract.errors import ContractError, ErrorCode
from lucius_orchestrator.api.answers import json_response
from lucius_orchestrator.api.artifacts.access import ArtifactAccess, body_of
from lucius_orchestrator.api.artifacts.shapes import NewRun
from lucius_orchestrator.api.artifacts.views import candidates_view, report_view

MOST_CANDIDATES = 1000


class Runs:
    def __init__(self, access: ArtifactAccess) -> None:
        self._access = access

    async def run(self, request: Request) -> Response:
        asked, artifacts = await body_of(request, NewRun), self._access.artifacts
        if asked.dry_run:
            found = await _candidates(artifacts)
            more = len(found) > MOST_CANDIDATES
            return json_response(candidates_view(found[:MOST_CANDIDATES], more))
        try:
            report = await artifacts.collector.collect()
        except Busy as error:
            artifacts.telemetry.collection_busy(str(error))
            raise ContractError(ErrorCode.STATE_CONFLICT, str(error)) from error
        artifacts.telemetry.collected(report)
        return json_response(report_view(report))


async def _candidates(artifacts: Artifacts) -> list[Candidate]:
    """One more than are shown, if there is one more."""
    found: list[Candidate] = []
    async for candidate in artifacts.explainer.candidates():
        found.append(candidate)
        if len(found) > MOST_CANDIDATES:
            break
    return found
