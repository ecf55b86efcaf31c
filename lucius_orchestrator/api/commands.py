"""What operators tell jobs: cancel, pause, resume, redrive."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from lucius_contract.states import JOB_STATUS
from lucius_orchestrator.api.access import Access, caller_of
from lucius_orchestrator.api.answers import json_response
from lucius_orchestrator.api.headers import idempotency_key
from lucius_orchestrator.api.job_views import View
from lucius_orchestrator.api.parameters import JobId
from lucius_orchestrator.api.parts import ApiParts
from lucius_orchestrator.api.paths import job_links, job_path
from lucius_orchestrator.api.submission import accepted
from lucius_orchestrator.domain.aggregate import Aggregate, Job
from lucius_orchestrator.engine.planning import limits_of
from lucius_orchestrator.ports.ledger import Limits
from lucius_orchestrator.ports.registry import Snapshot


class Commands:
    def __init__(self, parts: ApiParts, access: Access) -> None:
        self._engine = parts.engine
        self._registry = parts.registry
        self._access = access

    async def cancel(self, request: Request, job_id: JobId) -> Response:
        await self._access.job(request, job_id)
        return _told(await self._engine.cancel(job_id, caller_of(request).name))

    async def pause(self, request: Request, job_id: JobId) -> Response:
        await self._access.job(request, job_id)
        return _told(await self._engine.pause(job_id, caller_of(request).name))

    async def resume(self, request: Request, job_id: JobId) -> Response:
        await self._access.job(request, job_id)
        return _told(await self._engine.resume(job_id, caller_of(request).name))

    async def redrive(self, request: Request, job_id: JobId) -> Response:
        """A new job; asked twice, the same one."""
        job = (await self._access.job(request, job_id)).aggregate.job
        limits = _limits_now(job, self._registry.snapshot())
        submission = await self._engine.redrive(job_id, limits, idempotency_key(request.scope))
        headers = {"location": job_path(submission.job_id)}
        return json_response(accepted(submission), HTTPStatus.ACCEPTED, headers)


def _limits_now(job: Job, snapshot: Snapshot) -> Limits:
    """Not as they were when the job failed."""
    return limits_of(snapshot.tenant(job.tenant_id), snapshot.defaults, job.route.mode)


def _told(aggregate: Aggregate) -> Response:
    job = aggregate.job
    view: View = {
        "jobId": job.job_id,
        "state": job.state,
        "status": JOB_STATUS[job.state],
        "links": job_links(job.job_id),
    }
    return json_response(view)
