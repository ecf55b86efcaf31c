"""A catalogue and objects that several processes share, named by what fits on a command line."""

import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from lucius_artifacts.artifacts import Artifacts, Rules
from lucius_artifacts.collection import Schedule
from lucius_artifacts.ports.catalogue import Catalogue
from lucius_artifacts.ports.jobs import Ended, Running, Standing, Unknown
from lucius_artifacts.ports.objects import Objects
from lucius_artifacts.signing import UrlSigner
from lucius_artifacts.world import Limits, World

LIMITS = Limits(
    part_size=1000,
    url_lifetime=timedelta(minutes=5),
    session_lifetime=timedelta(milliseconds=500),
    superseded_retention=timedelta(milliseconds=50),
)
SCHEDULE = Schedule(
    grace=timedelta(milliseconds=50),
    retention=timedelta(milliseconds=50),
    lease=timedelta(milliseconds=500),
    page=3,
)


@dataclass(frozen=True)
class Place:
    """`folder` has the jobs; the catalogue and the objects too, unless addresses name others."""

    folder: str
    database: str | None = None
    storage: str | None = None
    container: str = "artifacts"

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Self:
        return cls(**json.loads(text))


class JobFiles:
    """A file for each job that was created: what it reads, and a second line when it ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)

    async def standing(self, job_id: str) -> Standing:
        try:
            lines = (self._folder / job_id).read_text().split()
        except FileNotFoundError:
            return Unknown()
        return Running() if len(lines) == 1 else Ended(datetime.now(UTC))

    def create(self, job_id: str, digest: str) -> None:
        new = self._folder / f".{job_id}"
        new.write_text(digest)
        new.rename(self._folder / job_id)

    def end(self, job_id: str) -> None:
        with (self._folder / job_id).open("a") as file:
            file.write("\nended")

    def running(self) -> dict[str, str]:
        """What the running ones read."""
        lines = {file.name: file.read_text().split() for file in self._folder.glob("[!.]*")}
        return {job_id: found[0] for job_id, found in lines.items() if len(found) == 1}


Wrap = Callable[[Catalogue, Objects], tuple[Catalogue, Objects]]


@asynccontextmanager
async def opened(
    place: Place,
    later: timedelta = timedelta(0),
    wrap: Wrap | None = None,
    limits: Limits = LIMITS,
) -> AsyncIterator[Artifacts]:
    """`later` is by how much the clock is ahead."""

    def clock() -> datetime:
        return datetime.now(UTC) + later

    catalogue, objects = await _catalogue(place), await _objects(place, clock)
    seen = (catalogue, objects) if wrap is None else wrap(catalogue, objects)
    jobs, world = JobFiles(Path(place.folder, "jobs")), World(clock, os.urandom)
    try:
        yield Artifacts.over(*seen, jobs, world, Rules(limits=limits, schedule=SCHEDULE))
    finally:
        await catalogue.close()
        await objects.close()


async def _catalogue(place: Place) -> Catalogue:
    if place.database is None:
        from lucius_artifacts.catalogue.sqlite import SqliteCatalogue

        return await SqliteCatalogue.open(Path(place.folder, "artifacts.db"))
    from lucius_artifacts.catalogue.postgres import PostgresCatalogue

    return await PostgresCatalogue.open(place.database, pool_size=2)


async def _objects(place: Place, clock: Callable[[], datetime]) -> Objects:
    if place.storage is None:
        from lucius_artifacts.objects.files import FileObjects

        signer = UrlSigner([b"k" * 32], clock)
        return FileObjects(Path(place.folder, "objects"), signer, "http://127.0.0.1")
    from lucius_artifacts.objects.azure_blob import AzureBlobObjects
    from lucius_azure.storage import StorageAccount
    from lucius_settings.secret import Secret

    return await AzureBlobObjects.open(StorageAccount(Secret(place.storage)), place.container)
