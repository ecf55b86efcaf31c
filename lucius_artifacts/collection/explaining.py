"""What a collection would do now, and why: for every candidate, with nothing changed."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from lucius_artifacts.collection.schedule import Schedule
from lucius_artifacts.model import Blob, Reference
from lucius_artifacts.ports.catalogue import Catalogue, Reader
from lucius_artifacts.states import BlobState
from lucius_artifacts.world import World


@dataclass(frozen=True, slots=True)
class Candidate:
    """`goes` says whether the next collection takes it a step further."""

    subject: str
    bytes: int
    state: str
    goes: bool
    why: str


class Explained(Protocol):
    """Others with candidates of their own."""

    def candidates(self) -> AsyncIterator[Candidate]: ...


class Explainer:
    def __init__(
        self,
        catalogue: Catalogue,
        world: World,
        schedule: Schedule,
        workspaces: Explained | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._world = world
        self._schedule = schedule
        self._workspaces = workspaces

    async def candidates(self) -> AsyncIterator[Candidate]:
        """Idle blobs, then tombstoned ones, then eligible ones, then workspaces."""
        async for blob in self._idle():
            yield _candidate(blob, True, f"nobody refers to it since {_moment(blob.needed_at)}")
        for state in (BlobState.TOMBSTONED, BlobState.ELIGIBLE_FOR_GC):
            async for candidate in self._in_state(state):
                yield candidate
        if self._workspaces is not None:
            async for candidate in self._workspaces.candidates():
                yield candidate

    async def _idle(self) -> AsyncIterator[Blob]:
        after: str | None = None
        while blobs := await self._idle_page(after):
            for blob in blobs:
                yield blob
            after = blobs[-1].digest

    async def _idle_page(self, after: str | None) -> list[Blob]:
        now = self._world.clock()
        before, page = now - self._schedule.grace, self._schedule.page
        return await self._catalogue.read(lambda rows: rows.idle_blobs(now, before, after, page))

    async def _in_state(self, state: BlobState) -> AsyncIterator[Candidate]:
        after: str | None = None
        while found := await self._explained(state, after):
            for _, candidate in found:
                yield candidate
            after = found[-1][0]

    async def _explained(self, state: BlobState, after: str | None) -> list[tuple[str, Candidate]]:
        now, page = self._world.clock(), self._schedule.page

        async def explain(rows: Reader) -> list[tuple[str, Candidate]]:
            return [
                (blob.digest, _judged(blob, await rows.references(blob.digest, now), now))
                for blob in await rows.blobs_in(state, after, page)
            ]

        return await self._catalogue.read(explain)


def _judged(blob: Blob, references: list[Reference], now: datetime) -> Candidate:
    if references:
        who = ", ".join(f"{each.kind} {each.who}" for each in references)
        return _candidate(blob, False, f"needed by {who}")
    if blob.delete_after is not None and now < blob.delete_after:
        return _candidate(blob, False, f"can be revived until {_moment(blob.delete_after)}")
    return _candidate(blob, True, "its retention is over and nobody refers to it")


def _candidate(blob: Blob, goes: bool, why: str) -> Candidate:
    return Candidate(f"artifact://blobs/{blob.digest}", blob.length, blob.state, goes, why)


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
