"""The patterns of LIKE."""

import fnmatch
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicebus_emulator.rules import Facts, FilterFailed, RuleError, SqlFilter
from tests.emulator.rules.judging import is_match


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("blue", "blue", True),
        ("blue", "Blue", False),
        ("blue", "bluer", False),
        ("blue", "ablue", False),
        ("%", "", True),
        ("%", "any\nthing", True),
        ("_", "x", True),
        ("_", "", False),
        ("_", "\n", True),
        ("b%e", "be", True),
        ("b%e", "blue", True),
        ("b%e", "blues", False),
        ("%bus%", "omnibuses", True),
        ("%a%b%", "xbxa", False),
        ("a%a", "a", False),
        ("%ab", "aab", True),
        ("%_b", "b", False),
        ("a.c", "abc", False),
        ("[a-c]", "b", False),
        ("(", "(", True),
        ("a\0%", "a\0b", True),
        ("a\0b", "axb", False),
    ],
)
def test_wildcards(pattern: str, text: str, expected: bool) -> None:
    assert is_match(f"x LIKE '{pattern}'", x=text) is expected
    assert is_match(f"x NOT LIKE '{pattern}'", x=text) is not expected
    assert is_match("x LIKE pattern", x=text, pattern=pattern) is expected


@pytest.mark.parametrize(
    ("condition", "text", "expected"),
    [
        (r"LIKE 'ABC\%' ESCAPE '\'", "ABC%", True),
        (r"LIKE 'ABC\%' ESCAPE '\'", "ABCD", False),
        (r"LIKE 'ABC\%'", "ABC\\D", True),
        ("LIKE 'a!_b!!%' ESCAPE '!'", "a_b!c", True),
        ("LIKE 'a!_b!!%' ESCAPE '!'", "axb!c", False),
        ("LIKE '!a' ESCAPE '!'", "a", True),
        ("LIKE '%%' ESCAPE '%'", "%", True),
        ("LIKE '__' ESCAPE '_'", "_", True),
    ],
)
def test_escape(condition: str, text: str, expected: bool) -> None:
    assert is_match(f"x {condition}", x=text) is expected


@pytest.mark.parametrize(
    "condition", ["LIKE 'a' ESCAPE ''", "LIKE 'a' ESCAPE '!!'", "LIKE 'a!' ESCAPE '!'"]
)
def test_a_wrong_pattern_is_refused_at_once(condition: str) -> None:
    with pytest.raises(RuleError, match="LIKE"):
        SqlFilter(f"x {condition}")


def test_a_wrong_pattern_in_a_message_fails_the_filter() -> None:
    with pytest.raises(FilterFailed, match="one character"):
        is_match("x LIKE 'a' ESCAPE y", x="a", y="!!")


@given(st.text("ab%_", max_size=8), st.text("ab", max_size=10))
def test_a_pattern_means_what_it_says(pattern: str, text: str) -> None:
    # Another notation for the same wildcards, matched by another library.
    glob = fnmatch.translate(pattern.replace("%", "*").replace("_", "?"))
    assert is_match(f"x LIKE '{pattern}'", x=text) is bool(re.match(glob, text))


def test_a_hostile_pattern_takes_no_longer_than_its_length() -> None:
    judge = SqlFilter(f"x LIKE '{'%a_' * 300}%b'")
    began = time.process_time()
    assert not judge.matches(Facts({"x": "a" * 5000}))
    assert time.process_time() - began < 2
