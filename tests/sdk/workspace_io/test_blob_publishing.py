"""Publishing to blobs: answers that are lost, and runs that meet."""

import io
from collections.abc import Callable
from typing import BinaryIO

import pytest

from lucius_contract.documents import Ref
from lucius_contract.errors import ErrorCode
from lucius_sdk.workspace_io import BlobStorage, Source, publish
from lucius_sdk.workspace_io.blob import publishing
from tests.azure_proxy import Refusal
from tests.sdk.workspace_io.far import COMMIT, HEAD, PUT, STAGE
from tests.sdk.workspace_io.objects import Write, both_ways_to_write, pattern
from tests.sdk.workspace_io.proxy import Asked, Fault, Proxy
from tests.sdk.workspace_io.reopening import BLOCK
from tests.sdk.workspace_io.stage import BlobStage, fence, raises

LARGE = 2 * BLOCK + 100


@pytest.fixture
def stage(blob_stage: BlobStage) -> BlobStage:
    return blob_stage


@both_ways_to_write
@pytest.mark.parametrize(
    ("size", "verb"), [(10, PUT), (LARGE, STAGE), (LARGE, COMMIT), (LARGE, HEAD)]
)
@pytest.mark.parametrize("fault", [Fault.LOST, Fault.DROPPED])
def test_what_is_done_twice_because_an_answer_was_lost_is_done_once(
    far: BlobStorage,
    stage: BlobStage,
    proxy: Proxy,
    write: Write,
    size: int,
    verb: str,
    fault: Fault,
) -> None:
    proxy.next(fault, fault, verb=verb)
    write(far, stage.uri("a"), pattern(size))
    assert stage.visible() == {"a": pattern(size)}


@pytest.mark.parametrize(("size", "verb"), [(10, PUT), (LARGE, COMMIT)])
def test_a_publication_whose_answers_are_all_lost_is_whole_and_may_be_repeated(
    far: BlobStorage, stage: BlobStage, proxy: Proxy, size: int, verb: str
) -> None:
    publish(stage.storage, Ref(uri=stage.uri("out")), b"older", fence(1))
    proxy.rule = lambda asked: Fault.LOST if asked.verb == verb else None
    with raises(ErrorCode.STORAGE_UNAVAILABLE):
        publish(far, Ref(uri=stage.uri("out")), pattern(size), fence(2))
    assert stage.visible()["out"] in (b"older", pattern(size))
    proxy.next(Fault.LOST, verb=verb)
    publish(far, Ref(uri=stage.uri("out")), pattern(size), fence(2))
    assert stage.visible() == {"out": pattern(size)}


@pytest.mark.parametrize(("size", "verb"), [(10, PUT), (LARGE, COMMIT)])
def test_a_publication_whose_answer_is_lost_is_not_made_again_over_a_higher_one(
    far: BlobStorage, stage: BlobStage, proxy: Proxy, size: int, verb: str
) -> None:
    out = Ref(uri=stage.uri("out"))

    def overtake(asked: Asked) -> Fault | None:
        if asked.verb != verb or proxy.verbs.count(verb) > 2:
            return None
        if proxy.verbs.count(verb) == 2:
            publish(stage.storage, out, b"newer", fence(3))
        return Fault.LOST

    proxy.rule = overtake
    with raises(ErrorCode.OUTPUT_CONFLICT, "attempt 3"):
        publish(far, out, pattern(size), fence(2))
    assert stage.visible() == {"out": b"newer"}


def test_a_commit_that_failed_may_be_repeated(
    far: BlobStorage, stage: BlobStage, proxy: Proxy
) -> None:
    for name, size, verb in (("a", 10, PUT), ("b", LARGE, COMMIT)):
        sink = far.create(stage.uri(name), "text/plain")
        sink.write(pattern(size))
        proxy.next(*([Fault.LOST] * 4), verb=verb)
        with raises(ErrorCode.STORAGE_UNAVAILABLE):
            sink.commit()
        sink.commit()
        sink.discard()
    assert stage.visible() == {"a": pattern(10), "b": pattern(LARGE)}


