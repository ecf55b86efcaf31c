"""How long to wait between tries."""

from hypothesis import given
from hypothesis import strategies as st

from lucius_sdk.replies.retrying import Pace

chances = st.floats(0, 1)


def test_waits_double_up_to_the_longest() -> None:
    waits = [Pace().wait(failures, None, 0.0) for failures in range(1, 11)]
    assert waits == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_a_server_that_asks_for_time_gets_it() -> None:
    assert Pace().wait(1, 7.0, 0.0) == 7.0
    assert Pace().wait(1, 7.0, 1.0) == 7.0 * 1.25
    assert Pace().wait(1, 1e9, 0.0) == 300.0


def test_a_server_that_asks_for_less_than_the_backoff_does_not_shorten_it() -> None:
    assert Pace().wait(9, 1.0, 0.0) == 30.0


@given(st.integers(1, 10**9), chances)
def test_chance_takes_away_at_most_one_half(failures: int, chance: float) -> None:
    longest, wait = Pace().wait(failures, None, 0.0), Pace().wait(failures, None, chance)
    assert longest / 2 <= wait <= longest <= 30


@given(st.integers(1, 100), st.floats(0, 300), chances)
def test_nobody_comes_before_the_server_wants(failures: int, asked: float, chance: float) -> None:
    assert asked <= Pace().wait(failures, asked, chance) <= max(30, asked * 1.25)
