"""Times that go into SQLite come out of it, to the microsecond."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from lucius_outbox.sqlite.times import microseconds, moment, optional_microseconds

_BEFORE_2100 = st.integers(0, microseconds(datetime(2100, 1, 1, tzinfo=UTC)))


@given(_BEFORE_2100)
def test_a_moment_comes_back_as_it_was_written(written: int) -> None:
    assert microseconds(moment(written)) == written
    assert optional_microseconds(moment(written)) == written


def test_a_missing_moment_stays_missing() -> None:
    assert optional_microseconds(None) is None
