"""A job's events as they happen (server-sent events).

The id of an event is its `seq`, so a client that comes back with `Last-Event-ID` misses nothing.
Where what it missed cannot be told event by event, a `snapshot` of the job comes first. The stream
ends when the job has ended; a client that knows all of an ended job gets 204, which tells browsers
to stay away.

A stream does not outlive its credential, which is checked again while it runs. The event `closed`
then says why it ends. Keys are read once for all streams, see `KeyFile`.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from http import HTTPStatus

import pydantic_core
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from lucius_contract.audit import EventType
from lucius_contract.errors import ContractError
from lucius_contract.states import TERMINAL_JOB_STATES
from lucius_orchestrator.api.access import Access
from lucius_orchestrator.api.job_views import View, event_view, job_with_steps
from lucius_orchestrator.api.parameters import MAX_SEQ, JobId
from lucius_orchestrator.api.parts import ApiParts
from lucius_orchestrator.domain.aggregate import Job
from lucius_orchestrator.domain.decision import AuditEvent
from lucius_orchestrator.ports.ledger import LedgerUnavailable, Stored
from lucius_orchestrator.security.callers import Verb

MEDIA_TYPE = "text/event-stream"
KEEPALIVE = b": still here\n\n"
_PAGE = 100
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class Streams:
    """Once `stopping` is set all streams end; their clients come back to another process."""

    def __init__(self, parts: ApiParts, access: Access, stopping: asyncio.Event) -> None:
        self._ledger = parts.engine.ledger
        self._access = access
        self._stopping = stopping
        self._interval = parts.limits.stream_interval.total_seconds()
        self._keepalive = parts.limits.stream_keepalive.total_seconds()
        self._credential_interval = parts.limits.credential_interval
        self._clock = parts.engine.world.clock

    async def stream(self, request: Request, job_id: JobId) -> Response:
        stored = await self._access.job(request, job_id)
        known = _last_event_id(request)
        job = stored.aggregate.job
        if known == job.seq and job.state in TERMINAL_JOB_STATES:
            return Response(status_code=HTTPStatus.NO_CONTENT)
        events = self._events(request, stored, known)
        return StreamingResponse(events, headers=_HEADERS, media_type=MEDIA_TYPE)

    async def _events(
        self, request: Request, stored: Stored, known: int | None
    ) -> AsyncIterator[bytes]:
        try:
            async for message in self._told(request, stored, known):
                yield message
        except LedgerUnavailable:
            return  # the client comes back, and is told then that it must wait
        except ContractError as lost:
            yield _closed(lost)

    async def _told(
        self, request: Request, stored: Stored, known: int | None
    ) -> AsyncIterator[bytes]:
        job = stored.aggregate.job
        if known is None or not await self._resumes(job, known):
            known = job.seq
            yield _message(known, "snapshot", job_with_steps(stored.aggregate))
        ended = job.state in TERMINAL_JOB_STATES
        quiet = 0.0
        async for page in self._pages(request, job, known):
            for event in page:
                yield _message(event.seq, "event", event_view(event))
            ended = ended or any(map(_ends_the_job, page))
            if ended and len(page) < _PAGE:
                return
            quiet = 0.0 if page else quiet + self._interval
            if quiet >= self._keepalive:
                yield KEEPALIVE
                quiet = 0.0

    async def _resumes(self, job: Job, known: int) -> bool:
        """Whether all that the client does not know can be told event by event."""
        if known >= job.seq:
            return known == job.seq
        following = await self._ledger.events(job.job_id, known, 1)
        return bool(following) and following[0].seq == known + 1

    async def _pages(
        self, request: Request, job: Job, after: int
    ) -> AsyncIterator[list[AuditEvent]]:
        """What is new at each look, often nothing. ContractError: the credential is gone."""
        checked_at = self._clock()
        while True:
            if not timedelta() <= self._clock() - checked_at < self._credential_interval:
                await self._access.check_again(request, Verb.READ_JOB, job.tenant_id)
                checked_at = self._clock()
            page = await self._ledger.events(job.job_id, after, _PAGE)
            after = page[-1].seq if page else after
            yield page
            if len(page) < _PAGE and await self._stopped():
                return

    async def _stopped(self) -> bool:
        """Wait until it is time to look again; whether there will be no more looking."""
        try:
            async with asyncio.timeout(self._interval):
                return await self._stopping.wait()
        except TimeoutError:
            return False


def _last_event_id(request: Request) -> int | None:
    """What is not an id of ours is no id."""
    text = request.headers.get("last-event-id", "")
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_SEQ))):
        return None
    return int(text)


def _ends_the_job(event: AuditEvent) -> bool:
    return event.type is EventType.JOB_STATE_CHANGED and event.target in TERMINAL_JOB_STATES


def _message(event_id: int, name: str, view: View) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (
        event_id,
        name.encode(),
        pydantic_core.to_json(view),
    )


def _closed(lost: ContractError) -> bytes:
    """Without an id: a client that comes back goes on after the event that it had."""
    reason = pydantic_core.to_json({"code": lost.code, "detail": lost.message})
    return b"event: closed\ndata: %b\n\n" % reason
