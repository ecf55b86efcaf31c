"""How names are spelled in tables and blobs."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_azure.table_keys import PART_LIMIT, key, part

LEGAL = re.compile(r"[A-Za-z0-9._~!-]*")

VECTORS = [
    (("job_1", "step_01"), "job_1!step_01"),
    (("Job.1", "a-b"), "Job.1!a-b"),
    (("a/b", "c#d?e\\f"), "a~2Fb!c~23d~3Fe~5Cf"),
    (("a!b", "~"), "a~21b!~7E"),
    (("ä", "😀"), "~C3~A4!~F0~9F~98~80"),
    (("a b", "%\t\n\x7f"), "a~20b!~25~09~0A~7F"),
    (("\ud800",), "~ED~A0~80"),
    (("", ""), "!"),
]


@pytest.mark.parametrize(("parts", "spelled"), VECTORS)
def test_keys_are_spelled_so(parts: tuple[str, ...], spelled: str) -> None:
    assert key(*parts) == spelled


def test_what_would_be_too_long_is_its_hash() -> None:
    assert part("a" * PART_LIMIT) == "a" * PART_LIMIT
    assert part("a" * (PART_LIMIT + 1)) == (
        "~~1668eb4fad53ba7b37b233bcb819f4a0c38ee2a6d03e204134edcc882bb56ae8"
    )
    assert part("/" * 54) == "~~7eadcd8c6d73895d80c54e04ad3044dd25589649b43e536329b30d07e6885516"


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), min_size=2, max_size=2))
def test_different_names_are_spelled_differently(pair: list[list[str]]) -> None:
    one, other = pair
    assert (key(*one) == key(*other)) == (one == other)
    assert key(*one) != key(one[0] + one[1])


@given(st.text(max_size=400), st.text(max_size=400))
def test_every_key_is_legal_and_short_enough(one: str, two: str) -> None:
    spelled = key(one, two)
    assert LEGAL.fullmatch(spelled)
    assert len(spelled) <= 2 * PART_LIMIT + 1


@given(st.lists(st.text("abcXYZ019._-", max_size=4), min_size=2, max_size=2))
def test_keys_of_plain_names_sort_as_their_parts(parts: list[str]) -> None:
    one, other = parts
    assert (key(one, "z") < key(other, "a")) == (one < other or (one == other and "z" < "a"))
