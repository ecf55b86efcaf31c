"""From a session to verified content."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from lucius_artifacts.errors import Busy, Gone, Invalid, NotFound, Refused
from lucius_artifacts.signing import SignatureRefused
from lucius_artifacts.states import BlobState, UploadState
from lucius_artifacts.world import Limits
from tests.artifacts.stage import ACME, BOLT, Stage, chunks, digest_of, proof_of

CONTENT = b"ten bytes!"


async def test_parts_come_in_any_order_and_as_often_as_they_like() -> None:
    stage = Stage()
    upload = await stage.initiate(CONTENT)
    one, two, three = await stage.sign(upload)
    await stage.put(upload, [three, one, three, two, one], CONTENT)
    ended = await stage.complete(upload)
    assert ended.state is UploadState.COMMITTED
    located = await stage.all.reading.locate(ACME, f"artifact://blobs/{upload.digest}")
    assert b"".join([chunk async for chunk in stage.all.reading.content(located)]) == CONTENT
    assert stage.told == ["upload.committed"]


async def test_an_empty_content_has_no_parts() -> None:
    stage = Stage()
    digest = await stage.upload(b"")
    assert stage.rows.blobs[stage.rows.object_keys[digest]].length == 0


async def test_a_session_shows_which_parts_have_come() -> None:
    stage = Stage()
    upload = await stage.initiate(CONTENT)
    parts = await stage.sign(upload)
    await stage.put(upload, parts[::2], CONTENT)
    progress = await stage.all.uploads.progress(ACME, upload.upload_id)
    assert progress.received == {1: 4, 3: 2}


async def test_a_missing_part_is_named_and_the_session_goes_on() -> None:
    stage = Stage()
    upload = await stage.initiate(CONTENT)
    parts = await stage.sign(upload)
    await stage.put(upload, parts[:2], CONTENT)
    with pytest.raises(Refused, match="1 of 3 parts are missing or have another size: bring 3"):
        await stage.complete(upload)
    await stage.put(upload, await stage.sign(upload), CONTENT)
    assert (await stage.complete(upload)).state is UploadState.COMMITTED


async def test_other_bytes_than_announced_abort_the_session_and_nothing_is_visible() -> None:
    stage = Stage()
    upload = await stage.initiate(CONTENT)
    await stage.put(upload, await stage.sign(upload), b"TEN bytes!")
    ended = await stage.complete(upload)
    assert ended.state is UploadState.ABORTED
    assert "has the digest" in str(ended.reason)
    assert not stage.rows.blobs
    assert stage.told == ["upload.aborted"]
    assert stage.audited == ["upload.aborted"]
    with pytest.raises(NotFound):
        await stage.all.reading.locate(ACME, f"artifact://blobs/{upload.digest}")


async def test_what_was_committed_does_not_change_by_a_late_part() -> None:
    stage = Stage()
    upload = await stage.initiate(CONTENT)
    parts = await stage.sign(upload)
    await stage.put(upload, parts, CONTENT)
    await stage.complete(upload)
    with pytest.raises(Gone):
        await stage.objects.redeem_put(parts[0].request.url, chunks(b"EVIL"))
    assert (await stage.complete(upload)).state is UploadState.COMMITTED


async def test_an_address_is_good_for_a_while_only() -> None:
    stage = Stage()
    upload = await stage.initiate(CONTENT)
    (first, *_) = await stage.sign(upload)
    stage.let_pass(timedelta(hours=1, seconds=1))
    with pytest.raises(SignatureRefused):
        await stage.objects.redeem_put(first.request.url, chunks(CONTENT[:4]))


async def test_content_that_a_tenant_brings_twice_is_stored_once_and_the_other_object_goes() -> (
    None
):
    stage = Stage()
    digest = await stage.upload(CONTENT)
    assert await stage.upload(CONTENT) == digest
    assert len(stage.rows.blobs) == 1
    stage.let_pass(timedelta(hours=1))
    report = await stage.all.collector.collect()
    assert (report.objects_gone, len(stage.objects._frozen)) == (1, 1)


async def test_each_of_two_tenants_reads_the_object_that_it_has_brought() -> None:
    stage = Stage()
    for tenant_id in (ACME, BOLT):
        upload = await stage.initiate(CONTENT, tenant_id)
        await stage.put(upload, await stage.sign(upload), CONTENT)
        await stage.complete(upload)
        located = await stage.all.reading.locate(tenant_id, f"artifact://blobs/{upload.digest}")
        assert located.object_key == upload.object_key
        assert b"".join([chunk async for chunk in stage.all.reading.content(located)]) == CONTENT
    assert len(stage.rows.blobs) == 1


async def test_the_fast_path_with_a_proof_brings_no_bytes() -> None:
    stage = Stage()
    await stage.upload(CONTENT, BOLT)
    digest = await stage.upload(CONTENT)
    before = await stage.all.reading.locate(ACME, f"artifact://blobs/{digest}")
    upload = await stage.initiate(CONTENT)
    ended = await stage.all.uploads.dedupe(ACME, upload.upload_id, proof_of(upload, CONTENT))
    assert ended.state is UploadState.COMMITTED
    located = await stage.all.reading.locate(ACME, f"artifact://blobs/{digest}")
    assert (located.blob.length, located.object_key) == (10, before.object_key)
    again = await stage.all.uploads.dedupe(ACME, upload.upload_id, "")
    assert again == ended


async def test_the_fast_path_reads_nothing_that_another_tenant_has_brought() -> None:
    stage = Stage()
    await stage.upload(CONTENT)
    read: list[str] = []

    async def noted(key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        read.append(key)
        yield b""

    stage.objects.read = noted  # type: ignore[method-assign]
    upload = await stage.initiate(CONTENT, BOLT)
    with pytest.raises(Refused, match="no such content here"):
        await stage.all.uploads.dedupe(BOLT, upload.upload_id, proof_of(upload, CONTENT))
    assert read == []


async def test_a_digest_alone_gives_nobody_the_content_of_another_tenant() -> None:
    stage = Stage()
    digest = await stage.upload(CONTENT)
    with pytest.raises(NotFound):
        await stage.all.reading.locate(BOLT, f"artifact://blobs/{digest}")
    upload = await stage.initiate(CONTENT, BOLT)
    with pytest.raises(Refused) as known:
        await stage.all.uploads.dedupe(BOLT, upload.upload_id, proof_of(upload, b"a guess"))
    other = await stage.initiate(b"never seen", BOLT)
    with pytest.raises(Refused) as unknown:
        await stage.all.uploads.dedupe(BOLT, other.upload_id, proof_of(other, b"never seen"))
    assert str(known.value) == str(unknown.value)


async def test_a_session_has_one_try_to_prove() -> None:
    stage = Stage()
    await stage.upload(CONTENT)
    upload = await stage.initiate(CONTENT)
    for proof in ("wrong", proof_of(upload, CONTENT)):
        with pytest.raises(Refused):
            await stage.all.uploads.dedupe(ACME, upload.upload_id, proof)
    await stage.put(upload, await stage.sign(upload), CONTENT)
    assert (await stage.complete(upload)).state is UploadState.COMMITTED


async def test_the_proof_of_one_session_is_none_for_another() -> None:
    stage = Stage()
    await stage.upload(CONTENT)
    mine, other = await stage.initiate(CONTENT), await stage.initiate(CONTENT)
    with pytest.raises(Refused):
        await stage.all.uploads.dedupe(ACME, other.upload_id, proof_of(mine, CONTENT))


async def test_an_aborted_session_is_over_and_its_parts_go_when_no_address_is_left() -> None:
    stage = Stage()
    upload = await stage.initiate(CONTENT)
    await stage.put(upload, await stage.sign(upload), CONTENT)
    for _ in range(2):
        ended = await stage.all.uploads.abort(ACME, upload.upload_id, "ann")
        assert ended.state is UploadState.ABORTED
    with pytest.raises(Refused, match="is aborted"):
        await stage.sign(upload)
    assert (await stage.all.collector.collect()).objects_gone == 0
    stage.let_pass(timedelta(hours=1))
    assert (await stage.all.collector.collect()).objects_gone == 1
    assert not stage.objects._places


async def test_a_session_expires_and_is_then_aborted() -> None:
    stage = Stage()
    upload = await stage.initiate(CONTENT)
    stage.let_pass(timedelta(hours=24))
    with pytest.raises(Refused, match="has expired: begin a new one"):
        await stage.sign(upload)
    assert (await stage.all.collector.collect()).expired_uploads == 1
    assert stage.rows.uploads[upload.upload_id].state is UploadState.ABORTED


async def test_a_committed_session_cannot_be_aborted() -> None:
    stage = Stage()
    upload = await stage.initiate(b"")
    await stage.sign(upload)
    await stage.complete(upload)
    with pytest.raises(Refused, match="is committed"):
        await stage.all.uploads.abort(ACME, upload.upload_id, "ann")


async def test_the_session_of_another_tenant_does_not_exist() -> None:
    stage = Stage()
    upload = await stage.initiate(CONTENT)
    with pytest.raises(NotFound, match=upload.upload_id):
        await stage.all.uploads.progress(BOLT, upload.upload_id)


async def test_a_tenant_has_so_many_open_sessions_and_no_more() -> None:
    stage = Stage(Limits(max_open_uploads=2))
    await stage.initiate(b"a")
    await stage.initiate(b"b")
    with pytest.raises(Busy, match="2 uploads are open: complete or abort some"):
        await stage.initiate(b"c")
    await stage.initiate(b"c", BOLT)


@pytest.mark.parametrize(
    ("digest", "length", "part_size", "field"),
    [
        ("no digest", 1, None, "digest"),
        (digest_of(b"").upper(), 1, None, "digest"),
        (digest_of(b""), -1, None, "length"),
        (digest_of(b""), 65 * 1024**3, None, "length"),
        (digest_of(b""), 10_001, 1, "part_size"),
        (digest_of(b""), 1, 0, "part_size"),
        (digest_of(b""), 1, 65 * 1024**2, "part_size"),
    ],
)
async def test_what_can_never_work_is_said_at_once(
    digest: str, length: int, part_size: int | None, field: str
) -> None:
    stage = Stage()
    with pytest.raises(Invalid) as refused:
        await stage.all.uploads.initiate(ACME, "ann", digest, length, part_size)
    assert refused.value.field == field
    assert not stage.rows.uploads


@pytest.mark.parametrize("numbers", [[0], [4], [1] * 1001])
async def test_only_parts_that_the_content_has_are_signed(numbers: list[int]) -> None:
    stage = Stage()
    upload = await stage.initiate(CONTENT)
    with pytest.raises(Invalid, match="parts"):
        await stage.all.uploads.sign_parts(ACME, upload.upload_id, numbers)


async def test_content_that_is_about_to_be_deleted_is_revived_by_an_upload() -> None:
    stage = Stage()
    digest = await stage.upload(CONTENT)
    stage.let_pass(timedelta(days=2))
    await stage.all.collector.collect()
    assert stage.blob(digest).state is BlobState.TOMBSTONED
    await stage.upload(CONTENT, BOLT)
    assert stage.blob(digest).state is BlobState.LIVE


async def test_parts_whose_place_comes_after_the_abort_are_deleted_all_the_same() -> None:
    stage = Stage()
    upload = await stage.initiate(CONTENT)
    begin = stage.objects.begin

    async def late(key: str) -> None:
        await stage.all.uploads.abort(ACME, upload.upload_id, "ann")
        await stage.all.collector.collect()
        await begin(key)

    stage.objects.begin = late  # type: ignore[method-assign]
    await stage.sign(upload)
    stage.let_pass(timedelta(hours=1))
    await stage.all.collector.collect()
    assert not stage.objects._places
