"""One collection after the other.

A run has an id and a lease, and one is current at a time. It marks every blob that a retained
version, a running job or an open upload needs, and only when all blobs were seen it sweeps: each in
a transaction of its own that looks at the run, the mark and the references once more. So it is safe
against whatever comes in between, and a run that was abandoned can sweep nothing.

An object is deleted after its row says so, from a list of doomed objects that is written with the
row: a crash in between leaves an entry on the list, and deleting what is gone is no error.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime

from lucius_artifacts.collection import steps
from lucius_artifacts.collection.schedule import Report, Schedule
from lucius_artifacts.collection.steps import Step
from lucius_artifacts.collection.workspaces import WorkspaceCollector
from lucius_artifacts.model import Blob, Claim, Doomed, Hold, Run, RunPhase
from lucius_artifacts.ports.catalogue import Catalogue, MarkedPage, Reader, Transaction
from lucius_artifacts.ports.jobs import Ended, Jobs, Running
from lucius_artifacts.ports.objects import Objects
from lucius_artifacts.states import BlobState
from lucius_artifacts.uploading import Uploads
from lucius_artifacts.world import World

_RUN_BYTES = 8
Page = Callable[[Reader, str | None], Awaitable[list[Blob]]]


class Collector:
    def __init__(
        self,
        catalogue: Catalogue,
        objects: Objects,
        uploads: Uploads,
        jobs: Jobs,
        world: World,
        schedule: Schedule,
        workspaces: WorkspaceCollector | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._objects = objects
        self._uploads = uploads
        self._jobs = jobs
        self._world = world
        self._schedule = schedule
        self._workspaces = workspaces

    async def collect(self) -> Report:
        """`Busy` if another run is current. Every step stands by itself: what a crash left undone,
        the next run does."""
        report = Report()
        await self._expire_uploads(report)
        await self._release_holds(report)
        await self._tombstone_idle(report)
        await self._elapse_retention(report)
        await self._end_idle_claims()
        run = await self._begin()
        report.run_id = run.run_id
        await self._mark(run, report)
        await self._sweep(run, report)
        await self.delete_objects(report)
        if self._workspaces is not None:
            report.workspaces_gone = await self._workspaces.collect()
        return report

    async def delete_objects(self, report: Report) -> None:
        """What is on the list of doomed objects, and due."""
        while doomed := await self._doomed():
            for each in doomed:
                await self._objects.delete(each.object_key)
                await self._forget(each.object_key)
                report.objects_gone += 1

    async def _expire_uploads(self, report: Report) -> None:
        while expired := await self._uploads.expire(self._schedule.page):
            report.expired_uploads += len(expired)

    async def _release_holds(self, report: Report) -> None:
        after: str | None = None
        while holds := await self._holds(after):
            for hold in holds:
                if await self._is_over(hold):
                    await self._release(hold.job_id)
                    report.released_jobs += 1
            after = holds[-1].job_id

    async def _tombstone_idle(self, report: Report) -> None:
        def idle(rows: Reader, after: str | None) -> Awaitable[list[Blob]]:
            now = self._now()
            return rows.idle_blobs(now, now - self._schedule.grace, after, self._schedule.page)

        async for blob in self._all(idle):
            report.tombstoned += await self._decided(blob, self._tombstone)

    async def _elapse_retention(self, report: Report) -> None:
        async for blob in self._all(self._in_state(BlobState.TOMBSTONED)):
            report.eligible += await self._decided(blob, self._elapse)

    async def _end_idle_claims(self) -> None:
        """A tenant loses content that it does not refer to when it would have lost it if nobody
        else had it: that it is still there would tell that another tenant has it. Later than the
        retention of any blob that this run sweeps, so that claims end before blobs."""
        now = self._now()
        before = now - self._schedule.grace - self._schedule.retention
        after: Claim | None = None
        while claims := await self._idle_claims(now, before, after):
            for claim in claims:
                await self._end_claim(claim, now, before)
            after = claims[-1]

    async def _idle_claims(
        self, now: datetime, before: datetime, after: Claim | None
    ) -> list[Claim]:
        page = self._schedule.page
        return await self._catalogue.read(lambda rows: rows.idle_claims(now, before, after, page))

    async def _end_claim(self, claim: Claim, now: datetime, before: datetime) -> None:
        await self._catalogue.change(lambda rows: steps.end_claim(rows, claim, now, before))

    async def _begin(self) -> Run:
        run_id = f"gc_{self._world.entropy(_RUN_BYTES).hex()}"
        now, lease = self._now(), self._schedule.lease
        return await self._catalogue.change(lambda rows: steps.begin_run(rows, run_id, now, lease))

    async def _mark(self, run: Run, report: Report) -> None:
        after: str | None = None
        while True:
            page = await self._mark_page(run, after)
            report.marked += page.marked
            after = page.after
            if after is None:
                break

        async def keep(rows: Transaction, blob: Blob) -> None:
            current = await self._continued(rows, run, RunPhase.MARKING)
            await steps.keep_marked(rows, blob, current, self._now())

        async for blob in self._all(self._in_state(BlobState.ELIGIBLE_FOR_GC)):
            report.revived += await self._decided(blob, keep)

    async def _sweep(self, run: Run, report: Report) -> None:
        await self._enter(run, RunPhase.MARKING, RunPhase.SWEEPING)

        async def sweep(rows: Transaction, blob: Blob) -> None:
            current = await self._continued(rows, run, RunPhase.SWEEPING)
            await steps.sweep(rows, blob, current, self._now())

        async for blob in self._all(self._in_state(BlobState.ELIGIBLE_FOR_GC)):
            if await self._decided(blob, sweep):
                report.deleted += 1
                report.deleted_bytes += blob.length
        await self._enter(run, RunPhase.SWEEPING, RunPhase.DONE)

    def _now(self) -> datetime:
        return self._world.clock()

    async def _all(self, page: Page) -> AsyncIterator[Blob]:
        """All blobs of a list, page by page."""
        after: str | None = None
        while blobs := await self._page(page, after):
            for blob in blobs:
                yield blob
            after = blobs[-1].digest

    async def _page(self, page: Page, after: str | None) -> list[Blob]:
        return await self._catalogue.read(lambda rows: page(rows, after))

    def _in_state(self, state: BlobState) -> Page:
        return lambda rows, after: rows.blobs_in(state, after, self._schedule.page)

    async def _decided(self, blob: Blob, step: Step) -> bool:
        return await self._catalogue.change(lambda rows: steps.decided(rows, blob, step))

    async def _tombstone(self, rows: Transaction, blob: Blob) -> None:
        await steps.tombstone(rows, blob, self._now(), self._schedule.retention)

    async def _elapse(self, rows: Transaction, blob: Blob) -> None:
        await steps.elapse_retention(rows, blob, self._now())

    async def _mark_page(self, run: Run, after: str | None) -> MarkedPage:
        async def mark(rows: Transaction) -> MarkedPage:
            await self._continued(rows, run, RunPhase.MARKING)
            return await rows.mark(run.run_id, self._now(), after, self._schedule.page)

        return await self._catalogue.change(mark)

    async def _continued(self, rows: Transaction, run: Run, phase: RunPhase) -> Run:
        return await steps.continue_run(rows, run.run_id, phase, self._now(), self._schedule.lease)

    async def _enter(self, run: Run, phase: RunPhase, next_phase: RunPhase) -> None:
        async def enter(rows: Transaction) -> None:
            current = await self._continued(rows, run, phase)
            await rows.put_run(steps.advanced(current, next_phase, self._now()))

        await self._catalogue.change(enter)

    async def _holds(self, after: str | None) -> list[Hold]:
        return await self._catalogue.read(lambda rows: rows.held_jobs(after, self._schedule.page))

    async def _is_over(self, hold: Hold) -> bool:
        match await self._jobs.standing(hold.job_id):
            case Ended():
                return True
            case Running():
                return False
        return hold.held_at + self._schedule.unknown_job_grace <= self._now()

    async def _release(self, job_id: str) -> None:
        await self._catalogue.change(lambda rows: rows.drop_holds(job_id))

    async def _doomed(self) -> list[Doomed]:
        now = self._now()
        return await self._catalogue.read(lambda rows: rows.doomed(now, self._schedule.page))

    async def _forget(self, object_key: str) -> None:
        await self._catalogue.change(lambda rows: rows.drop_doomed(object_key))
