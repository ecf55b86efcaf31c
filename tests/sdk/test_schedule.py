"""Which lanes are looked at: never for more than there are slots, and no lane is forgotten."""

import random
from collections import Counter, deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lucius_sdk.servicebus_consumer.schedule import LONG_LOOK, ROUND, SHORT_LOOK, LaneSchedule, Look
from tests.runner.tiers import examples

LANES = range(16)


def test_while_nothing_is_known_every_lane_is_looked_at_for_one_directive() -> None:
    looks = LaneSchedule(LANES, 64).next_looks(0)
    assert [look.lane for look in looks] == list(LANES)
    assert {(look.limit, look.wait) for look in looks} == {(1, LONG_LOOK)}


def test_with_fewer_slots_than_lanes_the_lanes_take_turns() -> None:
    schedule = LaneSchedule(LANES, 3)
    seen: list[int] = []
    for _ in range(16):
        for look in schedule.next_looks(0):
            seen.append(look.lane)
            schedule.looked(look, 0)
    assert Counter(seen) == dict.fromkeys(LANES, 3)


def test_a_hot_lane_gets_all_slots_that_nobody_else_uses() -> None:
    schedule = LaneSchedule(LANES, 64)
    looks = schedule.next_looks(0)
    schedule.looked(looks[5], 1)
    (more,) = schedule.next_looks(0)
    assert (more.lane, more.limit) == (5, 64 - 16)


def test_hot_lanes_share_in_turn_and_in_batches() -> None:
    """Slots that are free go to a few of them; the others are first at the next look."""
    schedule = LaneSchedule(range(8), 32)
    for look in schedule.next_looks(0):
        schedule.looked(look, 1)
    first = schedule.next_looks(0)
    assert [(look.lane, look.limit) for look in first] == [(0, 8), (1, 8), (2, 8)]
    for look in first:
        schedule.looked(look, 0)
    assert [look.lane for look in schedule.next_looks(0)][-3:] == [3, 4, 5]


def test_a_lane_that_failed_rests_longer_each_time() -> None:
    schedule = LaneSchedule([7], 1)
    now, pauses = 0.0, []
    for _ in range(4):
        (look,) = schedule.next_looks(now)
        schedule.failed(look, now)
        due = schedule.next_due(now)
        assert due is not None
        assert schedule.next_looks(now) == []
        pauses.append(round(due - now, 3))
        now = due
    assert pauses == [0.2, 1.0, 5.0, 5.0]


def test_a_lane_that_has_rested_is_not_waited_for_again() -> None:
    """It is looked at when a slot is free; until then time changes nothing."""
    schedule = LaneSchedule([7], 1)
    (look,) = schedule.next_looks(0)
    schedule.failed(look, 0)
    assert schedule.take()
    assert schedule.next_looks(1) == []
    assert schedule.next_due(1) is None


def test_a_slot_is_taken_only_if_one_is_free() -> None:
    schedule = LaneSchedule([0], 1)
    assert schedule.take()
    assert not schedule.take()
    assert schedule.next_looks(0) == []
    schedule.freed()
    assert len(schedule.next_looks(0)) == 1


@settings(max_examples=examples(200))
@given(st.integers(1, 40), st.randoms(use_true_random=False))
def test_looks_and_work_together_never_have_more_than_all_slots(
    slots: int, chance: random.Random
) -> None:
    schedule = LaneSchedule(LANES, slots)
    looks: list[Look] = []
    working = 0
    for moment in range(100):
        looks += schedule.next_looks(moment)
        assert working + sum(look.limit for look in looks) + schedule.free == slots
        assert len({look.lane for look in looks}) == len(looks)
        if looks and chance.random() < 0.6:
            look = looks.pop(chance.randrange(len(looks)))
            if chance.random() < 0.2:
                schedule.failed(look, moment)
            else:
                came = chance.randint(0, look.limit)
                schedule.looked(look, came)
                working += came
        elif working:
            working -= 1
            schedule.freed(chance.random())
        elif schedule.take():
            working += 1


@pytest.mark.parametrize("slots", [1, 4, 8])
def test_with_fewer_slots_than_lanes_going_around_takes_no_longer_than_a_round(slots: int) -> None:
    schedule = LaneSchedule(LANES, slots)
    seen: set[int] = set()
    now = 0.0
    while len(seen) < len(LANES):
        looks = schedule.next_looks(now)
        seen |= {look.lane for look in looks}
        now += looks[0].wait
        for look in looks:
            schedule.looked(look, 0)
    assert now == pytest.approx(ROUND)


def served_after(slots: int, handler_seconds: float) -> float:
    """How long a directive on a quiet lane waits while another lane has work without end, in
    handler times; simulated."""
    schedule = LaneSchedule(LANES, slots)
    busy, quiet = 3, 11
    now, arrived = 0.0, 20 * handler_seconds
    events: deque[tuple[float, Look | None]] = deque()
    while True:
        for look in schedule.next_looks(now):
            has_come = look.lane == busy or (look.lane == quiet and now >= arrived)
            if look.lane == quiet and has_come:
                return (now - arrived) / handler_seconds
            events.append((now if has_come else now + look.wait, look))
        events = deque(sorted(events, key=lambda event: event[0]))
        now, done = events.popleft()
        if done is None:
            schedule.freed(handler_seconds)
        elif done.lane == busy:
            schedule.looked(done, done.limit)
            events.extend((now + handler_seconds, None) for _ in range(done.limit))
        else:
            schedule.looked(done, 0)


def test_a_directive_on_a_quiet_lane_waits_a_few_handler_times() -> None:
    for slots in (1, 2, 4, 8, 32, 64):
        for seconds in (0.1, 1.0, 30.0):
            assert served_after(slots, seconds) <= 8, (slots, seconds)


def test_looking_at_quiet_lanes_costs_little_of_the_work() -> None:
    """A service with one slot spends about a quarter of a handler's time on them."""
    schedule = LaneSchedule(LANES, 1)
    spent = worked = 0.0
    while worked < 100:
        (look,) = schedule.next_looks(0)
        if look.lane == 3:
            schedule.looked(look, 1)
            worked += 0.1
            schedule.freed(0.1)
        else:
            schedule.looked(look, 0)
            spent += SHORT_LOOK if look.wait == SHORT_LOOK else 0
    assert spent / worked < 0.3
