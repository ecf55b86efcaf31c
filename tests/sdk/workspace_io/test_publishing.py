"""Publishing: newer work is never replaced by older work, whoever comes last."""

import itertools
import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lucius_contract.documents import Ref
from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io import Fence, Input, Storage, Workspace, publish
from tests.runner.deadlines import DEADLINE
from tests.runner.tiers import examples
from tests.sdk.workspace_io.reopening import BLOCK
from tests.sdk.workspace_io.stage import (
    OF_AN_EARLIER_RELEASE,
    UNREADABLE,
    WORKSPACE,
    Checks,
    Stage,
    Stop,
    Uri,
    fence,
    raises,
)

OUT = "out/result.json"


@pytest.fixture
def output(uri: Uri) -> Ref:
    return Ref(uri=uri(OUT))


def test_bytes_and_artifacts_are_published(
    stage: Stage, storage: Storage, workspace: Workspace, output: Ref
) -> None:
    assert publish(storage, output, b"{}", fence()) == output.uri
    assert stage.visible() == {OUT: b"{}"}
    artifact = workspace.write("result.json", b'{"a": 1}')
    assert publish(storage, output, artifact, fence()) == output.uri
    written = f"{WORKSPACE}ocr/1/result.json"
    assert stage.visible() == {OUT: b'{"a": 1}', written: b'{"a": 1}'}


def test_a_lower_fence_never_replaces_a_higher_one(
    stage: Stage, storage: Storage, output: Ref
) -> None:
    publish(storage, output, b"taken over", fence(1, 2))
    with raises(ErrorCode.OUTPUT_CONFLICT, "attempt 1, run 2 of step_03 of job_1"):
        publish(storage, output, b"abandoned", fence(1, 1))
    assert stage.visible() == {OUT: b"taken over"}
    assert stage.unfinished() == []
    publish(storage, output, b"second attempt", fence(2, 1))
    assert stage.visible() == {OUT: b"second attempt"}


@pytest.mark.parametrize("size", [10, 3 * BLOCK])
def test_an_equal_fence_is_the_same_run_which_may_publish_again(
    stage: Stage, storage: Storage, output: Ref, size: int
) -> None:
    for content in (b"a" * size, b"b" * size, b"b" * size):
        publish(storage, output, content, fence(2, 2))
        assert stage.visible() == {OUT: content}


def test_what_stood_there_without_a_fence_is_replaced(
    stage: Stage, storage: Storage, output: Ref
) -> None:
    for content in (b"new", b"new" * BLOCK):
        stage.put(output.uri, b"from elsewhere")
        publish(storage, output, content, fence())
        assert stage.visible() == {OUT: content}


def test_objects_of_one_folder_have_fences_of_their_own(
    stage: Stage, storage: Storage, uri: Uri
) -> None:
    publish(storage, Ref(uri=uri("out/a")), b"a", fence(9))
    publish(storage, Ref(uri=uri("out/b")), b"b", fence(1))
    assert stage.visible() == {"out/a": b"a", "out/b": b"b"}


def test_a_fence_that_cannot_be_read_is_never_overwritten(
    stage: Stage, storage: Storage, output: Ref
) -> None:
    publish(storage, output, b"somebody's", fence())
    stage.replace_fence(OUT, UNREADABLE)
    for content in (b"new", b"new" * BLOCK):
        with raises(ErrorCode.OUTPUT_CONFLICT, "look who published"):
            publish(storage, output, content, fence(9))
    assert stage.visible() == {OUT: b"somebody's"}


@pytest.mark.parametrize("size", [10, 3 * BLOCK])
def test_what_an_earlier_release_published_is_replaced_by_its_own_job_alone(
    stage: Stage, storage: Storage, output: Ref, size: int
) -> None:
    publish(storage, output, b"old", fence())
    stage.replace_fence(OUT, OF_AN_EARLIER_RELEASE)
    for other in (fence(9, job=1), fence(9, job=3), fence(1, job=2)):
        with raises(ErrorCode.OUTPUT_CONFLICT):
            publish(storage, output, b"new" * size, other)
    assert stage.visible() == {OUT: b"old"}
    publish(storage, output, b"new" * size, fence(2, 2, job=2))
    assert stage.visible() == {OUT: b"new" * size}


