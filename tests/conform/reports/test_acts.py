import pytest

from contract_tests.reports.acts import Life, act, life_after
from contract_tests.verdicts import Moment
from orchestrator_mock import What


@pytest.mark.parametrize(
    ("who", "text", "to", "what"),
    [
        ("harness", "published attempt 1 over global-bus-p4", "bus", "published"),
        ("bus", "delivered attempt 1 over global-bus-p4", "service", "delivered"),
        ("service", "RESULT attempt 1 SUCCEEDED over http → 200 APPLIED", "harness", "RESULT"),
        ("service", "RESULT attempt 1 SUCCEEDED over bus 7 → APPLIED", "bus", "RESULT"),
        ("service", "read of input.txt", "harness", "read"),
        ("harness", "read ended of input.txt", "service", "read ended"),
        ("service", "dead-lettered attempt 1 DIRECTIVE_INVALID", "bus", "dead-lettered"),
        ("bus", "lock lost attempt 1", None, "lock lost"),
        ("harness", "fault bus-away is on", None, "fault"),
        ("harness", "note the service is killed", None, ""),
        ("harness", "something else", None, ""),
    ],
)
def test_a_moment_goes_from_one_lane_to_another(
    who: str, text: str, to: str | None, what: str
) -> None:
    found = act(Moment(0, who, text))
    assert (found.who, found.to, found.what) == (who, to, what)


def test_everything_that_can_be_recorded_is_understood() -> None:
    for what in set(What) - {What.NOTE}:
        assert act(Moment(0, "harness", f"{what} of something")).what == what


def test_the_service_is_away_between_a_kill_and_a_start() -> None:
    notes = ["the service is killed", "nothing", "the service is started", "the service is frozen"]
    life, found = Life.UP, []
    for note in notes:
        life = life_after(Moment(0, "harness", f"note {note}"), life)
        found.append(life)
    assert found == [Life.DOWN, Life.DOWN, Life.UP, Life.FROZEN]
