"""How much work a crash test submits."""

from itertools import count

from tests.runner.workload import Workload


def submitted_by(workload: Workload, wave: int = 10) -> int:
    submitted = 0
    while workload.wants_more(submitted):
        submitted += wave
    return submitted


def test_a_quick_machine_is_given_the_amount() -> None:
    assert submitted_by(Workload(100, budget=1, clock=lambda: 0)) == 100


def test_a_slow_machine_is_given_what_it_has_time_for() -> None:
    seconds = count()
    assert submitted_by(Workload(100, budget=5, clock=lambda: next(seconds))) == 50


def test_a_machine_without_time_is_given_one_wave() -> None:
    seconds = count()
    assert submitted_by(Workload(100, budget=0, clock=lambda: next(seconds))) == 10


def test_there_is_more_work_until_what_is_tested_has_happened() -> None:
    kills, seconds = count(), count()
    workload = Workload(20, lambda: next(kills) >= 4, budget=1, clock=lambda: next(seconds))
    assert submitted_by(workload) == 50
