"""What nobody needs goes, and never what somebody needs."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import count
from typing import TypeVar

import pytest

from lucius_artifacts.collection import Candidate, Schedule
from lucius_artifacts.errors import Busy, Gone, NotFound, Refused, Unavailable
from lucius_artifacts.model import RunPhase
from lucius_artifacts.ports.catalogue import Transaction
from lucius_artifacts.ports.jobs import Ended, Running
from lucius_artifacts.states import BlobState
from tests.artifacts.stage import ACME, BOLT, Stage, digest_of, proof_of

T = TypeVar("T")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def _state(stage: Stage, digest: str) -> BlobState:
    return next(blob.state for blob in reversed(stage.rows.blobs.values()) if blob.digest == digest)


async def _pass_and_collect(stage: Stage, *delays: timedelta) -> None:
    for delay in delays:
        stage.let_pass(delay)
        await stage.all.collector.collect()


async def test_content_that_nobody_ever_refers_to_goes_after_grace_and_retention() -> None:
    stage = Stage()
    digest = await stage.upload(b"one")
    await _pass_and_collect(stage, HOUR)
    assert _state(stage, digest) is BlobState.LIVE
    await _pass_and_collect(stage, DAY)
    assert _state(stage, digest) is BlobState.TOMBSTONED
    await _pass_and_collect(stage, 6 * DAY)
    assert stage.has_object(digest)
    await _pass_and_collect(stage, DAY)
    assert _state(stage, digest) is BlobState.DELETED
    assert not stage.objects._frozen
    assert stage.told[-2:] == stage.audited[-2:] == ["blob.tombstoned", "blob.deleted"]
    with pytest.raises(NotFound):
        await stage.all.reading.locate(ACME, f"artifact://blobs/{digest}")


async def test_a_tenant_loses_what_it_does_not_refer_to_although_another_tenant_keeps_it() -> None:
    stage = Stage()
    digest = await stage.upload(b"one", BOLT)
    await stage.publish(b"one", BOLT)
    await stage.upload(b"one")
    uri = f"artifact://blobs/{digest}"
    await _pass_and_collect(stage, DAY, 7 * DAY)
    assert (await stage.all.reading.locate(ACME, uri)).blob.digest == digest
    await _pass_and_collect(stage, HOUR)
    with pytest.raises(NotFound):
        await stage.all.reading.locate(ACME, uri)
    upload = await stage.initiate(b"one")
    with pytest.raises(Refused):
        await stage.all.uploads.dedupe(ACME, upload.upload_id, proof_of(upload, b"one"))
    assert (await stage.all.reading.locate(BOLT, uri)).blob.digest == digest
    assert len(stage.objects._frozen) == 1


async def test_what_a_tenant_brings_again_or_refers_to_stays_its_own() -> None:
    stage = Stage()
    for content in (b"one", b"two"):
        await stage.upload(content, BOLT)
        await stage.publish(content, BOLT, name=content.decode())
        await stage.upload(content)
    await stage.publish(b"two")
    await _pass_and_collect(stage, 5 * DAY)
    await stage.upload(b"one")
    await _pass_and_collect(stage, 5 * DAY)
    for content in (b"one", b"two"):
        await stage.all.reading.locate(ACME, f"artifact://blobs/{digest_of(content)}")


async def test_what_was_deleted_can_be_uploaded_again() -> None:
    stage = Stage()
    digest = await stage.upload(b"one")
    await _pass_and_collect(stage, 2 * DAY, 8 * DAY)
    assert not stage.has_object(digest)
    await stage.upload(b"one", BOLT)
    assert stage.has_object(digest)
    with pytest.raises(NotFound):
        await stage.all.reading.locate(ACME, f"artifact://blobs/{digest}")


async def test_a_published_version_keeps_its_blobs_for_ever() -> None:
    stage = Stage()
    digest = await stage.upload(b"one")
    await stage.publish(b"one")
    await _pass_and_collect(stage, *[400 * DAY] * 3)
    assert stage.has_object(digest)


async def test_a_tombstoned_version_keeps_its_blobs_for_its_retention() -> None:
    stage = Stage()
    digest = await stage.upload(b"one")
    await stage.tombstone(await stage.publish(b"one"), 30 * DAY)
    await _pass_and_collect(stage, *[10 * DAY] * 2)
    assert _state(stage, digest) is BlobState.LIVE
    await _pass_and_collect(stage, 10 * DAY, 8 * DAY)
    assert not stage.has_object(digest)


async def test_a_version_of_another_tenant_keeps_the_blob_too() -> None:
    stage = Stage()
    digest = await stage.upload(b"one")
    await stage.upload(b"one", BOLT)
    await stage.publish(b"one", BOLT)
    await _pass_and_collect(stage, *[9 * DAY] * 3)
    assert stage.has_object(digest)


async def test_a_running_job_keeps_what_it_reads_until_it_has_ended() -> None:
    stage = Stage()
    digest = await stage.upload(b"one")
    await stage.all.reading.hold("job_1", ACME, [f"artifact://blobs/{digest}"])
    stage.ledger.jobs["job_1"] = Running()
    await _pass_and_collect(stage, *[9 * DAY] * 3)
    assert stage.has_object(digest)
    stage.ledger.jobs["job_1"] = Ended(stage.now)
    await _pass_and_collect(stage, 2 * DAY, 8 * DAY)
    assert not stage.has_object(digest)


async def test_a_job_reads_its_input_although_the_version_was_tombstoned() -> None:
    stage = Stage()
    await stage.upload(b"one")
    version = await stage.publish(b"one")
    uri = "artifact://answers/v1/answer.json"
    await stage.all.reading.hold("job_1", ACME, [uri])
    await stage.tombstone(version, timedelta(0))
    with pytest.raises(Gone):
        await stage.all.reading.locate(ACME, uri)
    assert (await stage.all.reading.locate(ACME, uri, "job_1")).blob.length == 3
    with pytest.raises(Gone):
        await stage.all.reading.locate(ACME, uri, "job_2")


async def test_a_hold_waits_a_while_for_its_job_and_no_longer() -> None:
    stage = Stage()
    digest = await stage.upload(b"one")
    await stage.all.reading.hold("job_1", ACME, [f"artifact://blobs/{digest}"])
    assert (await stage.all.collector.collect()).released_jobs == 0
    stage.let_pass(HOUR)
    assert (await stage.all.collector.collect()).released_jobs == 1


async def test_a_ledger_that_cannot_be_asked_deletes_nothing() -> None:
    class Away:
        async def standing(self, _: str) -> Running:
            raise Unavailable("the ledger is away")

    stage = Stage()
    digest = await stage.upload(b"one")
    await stage.all.reading.hold("job_1", ACME, [f"artifact://blobs/{digest}"])
    stage.all.collector._jobs = Away()
    stage.let_pass(9 * DAY)
    with pytest.raises(Unavailable):
        await stage.all.collector.collect()
    assert stage.has_object(digest)


async def test_an_open_upload_keeps_the_blob_that_it_may_prove_to_have() -> None:
    stage = Stage(schedule=Schedule(grace=HOUR, retention=HOUR))
    digest = await stage.upload(b"one")
    await stage.initiate(b"one", BOLT)
    await _pass_and_collect(stage, *[5 * HOUR] * 3)
    assert _state(stage, digest) is BlobState.LIVE


async def test_only_one_collection_is_current() -> None:
    stage = Stage()
    await stage.all.collector._begin()
    with pytest.raises(Busy, match="collects since"):
        await stage.all.collector.collect()


async def test_a_run_that_stood_still_is_abandoned_and_can_sweep_nothing() -> None:
    stage = Stage()
    digest = await stage.upload(b"one")
    await _pass_and_collect(stage, 2 * DAY)
    stage.let_pass(8 * DAY)
    asleep = await stage.all.collector._begin()
    stage.let_pass(timedelta(minutes=10))
    await stage.all.collector.collect()
    assert stage.rows.runs[asleep.run_id].phase is RunPhase.ABANDONED
    await stage.upload(b"one")
    with pytest.raises(Busy, match="was abandoned"):
        await stage.all.collector._sweep(asleep, None)  # type: ignore[arg-type]
    assert stage.has_object(digest)


async def test_content_that_comes_again_at_any_moment_of_a_collection_stays() -> None:
    """Also between the moment at which it was found to be a candidate and its turn."""
    for moment in count():
        stage = Stage()
        digest = await stage.upload(b"one")
        await _pass_and_collect(stage, 2 * DAY)
        stage.let_pass(8 * DAY)
        uploaded = await _collect_with_upload_before(stage, moment)
        if not uploaded:
            break
        assert _state(stage, digest) is BlobState.LIVE
        assert stage.has_object(digest)
    assert moment > 5


async def _collect_with_upload_before(stage: Stage, moment: int) -> bool:
    """A collection, during which the content is uploaded again before so many transactions of it.
    Whether there were as many."""
    change, left = stage.catalogue.change, count(moment, -1)

    async def after_upload(work: Callable[[Transaction], Awaitable[T]]) -> T:
        if next(left) == 0:
            stage.catalogue.change = change  # type: ignore[method-assign]
            await stage.upload(b"one", BOLT)
        return await change(work)

    stage.catalogue.change = after_upload  # type: ignore[method-assign]
    await stage.all.collector.collect()
    return stage.catalogue.change == change


async def test_an_object_that_could_not_be_deleted_is_deleted_by_the_next_collection() -> None:
    stage = Stage()
    await stage.upload(b"one")
    await _pass_and_collect(stage, 2 * DAY)
    stage.let_pass(8 * DAY)
    delete = stage.objects.delete

    async def fails(key: str) -> None:
        raise Unavailable(f"storage is away, with {key}")

    stage.objects.delete = fails  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        await stage.all.collector.collect()
    stage.objects.delete = delete  # type: ignore[method-assign]
    assert (await stage.all.collector.collect()).objects_gone == 1
    assert not stage.objects._frozen


async def test_every_candidate_is_explained_and_nothing_is_changed() -> None:
    stage = Stage()
    idle = await stage.upload(b"idle")
    stage.let_pass(2 * DAY)
    await stage.all.collector.collect()
    waits = idle
    over = await stage.upload(b"over")
    stage.let_pass(2 * DAY)
    before = (dict(stage.rows.blobs), len(stage.rows.runs))
    found: dict[str, Candidate] = {
        each.subject.rpartition("/")[2]: each async for each in stage.all.explainer.candidates()
    }
    assert found[over].goes
    assert "nobody refers to it since" in found[over].why
    assert not found[waits].goes
    assert "can be revived until" in found[waits].why
    assert (dict(stage.rows.blobs), len(stage.rows.runs)) == before
    stage.let_pass(8 * DAY)
    later = {each.subject: each async for each in stage.all.explainer.candidates()}
    assert later[f"artifact://blobs/{waits}"].goes
    assert "retention is over" in later[f"artifact://blobs/{waits}"].why


async def test_a_candidate_that_stays_says_who_needs_it() -> None:
    stage = Stage()
    digest = await stage.upload(b"one")
    await _pass_and_collect(stage, 2 * DAY)
    await stage.initiate(b"one", BOLT)
    (candidate,) = [each async for each in stage.all.explainer.candidates()]
    assert (candidate.goes, candidate.subject) == (False, f"artifact://blobs/{digest}")
    assert "needed by upload up_" in candidate.why
