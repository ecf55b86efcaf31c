"""How values are written in descriptions."""

from xml.etree import ElementTree

import isodate  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicebus_emulator.administration.text import (
    escaped,
    read_boolean,
    read_number,
    write_boolean,
    write_time,
)
from servicebus_emulator.durations import read_duration, write_duration

ENDLESS = "P10675199DT2H48M5.4775807S"


@given(st.integers(min_value=0, max_value=10**13))
def test_durations_are_read_as_they_were_written(milliseconds: int) -> None:
    written = write_duration(milliseconds)
    assert read_duration(written) == milliseconds
    assert isodate.parse_duration(written).total_seconds() * 1000 == pytest.approx(milliseconds)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT1M", 60_000),
        ("PT0S", 0),
        ("P1D", 86_400_000),
        ("P2W", 14 * 86_400_000),
        ("P1Y2M3DT4H5M6.5S", ((365 + 60 + 3) * 24 * 3600 + 4 * 3600 + 306) * 1000 + 6500 - 6000),
        ("PT0.0004S", 0),
        (ENDLESS, None),
        ("P10675199DT2H48M5.47758S", None),
        ("P999999999D", None),
    ],
)
def test_durations_in_all_their_forms(text: str, milliseconds: int | None) -> None:
    assert read_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1M", "-PT1M", "PT1X", "PT1M ", "PT٣S"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ISO 8601"):
        read_duration(text)


def test_no_limit_is_the_longest_duration_of_the_service() -> None:
    assert write_duration(None) == ENDLESS


@given(st.booleans())
def test_truths_are_read_as_they_were_written(truth: bool) -> None:
    assert read_boolean(write_boolean(truth)) is truth


@pytest.mark.parametrize("text", ["", "yes", "1.0", "٣", "9" * 19])
def test_numbers_and_truths_are_nothing_else(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        read_number(text)
    with pytest.raises(ValueError, match="true or false"):
        read_boolean(text)


def test_times_are_in_utc_with_milliseconds() -> None:
    assert write_time(1_741_000_000_007) == "2025-03-03T11:06:40.007Z"


@given(st.text())
def test_every_text_can_stand_in_an_element(text: str) -> None:
    found = ElementTree.fromstring(f'<a b="{escaped(text)}">{escaped(text)}</a>')  # noqa: S314
    assert len(found.text or "") == len(text)
    assert found.text in (text, None) or "\ufffd" in (found.text or "")
