"""All machines together: crashes, lost answers and other tasks between any two storage calls."""

from contextlib import suppress
from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.artifacts.model.invariants import Invariants
from tests.artifacts.model.world import Choices, Exhausted, Stage
from tests.runner.tiers import examples

EXAMPLES = examples(90)
STEPS = EXAMPLES * 1100
_BYTES = 4000  # a step takes two to four


def _purge(stage: Stage) -> None:
    """Nobody needs anything any more."""
    stage.crash_all()
    stage.tombstone_all()
    stage.end_all_jobs()
    for _ in range(4):
        stage.let_time_pass(timedelta(days=30))
        stage.collect()


def test_nothing_is_lost_nothing_unverified_is_seen_and_nothing_is_left_behind() -> None:
    taken = 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow],
    )
    @given(st.binary(min_size=_BYTES, max_size=_BYTES))
    def run(decisions: bytes) -> None:
        nonlocal taken
        stage = Stage(Choices(decisions))
        invariants = Invariants(stage)
        with suppress(Exhausted):
            while True:
                stage.step()
                taken += 1
        _purge(stage)
        invariants.check_told()
        invariants.check_nothing_is_left()

    run()
    assert taken >= STEPS, "too few steps to call it a proof"
