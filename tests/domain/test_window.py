"""The window of a service: how it opens and closes, and how much room it leaves."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_orchestrator.domain.window import (
    LONGEST_PROBE_PAUSE,
    Limits,
    Probes,
    Signals,
    Window,
    absent,
    may_probe,
    missed,
    new_window,
    picked_up,
    rested,
    room,
    share,
    widened,
)

NOW = datetime(2026, 1, 27, 10, tzinfo=UTC)
TIMEOUT = timedelta(seconds=30)
LIMITS = Limits(1, 100)
QUICK, NEUTRAL, SLOW = timedelta(seconds=1), timedelta(seconds=10), timedelta(seconds=20)


def after_ack(
    window: Window, waited: timedelta = QUICK, unacknowledged: int | None = None
) -> Window:
    in_use = int(window.size) if unacknowledged is None else unacknowledged
    return picked_up(
        window, LIMITS, waited=waited, ack_timeout=TIMEOUT, unacknowledged=in_use, now=NOW
    )


def signals(
    unacknowledged: int = 0, working: int = 0, capacity: int | None = None, rate: float = 0.0
) -> Signals:
    """Of a service whose slots are all at work."""
    slot_seconds = 1 / rate if rate else None
    return Signals(unacknowledged, working, capacity, rate, TIMEOUT, slot_seconds)


def test_it_begins_with_the_least() -> None:
    assert room(new_window(LIMITS), signals()) == 1
    assert room(new_window(Limits(7, 9)), signals()) == 7


def test_it_doubles_in_a_round_of_quick_acks() -> None:
    window = Window(8, 100)
    for _ in range(8):
        window = after_ack(window)
    assert window.size == 16


def test_above_the_threshold_it_opens_by_one_in_a_round() -> None:
    window = Window(8, 8)
    for _ in range(8):
        window = after_ack(window)
    assert 8.9 < window.size < 9.1


def test_it_opens_to_the_most_and_no_further() -> None:
    window = Window(99.5, 100)
    for _ in range(5):
        window = after_ack(window)
    assert window.size == LIMITS.most


def test_it_stays_when_it_was_not_in_use() -> None:
    window = Window(8, 100)
    assert after_ack(window, unacknowledged=3) == window
    assert after_ack(window, unacknowledged=4).size == 9


def test_it_stays_when_acks_are_neither_quick_nor_slow() -> None:
    window = Window(8, 100)
    assert after_ack(window, NEUTRAL) == window


def test_slots_that_are_stated_need_not_be_found_out() -> None:
    assert widened(Window(1, 100), LIMITS, 16).size == 17
    assert widened(Window(1, 100), LIMITS, 160).size == LIMITS.most


def test_a_slow_ack_halves_it() -> None:
    assert after_ack(Window(8, 100), SLOW) == Window(4, 4, NOW)


def test_what_was_sent_before_it_was_halved_does_not_halve_it_again() -> None:
    window = missed(Window(8, 100), LIMITS, sent_at=NOW - TIMEOUT, now=NOW)
    assert window == Window(4, 4, NOW)
    assert missed(window, LIMITS, sent_at=NOW, now=NOW + TIMEOUT) == window
    later = NOW + timedelta(seconds=1)
    assert missed(window, LIMITS, sent_at=later, now=later + TIMEOUT).size == 2


def test_it_closes_to_the_least_and_no_further() -> None:
    assert missed(Window(1, 1), LIMITS, sent_at=NOW, now=NOW).size == 1


def test_an_absent_service_gets_probes_and_opens_quickly_when_it_is_back() -> None:
    window = absent(LIMITS, NOW)
    assert room(window, signals()) == 1
    assert after_ack(window, unacknowledged=1).size == 2


def test_after_a_rest_it_is_as_wide_as_the_service_states() -> None:
    assert rested(Window(50, 40), LIMITS, None).size == 1
    assert rested(Window(50, 40), LIMITS, 4) == Window(4, 100)
    assert rested(Window(50, 40), LIMITS, 900) == Window(50, 40)
    assert rested(Window(1, 1), LIMITS, None) == Window(1, 1)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (signals(), 8),
        (signals(unacknowledged=3), 5),
        (signals(unacknowledged=9), 0),
        (signals(working=500), 8),
        (signals(capacity=4), 4),
        (signals(capacity=4, working=4), 0),
        (signals(capacity=4, working=3), 1),
        (signals(capacity=4, working=3, unacknowledged=1), 0),
        (signals(capacity=4, working=9), 0),
        # A slot is free in five seconds, and the pickup may take seven and a half.
        (signals(capacity=1, working=1, rate=0.2), 1),
        (signals(capacity=1, working=1, rate=0.2, unacknowledged=1), 0),
        (signals(capacity=1, working=1, rate=2), 5),
        (signals(capacity=1, working=1, rate=100), 8),
        (signals(capacity=1, working=1, rate=0.13), 0),
    ],
)
def test_room(found: Signals, expected: int) -> None:
    assert room(Window(8, 100), found) == expected


def test_work_is_sent_ahead_for_no_longer_than_a_pickup_may_take() -> None:
    busy = signals(capacity=1, working=1, rate=8)
    assert room(Window(100, 100), busy) == 20
    assert room(Window(100, 100), busy._replace(ack_timeout=timedelta(seconds=4))) == 8


def test_a_service_that_was_slow_to_pick_up_has_the_next_directive_at_hand() -> None:
    """Else it would stay slow: it waits for each, and so finishes few."""
    slow = signals(capacity=1, working=1, rate=0.05)._replace(slot_seconds=5.0)
    assert room(Window(100, 100), slow) == 1
    assert room(Window(100, 100), slow._replace(slot_seconds=8.0)) == 0


@given(
    st.floats(1, 100),
    st.integers(0, 200),
    st.integers(0, 200),
    st.none() | st.integers(0, 200),
    st.floats(0, 100),
)
def test_room_is_never_more_than_the_window_leaves(
    size: float, unacknowledged: int, working: int, capacity: int | None, rate: float
) -> None:
    found = room(Window(size, 100), signals(unacknowledged, working, capacity, rate))
    assert 0 <= found <= max(int(size) - unacknowledged, 0)


@given(st.lists(st.sampled_from([QUICK, NEUTRAL, SLOW, None]), max_size=200))
def test_it_never_leaves_its_limits(waits: list[timedelta | None]) -> None:
    window, now = new_window(LIMITS), NOW
    for waited in waits:
        now += timedelta(seconds=1)
        if waited is None:
            window = missed(window, LIMITS, sent_at=now, now=now)
        else:
            window = picked_up(
                window,
                LIMITS,
                waited=waited,
                ack_timeout=TIMEOUT,
                unacknowledged=int(window.size),
                now=now,
            )
        assert LIMITS.least <= window.size <= LIMITS.most


def test_a_service_that_seems_full_is_tried_now_and_then() -> None:
    assert may_probe(Probes(), signals(), NOW)
    assert not may_probe(Probes(), signals(unacknowledged=1), NOW)
    for failures, pause in enumerate((1, 2, 4, 8, 16, 32, 64, 120, 120)):
        due = NOW + timedelta(minutes=pause)
        assert may_probe(Probes(NOW, failures), signals(), due)
        assert not may_probe(Probes(NOW, failures), signals(), due - timedelta(microseconds=1))
    assert may_probe(Probes(NOW, 10**6), signals(), NOW + LONGEST_PROBE_PAUSE)


@given(st.integers(0, 1000), st.integers(1, 9))
def test_dispatchers_share_a_room_without_rest(rooms: int, dispatchers: int) -> None:
    shares = [share(rooms, dispatchers, rank) for rank in range(dispatchers)]
    assert sum(shares) == rooms
    assert max(shares) - min(shares) <= 1
    assert sorted(shares, reverse=True) == shares
