"""How values are written for people."""

from datetime import UTC, datetime, timedelta

import pytest

from lucius_cli.output import age, moment, visible

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ago", "text"),
    [
        (timedelta(seconds=-3), "0s"),
        (timedelta(seconds=59), "59s"),
        (timedelta(seconds=60), "1m"),
        (timedelta(minutes=119), "1h"),
        (timedelta(hours=47), "1d"),
        (timedelta(days=400), "400d"),
    ],
)
def test_an_age_has_one_unit(ago: timedelta, text: str) -> None:
    assert age((NOW - ago).isoformat(), NOW) == text


@pytest.mark.parametrize(("value", "text"), [(None, ""), ("yesterday", "yesterday")])
def test_what_is_not_a_time_is_shown_as_it_is(value: object, text: str) -> None:
    assert age(value, NOW) == text


def test_a_moment_has_no_fractions() -> None:
    assert moment("2026-01-02T03:04:05.678901+00:00") == "2026-01-02T03:04:05Z"


def test_control_characters_become_visible_and_line_feeds_stay() -> None:
    mark = "\N{REPLACEMENT CHARACTER}"
    assert visible("a\x1b[2J\r\n\tb\x9b") == f"a{mark}[2J{mark}\n{mark}b{mark}"