def meeting(content: bytes, at: int, meet: Callable[[], object]) -> Source:
    """A source; when it is first read up to there, something happens."""
    opened: list[BinaryIO] = []

    class Met(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if len(opened) == 1 and self.tell() >= at:
                opened.append(self)
                meet()
            return super().read(size)

    def source() -> BinaryIO:
        opened.append(Met(content))
        return opened[-1]

    return source


@pytest.mark.parametrize("other", [10, LARGE])
@pytest.mark.parametrize("at", [0, BLOCK, LARGE])
def test_who_is_overtaken_by_a_lower_fence_replaces_it(
    stage: BlobStage, other: int, at: int
) -> None:
    out = stage.uri("out")
    source = meeting(
        pattern(LARGE), at, lambda: publish(stage.storage, Ref(uri=out), bytes(other), fence(1))
    )
    stage.storage.publish(out, source, fence(2), "text/plain")
    assert stage.visible() == {"out": pattern(LARGE)}
    with raises(ErrorCode.OUTPUT_CONFLICT):
        publish(stage.storage, Ref(uri=out), b"again", fence(1))


@pytest.mark.parametrize("other", [10, LARGE])
@pytest.mark.parametrize("own", [10, LARGE])
def test_who_is_overtaken_by_a_higher_fence_is_refused(
    stage: BlobStage, own: int, other: int
) -> None:
    out = stage.uri("out")
    source = meeting(
        pattern(own), 0, lambda: publish(stage.storage, Ref(uri=out), bytes(other), fence(3))
    )
    with raises(ErrorCode.OUTPUT_CONFLICT, "attempt 3"):
        stage.storage.publish(out, source, fence(2), "text/plain")
    assert stage.visible() == {"out": bytes(other)}


def test_blocks_that_another_commit_took_away_are_staged_again(
    far: BlobStorage, stage: BlobStage, proxy: Proxy
) -> None:
    out = stage.uri("out")
    source = meeting(
        pattern(LARGE),
        2 * BLOCK,
        lambda: publish(stage.storage, Ref(uri=out), bytes(LARGE), fence(1)),
    )
    far.publish(out, source, fence(2), "text/plain")
    assert stage.visible() == {"out": pattern(LARGE)}
    assert proxy.verbs.count(STAGE) == 6


def test_who_is_overtaken_again_and_again_gives_up_for_now(
    far: BlobStorage, stage: BlobStage, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "_TRIES", 3)
    publish(stage.storage, Ref(uri=stage.uri("out")), b"older", fence(1))
    proxy.rule = lambda asked: Refusal(412, "ConditionNotMet") if asked.method == "PUT" else None
    with raises(ErrorCode.STORAGE_UNAVAILABLE, "all the time"):
        publish(far, Ref(uri=stage.uri("out")), b"newer", fence(2))
    assert proxy.verbs.count(PUT) == 3


@pytest.mark.parametrize("size", [0, 10, LARGE])
def test_unfinished_blocks_of_others_are_in_nobodys_way(stage: BlobStage, size: int) -> None:
    left = stage.storage.create(stage.uri("out"), "text/plain")
    left.write(bytes(LARGE))
    left.discard()
    publish(stage.storage, Ref(uri=stage.uri("out")), pattern(size), fence())
    assert stage.visible() == {"out": pattern(size)}


def test_an_unfinished_upload_of_another_kind_is_told(stage: BlobStage) -> None:
    stage.container.get_blob_client("root/out").stage_block("1", b"half")
    with raises(ErrorCode.OUTPUT_CONFLICT, "somebody else's unfinished upload"):
        publish(stage.storage, Ref(uri=stage.uri("out")), pattern(LARGE), fence())


@both_ways_to_write
def test_a_blob_of_another_kind_is_a_conflict(stage: BlobStage, write: Write) -> None:
    stage.container.get_blob_client("root/out").create_append_blob()
    with raises(ErrorCode.OUTPUT_CONFLICT, "InvalidBlobType"):
        write(stage.storage, stage.uri("out"), pattern(LARGE))
