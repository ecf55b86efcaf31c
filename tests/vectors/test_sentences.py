"""Where sentences end, in running text and in text that comes from OCR."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_vectors import sentences
from tests.vectors.texts import grows_no_faster_than_the_text, texts


def found(text: str) -> list[str]:
    return [sentence.text for sentence in sentences(text)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("It is late.", "We go home."),
        ("Is it late?", "We go home."),
        ("Stop!", "This is it."),
        ("Qui est là ?", "Personne."),
        ('She said "stop."', "Nobody did."),
        ("(It was late.)", "We went home."),
        ("We met J. Smith at 4 p.m. and left.", "It rained."),
        ("It cost 4,711.20 in all.", "Then it rose."),
        ("We waited ...", "Nobody came."),
        ("The answer was no.", "Then he left."),
        ("There are 7.", "The eighth is lost."),
        ("He sold to Acme Ltd.", "The price was fair."),
    ],
)
def test_a_stop_ends_a_sentence(first: str, second: str) -> None:
    assert found(f"{first} {second}") == [first, second]


@pytest.mark.parametrize(
    "text",
    [
        "Invoice No. 7 of Dr. Ines Calloway",
        "See Fig. 3 and Art. 5 of it",
        "Call tel. +44 20 7946 0018 now",
        "Some metals, e.g. Gold and i.e. Silver",
        "The U.S. Navy and J. R. Hartley",
        "Approx. 3.5 per cent, cf. Smith vs. Jones",
        "Am 3. Mai 2026 z.B. Hamburg bzw. Bremen",
        "It was 4,711.20 or 1.5 or v2.0.1 at www.example.org today",
        "1. Introduction",
        "Introduction ........ 3",
        "Introduction . . . . . 3",
        "What he wants! is money",
    ],
)
def test_a_dot_within_does_not(text: str) -> None:
    assert found(text) == [text]


def test_a_no_that_is_an_answer_ends_its_sentence() -> None:
    assert found("No. Nobody did.") == ["No.", "Nobody did."]


def test_languages_without_spaces_have_sentences_too() -> None:
    assert found("今日は雨です。明日は晴れます。") == ["今日は雨です。", "明日は晴れます。"]


def test_lines_of_a_paragraph_belong_together() -> None:
    text = (
        "The supply agreement may be ended by either side with a notice of three months\n"
        "to the end of a quarter. Notice must be given in writing and reach the other side by\n"
        "Friday."
    )
    assert found(text) == [
        text[: text.index(" Notice")],
        text[text.index("Notice must") :],
    ]


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", " \n ", "\u2028", "\x85"])
def test_any_line_break_is_one(line_break: str) -> None:
    text = f"we go home when it is{line_break}late. Then we sleep."
    assert found(text) == [text[: text.index(" Then")], "Then we sleep."]


@pytest.mark.parametrize("end", ["\n\n", "\n \t\n", "\r\n\r\n", "\f", "\n\f", "\u2029"])
def test_a_blank_line_and_a_form_feed_end_a_sentence(end: str) -> None:
    assert found(f"the first page{end}and the second") == ["the first page", "and the second"]


def test_labels_with_their_values_stand_alone() -> None:
    text = (
        "Invoice date: 3 March 2026\npaid by: bank transfer\n"
        "Customer: the observatory at Tarnbrook, Ashwick\nCustomer number: 20815\n"
        "Delivery address: 8 Quay Street, Port Ellery\nThank you"
    )
    assert found(text) == text.split("\n")


def test_a_value_may_go_on_in_the_next_line() -> None:
    text = "Subject: delivery of lamps to the\nworkshop\nDate: 3 March 2026"
    assert found(text) == ["Subject: delivery of lamps to the\nworkshop", "Date: 3 March 2026"]


def test_a_label_without_a_value_takes_the_next_line() -> None:
    assert found("Bill to:\nNorthwind\nTotal: 7") == ["Bill to:\nNorthwind", "Total: 7"]


def test_rows_of_a_table_stand_alone() -> None:
    narrow = "Star atlas, large print edition, bound  12 48.50 582.00\n" * 3
    wide = "Item      Price     per cent\nlamps     seven     a few\nchairs    eight     some\n"
    assert found(narrow) == narrow.splitlines()
    assert found(wide) == wide.splitlines()


def test_headings_and_addresses_stand_alone() -> None:
    text = (
        "Northwind Traders\n12 Lantern Row\nAshwick AW3 9QT\nNotice period\n"
        "The supply agreement may be ended by either side with a notice of three months."
    )
    assert found(text) == text.split("\n")


def test_items_of_a_list_stand_alone() -> None:
    text = (
        "- reading lamps for the hall of the town\n- chairs\n1. tables\n(a) shelves\n\u2022 doors"
    )
    assert found(text) == text.split("\n")


@given(texts)
def test_sentences_are_in_order_and_have_everything_but_white_space(text: str) -> None:
    begin = 0
    for index, sentence in enumerate(sentences(text)):
        assert sentence.index == index
        assert sentence.text == text[sentence.start : sentence.end] == sentence.text.strip() != ""
        assert text[begin : sentence.start].strip() == ""
        begin = sentence.end
    assert text[begin:].strip() == ""


_UNITS = (
    *("a", "a ", "a\n", "a\f", "a. ", "A. B", ".", ". ", ".'", "\u061f", "\u3002", " ", "1. "),
    *("a:b ", "Key: v\n", "a\t", "   a", "- a\n", "\n", "7\n", "7.\n A"),
)


@pytest.mark.check
@pytest.mark.parametrize("unit", _UNITS)
def test_no_text_makes_it_slow(unit: str) -> None:
    assert grows_no_faster_than_the_text(lambda text: sum(1 for _ in sentences(text)), unit)


@given(st.text())
def test_any_text_at_all_has_its_letters_in_sentences(text: str) -> None:
    kept = "".join("".join(found(text)).split())
    assert kept == "".join(text.split())
