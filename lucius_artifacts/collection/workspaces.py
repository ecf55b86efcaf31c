"""Workspaces of jobs that ended long enough ago."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

from lucius_artifacts.collection.explaining import Candidate
from lucius_artifacts.ports.jobs import Ended, Jobs, Running
from lucius_artifacts.ports.workspaces import JobFolder, Workspaces
from lucius_artifacts.workspaces.names import made_at
from lucius_artifacts.world import World


class WorkspaceCollector:
    """A job that the ledger has forgotten has ended; nobody knows when, so its age counts. One that
    is younger than the retention cannot have ended that long ago: nobody is asked about it."""

    def __init__(
        self, workspaces: Workspaces, jobs: Jobs, world: World, retention: timedelta
    ) -> None:
        self._workspaces = workspaces
        self._jobs = jobs
        self._world = world
        self._retention = retention

    async def collect(self) -> int:
        """How many folders were deleted."""
        deleted = 0
        async for folder, candidate in self._judged():
            if candidate.goes:
                await self._workspaces.delete(folder)
                deleted += 1
        return deleted

    async def candidates(self) -> AsyncIterator[Candidate]:
        """Every folder that is old enough, with what would become of it now."""
        async for _, candidate in self._judged():
            yield candidate

    async def _judged(self) -> AsyncIterator[tuple[JobFolder, Candidate]]:
        async for folder in self._workspaces.folders():
            if self._is_past(made_at(folder.job_id)):
                yield folder, await self._judge(folder)

    async def _judge(self, folder: JobFolder) -> Candidate:
        match await self._jobs.standing(folder.job_id):
            case Running():
                return _candidate(folder, False, "the job is running")
            case Ended(at):
                return _candidate(folder, self._is_past(at), f"the job ended at {_moment(at)}")
        made = _moment(made_at(folder.job_id))
        return _candidate(folder, True, f"no such job is known; it was made at {made}")

    def _is_past(self, since: datetime) -> bool:
        return since + self._retention <= self._world.clock()


def _candidate(folder: JobFolder, goes: bool, why: str) -> Candidate:
    return Candidate(f"workspace of {folder.job_id}", 0, "kept", goes, why)


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
