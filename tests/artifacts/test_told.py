"""What is counted and logged is what was committed, as often as it happened."""

import logging
from datetime import UTC, datetime, timedelta

import pytest

from lucius_artifacts.catalogue.memory import MemoryCatalogue
from lucius_artifacts.errors import Refused
from lucius_artifacts.events import EventType, blob_event, upload_event
from lucius_artifacts.model import Blob, Upload
from lucius_artifacts.ports.catalogue import Transaction
from lucius_artifacts.states import BlobState, UploadState
from lucius_artifacts.telemetry import (
    DELETED,
    DELETED_BYTES,
    EVENTS,
    UPLOAD_BYTES,
    UPLOADS,
    Telemetry,
)
from lucius_artifacts.told import ToldCatalogue
from tests.engine.plane import Recorder

NOW = datetime(2026, 1, 27, tzinfo=UTC)
UPLOAD = Upload(
    "up_1",
    "acme",
    "ab" * 32,
    5,
    4,
    "ob_1",
    challenge="the challenge",
    state=UploadState.ABORTED,
    created_at=NOW,
    created_by="ada",
    expires_at=NOW + timedelta(days=1),
    reason="aborted by ada",
)
BLOB = Blob("ab" * 32, 5, "ob_1", BlobState.DELETED, NOW, NOW)


class Twice(MemoryCatalogue):
    """Runs every change twice, as a catalogue may that met another transaction."""

    async def change(self, work):  # type: ignore[no-untyped-def]
        class Again(Exception):
            pass

        async def first(rows: Transaction) -> None:
            await work(rows)
            raise Again

        try:
            await super().change(first)
        except Again:
            return await super().change(work)


async def commits(rows: Transaction) -> str:
    await rows.put_upload(UPLOAD)
    await rows.emit(upload_event(EventType.UPLOAD_COMMITTED, UPLOAD, NOW))
    return "done"


async def test_what_was_run_twice_is_told_once() -> None:
    told, catalogue = Recorder(), Twice()
    rows = ToldCatalogue(catalogue, Telemetry(told))
    assert await rows.change(commits) == "done"
    assert told.count(UPLOADS, outcome="committed") == 1
    assert told.count(UPLOAD_BYTES) == UPLOAD.length
    assert await rows.read(lambda reader: reader.upload("up_1")) == UPLOAD


async def test_what_was_rolled_back_is_not_told() -> None:
    told = Recorder()
    rows = ToldCatalogue(MemoryCatalogue(), Telemetry(told))

    async def refused(changed: Transaction) -> None:
        await commits(changed)
        raise Refused("no")

    with pytest.raises(Refused):
        await rows.change(refused)
    assert told.counts.total() == 0


async def test_deleted_bytes_are_counted() -> None:
    told = Recorder()
    rows = ToldCatalogue(MemoryCatalogue(), Telemetry(told))
    event = blob_event(EventType.BLOB_DELETED, BLOB, NOW)
    await rows.change(lambda changed: changed.emit(event))
    assert (told.count(DELETED), told.count(DELETED_BYTES)) == (1, 5)


async def test_an_event_is_a_record_with_the_fields_that_the_table_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    rows = ToldCatalogue(MemoryCatalogue(), Telemetry())
    event = upload_event(EventType.UPLOAD_ABORTED, UPLOAD, NOW)
    await rows.change(lambda changed: changed.emit(event))
    (record,) = caplog.records
    (info,) = [info for info in EVENTS if info.name == record.msg]
    assert (record.name, record.levelname) == ("lucius_artifacts", info.level)
    said = {name: vars(record)[name] for name in info.fields}
    assert said == {
        "tenant_id": "acme",
        "upload_id": "up_1",
        "digest": "ab" * 6,
        "length": 5,
        "reason": "aborted by ada",
    }
    assert "the challenge" not in repr(vars(record))


async def test_it_is_checked_and_closed_as_the_catalogue_is() -> None:
    rows = ToldCatalogue(MemoryCatalogue(), Telemetry())
    await rows.check()
    await rows.close()
