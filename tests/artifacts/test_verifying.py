"""Verification beside the requests that ask for it."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from lucius_artifacts.catalogue.memory import MemoryCatalogue
from lucius_artifacts.errors import Refused, Unavailable
from lucius_artifacts.model import Upload
from lucius_artifacts.objects.memory import MemoryObjects
from lucius_artifacts.states import UploadState
from lucius_artifacts.telemetry import EVENTS
from lucius_artifacts.uploading import Uploads
from lucius_artifacts.verifying import Verifications
from lucius_artifacts.world import Limits, World
from tests.runner.deadlines import DEADLINE

NOW = datetime(2026, 1, 27, tzinfo=UTC)
PATIENT, HURRIED = timedelta(seconds=DEADLINE), timedelta(0)
TENANT = "acme"


class GatedObjects(MemoryObjects):
    def __init__(self) -> None:
        super().__init__(lambda: NOW)
        self.gate = asyncio.Event()
        self.reading = self.most = 0
        self.is_broken = False

    async def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        self.reading += 1
        self.most = max(self.most, self.reading)
        try:
            await self.gate.wait()
            if self.is_broken:
                raise Unavailable("the disk is away")
            async for chunk in super().read(key, start, end):
                yield chunk
        finally:
            self.reading -= 1


class Bench:
    def __init__(self) -> None:
        numbers = iter(range(1, 10_000))
        world = World(lambda: NOW, lambda size: next(numbers).to_bytes(size))
        self.objects = GatedObjects()
        self.uploads = Uploads(MemoryCatalogue(), self.objects, world, Limits())
        self.verifications = Verifications(self.uploads, at_once=2)

    async def brought(self, content: bytes) -> Upload:
        digest = hashlib.sha256(content).hexdigest()
        upload = await self.uploads.initiate(TENANT, "ada", digest, len(content))
        await self.uploads.sign_parts(TENANT, upload.upload_id, [1])
        await self.objects.put_part(upload.object_key, 1, len(content), _once(content))
        return upload

    async def complete(self, upload: Upload, patience: timedelta = PATIENT) -> Upload:
        return await self.verifications.complete(TENANT, upload.upload_id, patience)

    async def ended(self) -> None:
        """Every verification that was begun."""
        async with asyncio.timeout(DEADLINE):
            while self.objects.reading:
                await asyncio.sleep(0)


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def test_no_more_contents_are_read_at_once_than_allowed() -> None:
    bench = Bench()
    uploads = [await bench.brought(bytes([number])) for number in range(6)]
    waiting = [await bench.complete(upload, HURRIED) for upload in uploads]
    assert {upload.state for upload in waiting} == {UploadState.PENDING_COMMIT}
    bench.objects.gate.set()
    done = [await bench.complete(upload) for upload in uploads]
    assert {upload.state for upload in done} == {UploadState.COMMITTED}
    assert bench.objects.most == 2


async def test_parts_that_are_missing_are_told_at_once_however_many_wait() -> None:
    bench = Bench()
    for number in range(3):
        await bench.complete(await bench.brought(bytes([number])), HURRIED)
    upload = await bench.uploads.initiate(TENANT, "ada", "ab" * 32, 5)
    await bench.uploads.sign_parts(TENANT, upload.upload_id, [])
    with pytest.raises(Refused, match="parts are missing"):
        await bench.complete(upload)
    await bench.verifications.close()


async def test_whoever_waits_gets_the_error_and_the_next_one_tries_again() -> None:
    bench = Bench()
    upload = await bench.brought(b"content")
    bench.objects.gate.set()
    bench.objects.is_broken = True
    with pytest.raises(Unavailable, match="disk"):
        await bench.complete(upload)
    bench.objects.is_broken = False
    assert (await bench.complete(upload)).state is UploadState.COMMITTED


async def test_an_error_that_nobody_waits_for_is_told_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    upload = await bench.brought(b"content")
    bench.objects.is_broken = True
    await bench.complete(upload, HURRIED)
    with caplog.at_level(logging.WARNING):
        bench.objects.gate.set()
        await bench.ended()
        await asyncio.sleep(0)
    (record,) = caplog.records
    (info,) = [info for info in EVENTS if info.name == record.msg]
    assert {name: vars(record)[name] for name in info.fields} == {
        "upload_id": upload.upload_id,
        "error": "Unavailable: the disk is away",
    }


async def test_a_waiter_that_gives_up_does_not_end_the_verification() -> None:
    bench = Bench()
    upload = await bench.brought(b"content")
    waiting = asyncio.create_task(bench.complete(upload))
    while not bench.objects.reading:
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    bench.objects.gate.set()
    assert (await bench.complete(upload)).state is UploadState.COMMITTED


async def test_after_a_close_nothing_is_begun_and_nothing_runs() -> None:
    bench = Bench()
    upload = await bench.brought(b"content")
    await bench.complete(upload, HURRIED)
    await bench.verifications.close()
    assert bench.objects.reading == 0
    with pytest.raises(Unavailable, match="ask again"):
        await bench.complete(upload)
    assert (await bench.uploads.find(upload.upload_id)).state is UploadState.PENDING_COMMIT
