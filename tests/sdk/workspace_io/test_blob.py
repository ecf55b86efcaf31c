"""Blobs: what a request costs, what is stored, and what is read."""

import gzip
import threading
import time
import tracemalloc

import pytest
from azure.storage.blob import ContentSettings

from lucius_contract.documents import Ref
from lucius_contract.errors import ErrorCode
from lucius_sdk.workspace_io import BlobStorage, Fence, publish
from lucius_sdk.workspace_io.blob import uploading
from tests.runner.deadlines import DEADLINE
from tests.sdk.workspace_io.far import COMMIT, GET, HEAD, PUT, STAGE
from tests.sdk.workspace_io.objects import Write, both_ways_to_write, create, pattern, read
from tests.sdk.workspace_io.objects import publish as publish_at
from tests.sdk.workspace_io.proxy import Fault, Proxy
from tests.sdk.workspace_io.reopening import BLOCK
from tests.sdk.workspace_io.stage import BlobStage, fence, raises

LARGE = 2 * BLOCK + 100


@pytest.fixture
def stage(blob_stage: BlobStage) -> BlobStage:
    return blob_stage


def test_what_fits_into_a_block_costs_one_request(
    far: BlobStorage, stage: BlobStage, proxy: Proxy
) -> None:
    create(far, stage.uri("a"), pattern(BLOCK))
    publish_at(far, stage.uri("b"), pattern(BLOCK))
    assert read(far, stage.uri("a")) == pattern(BLOCK)
    assert proxy.verbs == [PUT, PUT, GET]


def test_more_costs_one_for_each_block_and_one_for_the_commit(
    far: BlobStorage, stage: BlobStage, proxy: Proxy
) -> None:
    create(far, stage.uri("a"), pattern(LARGE))
    assert proxy.verbs == [STAGE, STAGE, STAGE, COMMIT]
    proxy.asked.clear()
    assert read(far, stage.uri("a")) == pattern(LARGE)
    assert proxy.verbs == [GET, GET, GET]


def test_a_run_that_has_no_chance_stages_nothing(
    far: BlobStorage, stage: BlobStage, proxy: Proxy
) -> None:
    publish(stage.storage, Ref(uri=stage.uri("out")), b"newer", fence(2))
    with raises(ErrorCode.OUTPUT_CONFLICT):
        publish(far, Ref(uri=stage.uri("out")), pattern(LARGE), fence(1))
    assert proxy.verbs == [HEAD]


@pytest.mark.parametrize("size", [10, LARGE])
def test_every_request_that_carries_content_carries_its_checksum(
    far: BlobStorage, stage: BlobStage, proxy: Proxy, size: int
) -> None:
    create(far, stage.uri("a"), pattern(size))
    assert all("content-md5" in asked.headers for asked in proxy.asked)


@both_ways_to_write
@pytest.mark.parametrize(("size", "verb"), [(10, PUT), (LARGE, STAGE)])
def test_what_was_spoiled_on_its_way_is_not_written(
    far: BlobStorage, stage: BlobStage, proxy: Proxy, write: Write, size: int, verb: str
) -> None:
    proxy.next(Fault.SPOILED, verb=verb)
    with raises(ErrorCode.STORAGE_UNAVAILABLE):
        write(far, stage.uri("a"), pattern(size))
    assert stage.visible() == {}
    write(far, stage.uri("a"), pattern(size))
    assert stage.visible() == {"a": pattern(size)}


