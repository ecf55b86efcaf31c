"""What is decided about three texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_cli.skeleton.merging import Kind, Sides, decide, merge

TEXTS = st.lists(st.sampled_from("abcdef"), max_size=8).map(
    lambda lines: "".join(f"{x}\n" for x in lines)
)
A, B, C = "a\n", "b\n", "c\n"


def decided(
    base: str | None, ours: str | None, theirs: str | None, is_yours: bool = False
) -> object:
    change = decide("file", Sides(base, ours, theirs), is_yours, 2)
    return None if change is None else (change.kind, change.after)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "shared", "yours"),
    [
        (A, A, A, None, None),
        (A, B, A, None, None),
        (A, None, A, None, None),
        (A, B, B, None, None),
        (A, None, None, None, None),
        (None, B, B, None, None),
        (None, None, B, (Kind.ADDED, B), (Kind.ADDED, B)),
        (A, A, B, (Kind.UPDATED, B), (Kind.UPDATED, B)),
        (A, A, None, (Kind.REMOVED, None), (Kind.KEPT, A)),
        (A, B, None, (Kind.KEPT, B), (Kind.KEPT, B)),
        (A, None, B, (Kind.KEPT, None), (Kind.KEPT, None)),
    ],
)
def test_without_two_changes_there_is_nothing_to_merge(
    base: str | None, ours: str | None, theirs: str | None, shared: object, yours: object
) -> None:
    assert decided(base, ours, theirs) == shared
    assert decided(base, ours, theirs, is_yours=True) == yours


@pytest.mark.parametrize("base", [A, None])
def test_two_changes_of_the_same_lines_are_a_conflict_with_both(base: str | None) -> None:
    text = "<<<<<<< yours\nb\n=======\nc\n>>>>>>> skeleton 2\n"
    assert decided(base, B, C) == (Kind.CONFLICT, text)
    assert decided(base, B, C, is_yours=True) == (Kind.KEPT, B)


def test_changes_of_different_lines_are_merged() -> None:
    assert decided("a\n-\nb\n", "x\n-\nb\n", "a\n-\ny\n") == (Kind.MERGED, "x\n-\ny\n")


def test_a_marker_has_a_line_of_its_own_after_a_last_line_without_an_end() -> None:
    merged, _ = merge("a", "b", "c", 2)
    assert merged == "<<<<<<< yours\nb\n=======\nc\n>>>>>>> skeleton 2\n"


@given(TEXTS, TEXTS)
def test_what_only_one_side_changed_is_taken_as_it_is(base: str, changed: str) -> None:
    assert merge(base, changed, base, 2) == (changed, True)
    assert merge(base, base, changed, 2) == (changed, True)
    assert merge(base, changed, changed, 2) == (changed, True)


@given(TEXTS, TEXTS, TEXTS)
def test_no_line_that_either_side_added_is_lost(base: str, ours: str, theirs: str) -> None:
    merged, _ = merge(base, ours, theirs, 2)
    for side in (ours, theirs):
        added = set(side.splitlines()) - set(base.splitlines())
        assert added <= set(merged.splitlines())
