"""Text as it stands in the output."""

import pytest

from ocr_service.text import readable_letters, tidied


@pytest.mark.parametrize(
    ("raw", "tidy"),
    [
        ("one\r\ntwo\rthree\n", "one\ntwo\nthree"),
        ("\n\n  one \t \n\n\n\ntwo  \n\n", "one\n\ntwo"),
        ("one\ftwo\vthree\u2028four", "one\ntwo\nthree\nfour"),
        ("in\x02\r\nvoice, in\ufffe\nvoice", "in-\nvoice, in-\nvoice"),
        ("of\ufb01ce \ufb02oor a\ufb03x", "office floor affix"),
        ("a\xa0b\xadc\x00d\x1be\ufefff", "a bcdef"),
        (
            "4,711.20 \u20ac \u2013 \u00fc\u00df \u4e2d\u6587",
            "4,711.20 \u20ac \u2013 \u00fc\u00df \u4e2d\u6587",
        ),
    ],
)
def test_text_is_tidied(raw: str, tidy: str) -> None:
    assert tidied(raw) == tidy


def test_whatever_character_there_is_tidy_text_has_no_page_break_and_stays_as_it_is() -> None:
    for code in range(0x10000):
        tidy = tidied(f"a\n{chr(code)}\n{chr(code)}b")
        assert "\f" not in tidy
        assert "\n\n\n" not in tidy
        assert tidied(tidy) == tidy


def test_letters_and_digits_are_counted() -> None:
    assert readable_letters("No. 417, \u4e2d\u6587!") == 7


@pytest.mark.parametrize("lost", ["\ufffd", "\ue001", "\U000f0001"])
def test_text_that_is_mostly_lost_has_none(lost: str) -> None:
    assert readable_letters("abc" + lost) == 0
    assert readable_letters("abcdefghij" + lost) == 10
