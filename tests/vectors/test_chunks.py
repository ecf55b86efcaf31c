"""The laws of cutting a text into chunks."""

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_vectors import Chunk, chunks, load_model, sentences
from lucius_vectors.chunking import CHARACTERS_PER_TOKEN
from tests.vectors.texts import texts

Count = Callable[[str], int]


def words(text: str) -> int:
    return len(text.split())


def letters(text: str) -> int:
    """As if each letter were a token."""
    return len("".join(text.split()))


def by_model(text: str) -> int:
    return load_model().count_tokens(text)


counts = st.sampled_from([words, letters, by_model])
sizes = st.integers(1, 30).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


def cut(text: str, size: int, overlap: int = 0, count: Count = words) -> list[str]:
    return [chunk.text for chunk in chunks(text, size, overlap, count)]


@given(texts, sizes, counts)
def test_chunks_are_in_order_and_their_offsets_exact(
    text: str, lengths: tuple[int, int], count: Count
) -> None:
    before: Chunk | None = None
    for index, chunk in enumerate(chunks(text, *lengths, count)):
        assert chunk.index == index
        assert chunk.text == text[chunk.start : chunk.end] == chunk.text.strip() != ""
        assert before is None or (before.start < chunk.start and before.end < chunk.end)
        before = chunk


@given(texts, sizes, counts)
def test_every_character_but_white_space_is_in_a_chunk(
    text: str, lengths: tuple[int, int], count: Count
) -> None:
    covered = 0
    for chunk in chunks(text, *lengths, count):
        assert text[covered : chunk.start].strip() == ""
        covered = chunk.end
    assert text[covered:].strip() == ""


@given(texts, sizes, counts)
def test_no_chunk_is_longer_than_its_size(
    text: str, lengths: tuple[int, int], count: Count
) -> None:
    size, overlap = lengths
    for chunk in chunks(text, size, overlap, count):
        assert count(chunk.text) <= size or len(chunk.text) == 1
        assert len(chunk.text) <= size * CHARACTERS_PER_TOKEN


@given(texts, sizes, counts)
def test_neighbours_never_share_more_than_the_overlap(
    text: str, lengths: tuple[int, int], count: Count
) -> None:
    size, overlap = lengths
    before = 0
    for chunk in chunks(text, size, overlap, count):
        assert count(text[chunk.start : before]) <= overlap
        before = chunk.end


@given(texts, sizes)
def test_a_chunk_ends_with_a_sentence_unless_one_is_too_long(
    text: str, lengths: tuple[int, int]
) -> None:
    size, overlap = lengths
    found = list(sentences(text))
    ends = {sentence.end for sentence in found}
    too_long = [
        s for s in found if words(s.text) > size or len(s.text) > CHARACTERS_PER_TOKEN * size
    ]
    for chunk in chunks(text, size, overlap, words):
        assert chunk.end in ends or any(s.start < chunk.end < s.end for s in too_long)


@given(texts, st.integers(1, 30))
def test_chunks_are_as_full_as_whole_sentences_allow(text: str, size: int) -> None:
    made = list(chunks(text, size, 0, words))
    for chunk, following in pairwise(made):
        together = text[chunk.start : following.end]
        assert (
            words(together) > size
            or len(together) > CHARACTERS_PER_TOKEN * size
            or len(chunk.text) >= size
        )


def test_sentences_stay_whole_where_they_fit() -> None:
    assert cut("One two three. Four five. Six.", 4) == ["One two three.", "Four five. Six."]


def test_the_overlap_is_made_of_whole_sentences() -> None:
    text = "One two three. Four five. Six seven eight. Nine."
    assert cut(text, 5, 4) == [
        "One two three. Four five.",
        "Four five. Six seven eight.",
        "Six seven eight. Nine.",
    ]


def test_of_a_sentence_that_is_too_long_for_the_overlap_the_last_words_are_taken() -> None:
    assert cut("One two three four. Five six.", 4, 2) == [
        "One two three four.",
        "three four. Five six.",
    ]


def test_a_long_sentence_is_cut_between_words() -> None:
    assert cut("one two three four five", 2) == ["one two", "three four", "five"]


def test_a_long_word_is_cut_within() -> None:
    assert cut("a longword b", 4, 0, letters) == ["a", "long", "word", "b"]


def test_a_character_that_is_too_long_alone_is_left_whole() -> None:
    assert cut("ab", 1, 0, lambda text: 3 * len(text)) == ["a", "b"]


def test_nothing_is_made_of_nothing() -> None:
    assert cut("", 5) == cut(" \n\f ", 5) == []


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (4, 4), (4, 5), (4, -1)])
def test_an_overlap_that_leaves_no_room_is_refused(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        cut("text", size, overlap)


@pytest.mark.parametrize(
    "unit", ["The cat sat on it. ", "a", "ab ", "\u4e2d", "a\n", "Key: v\n", "\u200b", ". ", "a\f"]
)
def test_what_is_counted_grows_with_the_text_alone(unit: str) -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(re.findall(r"\w", text))

    text = unit * (200_000 // len(unit))
    made = sum(len(chunk.text) for chunk in chunks(text, 50, 10, count))
    assert sum(counted) <= 4 * len(text)
    assert max(counted) <= 50 * CHARACTERS_PER_TOKEN
    assert made <= 2 * len(text)


def test_a_wide_gap_is_not_repeated_by_the_overlap() -> None:
    text = "a " * 100 + " " * 100_000 + "b " * 100
    assert sum(map(len, cut(text, 50, 49))) < 100_000
