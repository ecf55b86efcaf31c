"""Fences: their order, and that they are read as they were written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_contract.errors import ErrorCode
from lucius_sdk.workspace_io.fence import UNKNOWN_TENANT, Fence, check_may_replace
from tests.sdk.workspace_io.stage import fence, raises

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128)
FENCES = st.builds(Fence, IDS, IDS, IDS, st.integers(1, 2**31 - 1), st.integers(1, 100))


@given(FENCES)
def test_a_fence_is_read_as_it_was_written(one: Fence) -> None:
    assert one.to_line().count(b"\n") == 1
    assert Fence.from_line(one.to_line()) == one
    assert one.to_header().isascii()
    assert one.to_header().isprintable()
    assert Fence.from_header(one.to_header()) == one


def test_in_a_header_people_can_read_it() -> None:
    assert fence(2, 1).to_header() == "acme/job_1/step_03/2/1"
    assert Fence("..", "a/b", "é", 1, 1).to_header() == "../a%2Fb/%C3%A9/1/1"


def test_later_jobs_steps_attempts_and_runs_are_higher_in_this_order() -> None:
    order = [fence(9, 9, 1, 9), fence(9, 9, 2, 1), fence(1, 9, 2, 2), fence(2, 1, 2, 2)]
    assert sorted([*order, fence(2, 2, 2, 2)]) == [*order, fence(2, 2, 2, 2)]


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b'{"job_id": 1}', b"\xff", b"null"])
def test_other_lines_are_no_fences(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Fence.from_line(line)


@pytest.mark.parametrize("text", ["", "a/b/1", "t/a/b/1/1/1", "a/b/x/1", "a/b/1/", "%FF/b/1/1"])
def test_other_headers_are_no_fences(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Fence.from_header(text)


def test_a_fence_of_an_earlier_release_is_read_without_a_tenant() -> None:
    earlier = Fence(UNKNOWN_TENANT, "job_1", "step_03", 2, 1)
    line = b'{"job_id": "job_1", "step_id": "step_03", "attempt_no": 2, "epoch": 1}'
    assert Fence.from_line(line) == Fence.from_header("job_1/step_03/2/1") == earlier


def test_a_fence_without_a_tenant_is_replaced_by_its_own_job_alone() -> None:
    earlier = Fence(UNKNOWN_TENANT, "job_1", "step_03", 2, 1)
    check_may_replace(fence(2, 1, job=1), earlier)
    check_may_replace(fence(3, 1, job=1), earlier)
    with raises(ErrorCode.OUTPUT_CONFLICT, "newer work"):
        check_may_replace(fence(1, 9, job=1), earlier)
    with raises(ErrorCode.OUTPUT_CONFLICT, "look whose"):
        check_may_replace(fence(9, 9, job=2), earlier)


@pytest.mark.parametrize("job", [1, 2, 9])
def test_a_fence_of_another_tenant_is_never_replaced(job: int) -> None:
    with raises(ErrorCode.OUTPUT_CONFLICT, "another tenant"):
        check_may_replace(fence(9, 9, job=job, tenant="beta"), fence(1, 1, job=2, tenant="acme"))
    with raises(ErrorCode.OUTPUT_CONFLICT, "another tenant"):
        check_may_replace(fence(9, 9, job=job, tenant="acme"), fence(1, 1, job=2, tenant="beta"))