FENCES = st.builds(fence, st.integers(1, 3), st.integers(1, 3), st.integers(1, 2))


def test_in_whatever_order_runs_publish_the_highest_stays(stage: Stage, storage: Storage) -> None:
    places = itertools.count()

    @settings(max_examples=examples(stage.examples))
    @given(order=st.lists(FENCES, min_size=1, max_size=6))
    def check(order: list[Fence]) -> None:
        place = stage.uri(f"out/{next(places)}")
        for number, one in enumerate(order):
            highest = max(order[: number + 1])
            try:
                publish(storage, Ref(uri=place), repr(one).encode(), one)
            except NonRetryableError:
                assert one != highest
            else:
                assert one == highest
            assert Input(storage, place).read() == repr(highest).encode()

    check()


@pytest.mark.parametrize("size", [100, 2 * BLOCK + 100])
def test_of_runs_that_publish_at_once_the_highest_stays(
    stage: Stage, storage: Storage, output: Ref, size: int
) -> None:
    fences = [fence(attempt, epoch) for attempt in (1, 2, 3) for epoch in (1, 2, 3)]
    random.Random(1).shuffle(fences)
    start = threading.Barrier(len(fences))
    ended: list[str] = []

    def run(one: Fence) -> None:
        start.wait(DEADLINE)
        try:
            publish(storage, output, content_of(one, size), one)
        except NonRetryableError as error:
            ended.append(error.code)
        else:
            ended.append("published")

    threads = [threading.Thread(target=run, args=(one,)) for one in fences]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert stage.visible() == {OUT: content_of(max(fences), size)}
    assert len(ended) == len(fences)
    assert set(ended) <= {"published", ErrorCode.OUTPUT_CONFLICT}
    assert stage.unfinished() == []


def content_of(one: Fence, size: int) -> bytes:
    return (repr(one).encode() * size)[:size]


def test_an_artifact_that_has_changed_is_not_published(
    stage: Stage, storage: Storage, workspace: Workspace, output: Ref
) -> None:
    for name, right in (("small", b"right"), ("large", b"right" * BLOCK)):
        artifact = workspace.write(name, right)
        stage.put(artifact.uri, right[:-1] + b"x")
        with raises(ErrorCode.INPUT_INVALID):
            publish(storage, output, artifact, fence(9))
        assert OUT not in stage.visible()
        assert stage.unfinished() == []
    publish(storage, output, b"older", fence(1))


@pytest.mark.parametrize("target", ["gs://bucket/out", "https://host/out", "artifact://out", "a"])
def test_a_place_without_fences_is_refused(storage: Storage, target: str) -> None:
    with raises(ErrorCode.OUTPUT_UNSUPPORTED):
        publish(storage, Ref(uri=target), b"", fence())


@pytest.mark.parametrize("size", [10, 3 * BLOCK])
@pytest.mark.parametrize("job", [1, 2, 3])
def test_what_another_tenant_has_published_is_never_replaced(
    stage: Stage, storage: Storage, output: Ref, size: int, job: int
) -> None:
    publish(storage, output, b"of acme", fence(1, 1, job=2))
    for attempt in (1, 9):
        with raises(ErrorCode.OUTPUT_CONFLICT, "another tenant"):
            forged = b"x" * size
            publish(storage, output, forged, fence(attempt, 1, job=job, tenant="beta"))
    assert stage.visible() == {OUT: b"of acme"}
    assert stage.unfinished() == []


@pytest.mark.parametrize("allowed", [0, 1, 3])
def test_work_that_must_stop_publishes_nothing(
    stage: Stage, storage: Storage, output: Ref, allowed: int
) -> None:
    with pytest.raises(Stop):
        publish(storage, output, bytes(4 * BLOCK), fence(9), check_open=Checks(allowed))
    assert stage.visible() == {}
    assert stage.unfinished() == []
    assert stage.is_untouched() or allowed > 0
    publish(storage, output, b"in time", fence(1))