def test_a_large_blob_takes_the_memory_of_a_few_blocks(stage: BlobStage) -> None:
    size = 64 * BLOCK
    piece = pattern(BLOCK)
    tracemalloc.start()
    try:
        sink = stage.storage.create(stage.uri("a"), "application/octet-stream")
        for _ in range(size // BLOCK):
            sink.write(piece)
        sink.commit()
        stage.storage.publish(
            stage.uri("b"), lambda: stage.storage.open_read(stage.uri("a")), fence(), "a/b"
        )
        with stage.storage.open_read(stage.uri("b")) as stream:
            read_back = sum(len(chunk) for chunk in iter(lambda: stream.read(BLOCK), b""))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read_back == size
    assert peak < size / 3


def test_more_than_the_service_takes_is_refused(
    stage: BlobStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploading, "MOST_BLOCKS", 3)
    create(stage.storage, stage.uri("a"), bytes(3 * BLOCK))
    with raises(ErrorCode.INTERNAL, f"more than {3 * BLOCK} bytes"):
        create(stage.storage, stage.uri("b"), bytes(3 * BLOCK + 1))
    assert list(stage.visible()) == ["a"]


def test_the_media_type_is_the_blobs_content_type(stage: BlobStage) -> None:
    for name, size in (("small", 10), ("large", LARGE)):
        sink = stage.storage.create(stage.uri(f"a/{name}"), "text/plain; charset=utf-8")
        sink.write(pattern(size))
        sink.commit()
        content = pattern(size)
        publish(stage.storage, Ref(uri=stage.uri(f"b/{name}")), content, fence(), "image/png")
        kinds = [
            stage.container.get_blob_client(f"root/{folder}/{name}")
            .get_blob_properties()
            .content_settings.content_type
            for folder in ("a", "b")
        ]
        assert kinds == ["text/plain; charset=utf-8", "image/png"]


@pytest.mark.parametrize("media_type", ["text/plain\r\nx-ms-meta-a: b", "text/é", "a\0"])
def test_a_media_type_that_is_no_header_is_a_defect(stage: BlobStage, media_type: str) -> None:
    with raises(ErrorCode.INTERNAL, "no media type"):
        stage.storage.create(stage.uri("a"), media_type)
    with raises(ErrorCode.INTERNAL, "no media type"):
        publish(stage.storage, Ref(uri=stage.uri("a")), b"", fence(), media_type)


@pytest.mark.parametrize("size", [10, LARGE])
def test_the_fence_is_in_the_metadata_where_people_can_read_it(stage: BlobStage, size: int) -> None:
    by = Fence("Söhne", "job_é", "step_03", 2, 1)
    publish(stage.storage, Ref(uri=stage.uri("out")), pattern(size), by)
    found = stage.container.get_blob_client("root/out").get_blob_properties().metadata
    assert found["lucius_fence"] == "S%C3%B6hne/job_%C3%A9/step_03/2/1"


def test_a_fence_is_known_however_its_name_is_spelled(stage: BlobStage) -> None:
    blob = stage.container.upload_blob("root/out", b"newer")
    blob.set_blob_metadata({"Lucius_Fence": fence(2).to_header()})
    with raises(ErrorCode.OUTPUT_CONFLICT, "attempt 2"):
        publish(stage.storage, Ref(uri=stage.uri("out")), b"older", fence(1))


def test_what_says_to_be_compressed_is_read_as_it_is_stored(stage: BlobStage) -> None:
    packed = gzip.compress(pattern(3 * BLOCK), mtime=0) + bytes(BLOCK)
    settings = ContentSettings(content_encoding="gzip")
    stage.container.upload_blob("root/a", packed, content_settings=settings)
    assert read(stage.storage, stage.uri("a")) == packed


@pytest.mark.parametrize("name", ["a.", "folder./a", "a%2E"])
def test_names_that_the_service_would_change_are_not_written(stage: BlobStage, name: str) -> None:
    with raises(ErrorCode.OUTPUT_UNSUPPORTED, "ends with a dot"):
        create(stage.storage, stage.uri(name))


@pytest.mark.parametrize("other", [bytes(LARGE), b"short"])
def test_a_blob_that_is_replaced_while_it_is_read_is_an_error_and_never_a_mix(
    stage: BlobStage, other: bytes
) -> None:
    stage.put(stage.uri("a"), pattern(LARGE))
    with stage.storage.open_read(stage.uri("a")) as stream:
        assert stream.read(10) == pattern(10)
        stage.put(stage.uri("a"), other)
        with raises(ErrorCode.STORAGE_UNAVAILABLE, "was replaced while it was read"):
            stream.read()
    assert read(stage.storage, stage.uri("a")) == other


@pytest.mark.parametrize("fault", [Fault.DROPPED, Fault.CUT])
def test_a_connection_that_breaks_while_it_is_read_is_made_again(
    far: BlobStorage,
    stage: BlobStage,
    proxy: Proxy,
    fault: Fault,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    stage.put(stage.uri("a"), pattern(LARGE))
    proxy.next(None, fault, fault, verb=GET)
    assert read(far, stage.uri("a")) == pattern(LARGE)


def test_one_that_breaks_each_time_is_a_passing_fault(
    far: BlobStorage, stage: BlobStage, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    stage.put(stage.uri("a"), pattern(LARGE))
    with far.open_read(stage.uri("a")) as stream:
        proxy.rule = lambda _: Fault.CUT
        with raises(ErrorCode.STORAGE_UNAVAILABLE):
            stream.read()


def test_many_threads_share_one_storage(stage: BlobStage) -> None:
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            create(stage.storage, stage.uri(f"{number}"), pattern(number))
            assert read(stage.storage, stage.uri(f"{number}")) == pattern(number)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert failed == []
    assert stage.visible() == {f"{number}": pattern(number) for number in range(40)}
