"""What operators tell jobs: cancel, pause, resume, redrive."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from lucius_contract.refs import check_refs
from lucius_contract.states import JOB_STATUS, JobState
from lucius_orchestrator.api.access import Access, caller_of
from lucius_orchestrator.api.answers import json_response
from lucius_orchestrator.api.headers import idempotency_key
from lucius_orchestrator.api.job_views import View
from lucius_orchestrator.api.parameters import JobId
from lucius_orchestrator.api.parts import ApiParts
from lucius_orchestrator.api.paths import job_links, job_path
from lucius_orchestrator.api.submission import accepted
from lucius_orchestrator.domain.aggregate import Job
from lucius_orchestrator.engine.planning import check_places, limits_of
from lucius_orchestrator.engine.steering import Steering
from lucius_orchestrator.ports.ledger import Limits
from lucius_orchestrator.ports.registry import Snapshot
from lucius_orchestrator.security.callers import Verb


class Commands:
    def __init__(self, parts: ApiParts, access: Access) -> None:
        self._engine = parts.engine
        self._steering = parts.steering or Steering(parts.engine)
        self._plan = parts.plan
        self._refs = parts.refs
        self._registry = parts.registry
        self._access = access

    async def cancel(self, request: Request, job_id: JobId) -> Response:
        return await self._tell(request, job_id, Verb.CANCEL)

    async def pause(self, request: Request, job_id: JobId) -> Response:
        return await self._tell(request, job_id, Verb.PAUSE)

    async def resume(self, request: Request, job_id: JobId) -> Response:
        return await self._tell(request, job_id, Verb.RESUME)

    async def _tell(self, request: Request, job_id: str, verb: Verb) -> Response:
        job = (await self._access.job(request, job_id)).aggregate.job
        state = await self._steering.tell(job, verb.value, caller_of(request).name)
        return _told(job_id, state)

    async def redrive(self, request: Request, job_id: JobId) -> Response:
        """A new job; asked twice, the same one. Its refs must be the tenant's to name now."""
        job = (await self._access.job(request, job_id)).aggregate.job
        snapshot = self._registry.snapshot()
        check_refs(job.input_ref["uri"], job.output_ref["uri"], self._refs)
        check_places(job.tenant_id, job.input_ref, job.output_ref, snapshot, self._plan)
        limits = _limits_now(job, snapshot)
        key = idempotency_key(request.scope)
        submission = await self._engine.redrive(job_id, limits, key, self._plan.engine)
        headers = {"location": job_path(submission.job_id)}
        return json_response(accepted(submission), HTTPStatus.ACCEPTED, headers)


def _limits_now(job: Job, snapshot: Snapshot) -> Limits:
    """Not as they were when the job failed."""
    return limits_of(snapshot.tenant(job.tenant_id), snapshot.defaults, job.route.mode)


def _told(job_id: str, state: JobState) -> Response:
    view: View = {
        "jobId": job_id,
        "state": state,
        "status": JOB_STATUS[state],
        "links": job_links(job_id),
    }
    return json_response(view)
