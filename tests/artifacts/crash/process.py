"""One user of artifacts, as a process that may be killed at any moment.

    python -m tests.artifacts.crash.process PLACE SEED CALLS

It uploads, publishes, tombstones, starts and ends jobs and collects, at random, and kills itself
before or after the storage call of this number.
"""

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from lucius_artifacts.artifacts import Artifacts
from lucius_artifacts.errors import ArtifactsError
from lucius_artifacts.model import Fence, Producer
from lucius_artifacts.ports.catalogue import Catalogue
from lucius_artifacts.ports.objects import Objects
from lucius_artifacts.publishing import Author, NewEntry
from tests.artifacts.crash.place import JobFiles, Place, opened

TENANTS = ("acme", "bolt")
CONTENTS = tuple(bytes([number]) * (300 * number) for number in range(1, 11))
DIGESTS = tuple(sha256(content).hexdigest() for content in CONTENTS)
_CALLS = {"change", "read", "begin", "put_part", "parts", "freeze", "delete"}


class Fuse:
    """Counts calls, and ends the process at one of them: before its effect or after it."""

    def __init__(self, calls: int) -> None:
        self._left = calls

    def burn(self) -> None:
        self._left -= 1
        if self._left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


class Fused:
    def __init__(self, inner: Any, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        # Objects are read with an async generator, rows with a coroutine: only calls are counted.
        if name not in _CALLS or not asyncio.iscoroutinefunction(found):
            return found

        async def call(*arguments: Any) -> Any:
            self._fuse.burn()
            result = await found(*arguments)
            self._fuse.burn()
            return result

        return call


class User:
    def __init__(self, artifacts: Artifacts, jobs: JobFiles, chance: random.Random) -> None:
        self._artifacts = artifacts
        self._jobs = jobs
        self._chance = chance

    async def act(self) -> None:
        acts: list[Callable[[], Awaitable[object]]] = [
            self._upload,
            self._upload,
            self._upload,
            self._publish,
            self._publish,
            self._withdraw,
            self._withdraw,
            self._start_job,
            self._end_job,
            self._artifacts.collector.collect,
            self._artifacts.collector.collect,
        ]
        with suppress(ArtifactsError):
            await self._chance.choice(acts)()

    async def _upload(self) -> None:
        tenant_id, content = self._chance.choice(TENANTS), self._chance.choice(CONTENTS)
        uploads = self._artifacts.uploads
        digest = sha256(content).hexdigest()
        upload = await uploads.initiate(tenant_id, "ann", digest, len(content))
        numbers = list(range(1, upload.part_count + 1))
        await uploads.sign_parts(tenant_id, upload.upload_id, numbers)
        self._chance.shuffle(numbers)
        for number in numbers:
            start = (number - 1) * upload.part_size
            piece = content[start : start + upload.part_size]
            put = self._artifacts.objects.put_part
            await put(upload.object_key, number, len(piece), chunks(piece))
        match self._chance.randrange(8):
            case 0:
                await uploads.abort(tenant_id, upload.upload_id, "ann")
            case 1:
                return  # and never come back
            case _:
                await uploads.complete(tenant_id, upload.upload_id)

    async def _publish(self) -> None:
        producer = None
        if self._chance.random() < 0.5:
            fence = Fence(f"step_0{self._chance.randint(1, 2)}", self._chance.randint(1, 3), 1)
            producer = Producer(f"job_{self._chance.randint(1, 5)}", fence)
        author = Author(self._chance.choice(TENANTS), "ann", producer)
        chosen = self._chance.sample(DIGESTS, self._chance.randint(1, 2))
        entries = [NewEntry(digest[:8], digest) for digest in chosen]
        await self._artifacts.publishing.publish(author, "answers", entries)

    async def _withdraw(self) -> None:
        tenant_id = self._chance.choice(TENANTS)
        page = await self._artifacts.catalogue.read(
            lambda rows: rows.versions(tenant_id, "answers", None, 5)
        )
        for version in page:
            with suppress(ArtifactsError):
                await self._artifacts.publishing.tombstone(
                    Author(tenant_id, "ann"),
                    "answers",
                    version.number,
                    authorized=True,
                    retention=self._artifacts.collector._schedule.grace,
                    reason="wrong",
                )

    async def _start_job(self) -> None:
        digest, job_id = self._chance.choice(DIGESTS), f"run-{os.urandom(6).hex()}"
        uri = f"artifact://blobs/{digest}"
        await self._artifacts.reading.hold(job_id, self._chance.choice(TENANTS), [uri])
        self._jobs.create(job_id, digest)

    async def _end_job(self) -> None:
        """Seldom: most of them run for long."""
        running = sorted(self._jobs.running())
        if len(running) > 5:
            self._jobs.end(self._chance.choice(running))


async def chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def main(place: Place, seed: int, calls: int) -> None:
    fuse = Fuse(calls)

    def fused(catalogue: Catalogue, objects: Objects) -> Any:
        return Fused(catalogue, fuse), Fused(objects, fuse)

    async with opened(place, wrap=fused) as artifacts:
        jobs = JobFiles(Path(place.folder, "jobs"))
        user = User(artifacts, jobs, random.Random(seed))
        while True:
            await user.act()
            print(".", end="", flush=True)


if __name__ == "__main__":
    asyncio.run(main(Place.from_text(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
