"""Turns of queues: no starvation, no idle room, shares within one turn of what weights promise."""

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from lucius_orchestrator.domain.fair_order import Turn, allot, split

NAMES = "abcdefgh"
WEIGHTS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 5), min_size=1)
ROOMS = st.lists(st.integers(1, 12), min_size=1, max_size=60)


def behind(names: list[str], turn: Turn[str] | None) -> list[str]:
    """The ring of names as a ledger lists it."""
    if turn is None:
        return names
    later = [name for name in names if name > turn.queue]
    return later + [name for name in names if name <= turn.queue]


def served(weights: Mapping[str, int], rooms: list[int], limit: int | None = None) -> list[str]:
    """Who was served, in order, when no queue is ever empty. `limit`: how many are listed."""
    turn: Turn[str] | None = None
    order: list[str] = []
    for room in rooms:
        listed = behind(sorted(weights), turn)[: limit or room]
        shares, turn = allot(listed, room, turn, weights.__getitem__)
        order += [name for name, count in shares.items() for _ in range(count)]
        assert sum(shares.values()) == room
    return order


@given(WEIGHTS, ROOMS)
def test_shares_are_within_one_turn_of_the_weights(
    weights: Mapping[str, int], rooms: list[int]
) -> None:
    counts = Counter(served(weights, rooms))
    total, whole = sum(counts.values()), sum(weights.values())
    for name, weight in weights.items():
        assert abs(counts[name] - total * weight / whole) <= weight + max(weights.values())


@given(WEIGHTS, st.integers(1, 30))
def test_a_round_serves_every_queue_its_weight_and_starves_none(
    weights: Mapping[str, int], rounds: int
) -> None:
    one_at_a_time = [1] * (sum(weights.values()) * rounds)
    assert Counter(served(weights, one_at_a_time)) == Counter(
        {name: weight * rounds for name, weight in weights.items()}
    )


@given(WEIGHTS, ROOMS)
def test_it_does_not_matter_how_the_room_comes(
    weights: Mapping[str, int], rooms: list[int]
) -> None:
    single = served(weights, [1] * sum(rooms))
    assert Counter(served(weights, rooms)) == Counter(single)


def test_a_turn_that_was_cut_short_is_finished_first() -> None:
    shares, turn = allot(["a", "b"], 2, None, {"a": 3, "b": 1}.__getitem__)
    assert (shares, turn) == ({"a": 2}, Turn("a", 1))
    shares, turn = allot(["b", "a"], 2, turn, {"a": 3, "b": 1}.__getitem__)
    assert (shares, turn) == ({"a": 1, "b": 1}, Turn("b", 0))


def test_without_room_nothing_is_allotted_and_the_turn_stays() -> None:
    turn = Turn("a", 2)
    assert allot(["b"], 0, turn, lambda _: 1) == ({}, turn)


def test_nobody_waits() -> None:
    assert allot([], 5, None, lambda _: 1) == ({}, None)


def test_a_weight_below_one_counts_as_one() -> None:
    assert allot(["a", "b"], 4, None, lambda _: 0).shares == {"a": 2, "b": 2}


@given(ROOMS, st.floats(0.05, 1))
def test_burst_gets_its_share_while_default_waits(rooms: list[int], share: float) -> None:
    credit, burst = 0.0, 0
    for room in rooms:
        found = split(room, default_waits=True, burst_waits=True, burst_share=share, credit=credit)
        assert found.default + found.burst == room
        assert found.default >= 0 <= found.burst
        burst, credit = burst + found.burst, found.credit
        assert 0 <= credit < 1
    assert abs(burst - sum(rooms) * share) < 1 + 1e-6


@given(st.integers(0, 100), st.floats(0.05, 1), st.floats(0, 0.99))
def test_the_mode_that_waits_alone_gets_everything(room: int, share: float, credit: float) -> None:
    def alone(*, default: bool, burst: bool) -> tuple[int, int]:
        found = split(
            room, default_waits=default, burst_waits=burst, burst_share=share, credit=credit
        )
        return found.default, found.burst

    assert alone(default=True, burst=False) == (room, 0)
    assert alone(default=False, burst=True) == (0, room)
    assert alone(default=False, burst=False) == (0, 0)
