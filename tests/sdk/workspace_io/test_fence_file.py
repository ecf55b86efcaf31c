"""The file that keeps the highest fence of a local file."""

import os
import threading
from pathlib import Path

import pytest

from lucius_contract.errors import ErrorCode
from lucius_sdk.workspace_io.fence import Fence
from lucius_sdk.workspace_io.fence_file import fence_held, fence_path
from tests.runner.deadlines import DEADLINE
from tests.sdk.workspace_io.stage import fence, raises


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return fence_path(tmp_path / "result.json")


def raise_to(path: Path, wanted: Fence, patience: float = DEADLINE) -> None:
    with fence_held(path, patience) as held:
        held.raise_to(wanted)


def test_a_lower_fence_is_refused_and_an_equal_one_is_not(path: Path) -> None:
    raise_to(path, fence(2, 2))
    raise_to(path, fence(2, 2))
    for lower in (fence(2, 1), fence(1, 9), fence(9, 9, job=0)):
        with raises(ErrorCode.OUTPUT_CONFLICT, "attempt 2, run 2 of step_03 of job_1"):
            raise_to(path, lower)
    raise_to(path, fence(3))


def test_a_fence_that_repeats_takes_no_room(path: Path) -> None:
    raise_to(path, fence(2))
    size = path.stat().st_size
    raise_to(path, fence(2))
    assert path.stat().st_size == size


@pytest.mark.parametrize(
    "torn", [b'{"job_id": "job_9', b"\0\0\0\0", fence(9).to_line()[:-1], b"x" * 500]
)
@pytest.mark.parametrize("before", [b"", fence(2).to_line()])
def test_a_line_that_was_cut_off_is_no_fence(path: Path, before: bytes, torn: bytes) -> None:
    path.write_bytes(before + torn)
    raise_to(path, fence(3))
    assert path.read_bytes() == before + fence(3).to_line()
    with raises(ErrorCode.OUTPUT_CONFLICT):
        raise_to(path, fence(2))


@pytest.mark.parametrize("content", [b"not ours\n", fence(1).to_line() + b"{}\n", b"x" * 20_000])
def test_a_fence_that_cannot_be_read_is_never_overwritten(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with raises(ErrorCode.OUTPUT_CONFLICT, "cannot be read"):
        raise_to(path, fence(9))
    assert path.read_bytes() == content


def test_the_last_of_very_many_fences_counts(path: Path) -> None:
    path.write_bytes(b"".join(fence(n).to_line() for n in range(1, 1001)))
    raise_to(path, fence(1001))
    with raises(ErrorCode.OUTPUT_CONFLICT, "attempt 1001"):
        raise_to(path, fence(1000, 9))
    assert path.read_bytes().count(b"\n") == 1001


def test_who_waits_too_long_for_the_lock_is_told_to_try_later(path: Path) -> None:
    with fence_held(path, 0), raises(ErrorCode.STORAGE_UNAVAILABLE, "for too long"):
        raise_to(path, fence(), patience=0)


def test_who_waited_for_a_file_that_was_removed_locks_the_new_one(path: Path) -> None:
    waiter = threading.Thread(target=raise_to, args=(path, fence(2)))
    with fence_held(path, 0):
        waiter.start()
        path.unlink()
    waiter.join(DEADLINE)
    assert path.read_bytes() == fence(2).to_line()


def test_a_symlink_in_the_place_of_a_fence_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        raise_to(path, fence())
    assert not (tmp_path / "elsewhere").exists()


def test_a_fence_has_a_name_whatever_its_file_is_called(tmp_path: Path) -> None:
    longest, other = fence_path(tmp_path / ("a" * 255)), fence_path(tmp_path / ("b" * 255))
    assert longest != other
    assert len(os.fsencode(longest.name)) < 255
