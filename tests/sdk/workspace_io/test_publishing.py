"""Publishing: newer work is never replaced by older work, whoever comes last."""

import random
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_contract.documents import Ref
from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io import Fence, LocalStorage, Workspace, publish
from tests.sdk.workspace_io.stage import (
    DEADLINE,
    Checks,
    Stop,
    Uri,
    fence,
    raises,
    unfinished,
    visible,
)

OUT = "out/result.json"


@pytest.fixture
def output(uri: Uri) -> Ref:
    return Ref(uri=uri(OUT))


def test_bytes_and_artifacts_are_published(
    storage: LocalStorage, workspace: Workspace, output: Ref, root: Path
) -> None:
    assert publish(storage, output, b"{}", fence()) == output.uri
    assert (root / OUT).read_bytes() == b"{}"
    artifact = workspace.write("result.json", b'{"a": 1}')
    assert publish(storage, output, artifact, fence()) == output.uri
    assert (root / OUT).read_bytes() == b'{"a": 1}'
    assert (root / "lucius/acme/job_1/ocr/1/result.json").exists()


def test_a_lower_fence_never_replaces_a_higher_one(
    storage: LocalStorage, output: Ref, root: Path
) -> None:
    publish(storage, output, b"taken over", fence(1, 2))
    with raises(ErrorCode.OUTPUT_CONFLICT):
        publish(storage, output, b"abandoned", fence(1, 1))
    assert visible(root) == {OUT: b"taken over"}
    assert unfinished(root) == []
    publish(storage, output, b"second attempt", fence(2, 1))
    assert visible(root) == {OUT: b"second attempt"}


def test_what_stood_there_without_a_fence_is_replaced(
    storage: LocalStorage, output: Ref, root: Path
) -> None:
    (root / "out").mkdir()
    (root / OUT).write_bytes(b"from elsewhere")
    publish(storage, output, b"new", fence())
    assert visible(root) == {OUT: b"new"}


def test_files_of_one_folder_have_fences_of_their_own(
    storage: LocalStorage, uri: Uri, root: Path
) -> None:
    publish(storage, Ref(uri=uri("out/a")), b"a", fence(9))
    publish(storage, Ref(uri=uri("out/b")), b"b", fence(1))
    assert visible(root) == {"out/a": b"a", "out/b": b"b"}


FENCES = st.builds(fence, st.integers(1, 3), st.integers(1, 3), st.integers(1, 2))


@given(order=st.lists(FENCES, min_size=1, max_size=6))
def test_in_whatever_order_runs_publish_the_highest_stays(
    tmp_path_factory: pytest.TempPathFactory, order: list[Fence]
) -> None:
    root = tmp_path_factory.mktemp("fences")
    storage, output = LocalStorage(root), Ref(uri=f"{root.as_uri()}/out")
    for number, one in enumerate(order):
        allowed = one == max(order[: number + 1])
        try:
            publish(storage, output, repr(one).encode(), one)
        except NonRetryableError:
            assert not allowed
        else:
            assert allowed
        assert (root / "out").read_bytes() == repr(max(order[: number + 1])).encode()


def test_of_runs_that_publish_at_once_the_highest_stays(
    storage: LocalStorage, output: Ref, root: Path
) -> None:
    fences = [fence(attempt, epoch) for attempt in (1, 2, 3) for epoch in (1, 2, 3)]
    random.Random(1).shuffle(fences)
    start = threading.Barrier(len(fences))
    refused: list[str] = []

    def run(one: Fence) -> None:
        start.wait(DEADLINE)
        try:
            publish(storage, output, repr(one).encode() * 10_000, one)
        except NonRetryableError as error:
            refused.append(error.code)

    threads = [threading.Thread(target=run, args=(one,)) for one in fences]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert visible(root) == {OUT: repr(max(fences)).encode() * 10_000}
    assert set(refused) <= {ErrorCode.OUTPUT_CONFLICT}
    assert unfinished(root) == []


def test_an_artifact_that_has_changed_is_not_published(
    storage: LocalStorage, workspace: Workspace, output: Ref, root: Path
) -> None:
    artifact = workspace.write("result.json", b"right")
    (root / "lucius/acme/job_1/ocr/1/result.json").write_bytes(b"wrong")
    with raises(ErrorCode.INPUT_INVALID):
        publish(storage, output, artifact, fence())
    assert not (root / OUT).exists()
    publish(storage, output, b"older", fence(1))


@pytest.mark.parametrize("target", ["az://container/out", "https://host/out"])
def test_a_place_without_fences_is_refused(storage: LocalStorage, target: str) -> None:
    with raises(ErrorCode.INPUT_INVALID, r"cannot publish \(it can: file\)"):
        publish(storage, Ref(uri=target), b"", fence())


@pytest.mark.parametrize("allowed", [0, 1])
def test_work_that_must_stop_publishes_nothing(
    storage: LocalStorage, output: Ref, root: Path, allowed: int
) -> None:
    with pytest.raises(Stop):
        publish(storage, output, b"late", fence(9), check_open=Checks(allowed))
    assert len(list(root.iterdir())) == allowed  # the folder, once it was let begin
    assert visible(root) == {}
    assert unfinished(root) == []
    publish(storage, output, b"in time", fence(1))
