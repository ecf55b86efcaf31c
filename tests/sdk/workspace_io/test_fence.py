"""Fences: their order, and that they are read as they were written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_sdk.workspace_io.fence import Fence
from tests.sdk.workspace_io.stage import fence

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128)
FENCES = st.builds(Fence, IDS, IDS, st.integers(1, 2**31 - 1), st.integers(1, 100))


@given(FENCES)
def test_a_fence_is_read_as_it_was_written(one: Fence) -> None:
    assert one.to_line().count(b"\n") == 1
    assert Fence.from_line(one.to_line()) == one
    assert one.to_header().isascii()
    assert one.to_header().isprintable()
    assert Fence.from_header(one.to_header()) == one


def test_in_a_header_people_can_read_it() -> None:
    assert fence(2, 1).to_header() == "job_1/step_03/2/1"
    assert Fence("a/b", "é", 1, 1).to_header() == "a%2Fb/%C3%A9/1/1"


def test_later_jobs_steps_attempts_and_runs_are_higher_in_this_order() -> None:
    order = [fence(9, 9, 1, 9), fence(9, 9, 2, 1), fence(1, 9, 2, 2), fence(2, 1, 2, 2)]
    assert sorted([*order, fence(2, 2, 2, 2)]) == [*order, fence(2, 2, 2, 2)]


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b'{"job_id": 1}', b"\xff", b"null"])
def test_other_lines_are_no_fences(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Fence.from_line(line)


@pytest.mark.parametrize("text", ["", "a/b/1", "a/b/1/1/1", "a/b/x/1", "a/b/1/", "%FF/b/1/1"])
def test_other_headers_are_no_fences(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Fence.from_header(text)
