"""Who may run a step: the table of decisions, and the transitions of a claim."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from lucius_sdk.idempotency_store import ClaimState, Expired, Finished, Held, Record, Superseded
from lucius_sdk.idempotency_store.decisions import (
    CrashLoop,
    Decision,
    Resend,
    Run,
    Wanted,
    acked,
    completed,
    decide_claim,
    released,
    renewed,
    reported,
)
from tests.sdk.idempotency_store.steps import LEASE, LOCK, RESULT, SKEW, START, record, wanted

CLAIMED, ACKED, COMPLETED, REPORTED = ClaimState
TICK = timedelta(microseconds=1)
LAPSED = START + LOCK + SKEW + TICK
OVER = START + LEASE + SKEW + TICK
UNFINISHED = (CLAIMED, ACKED)


def decide(stored: Record | None, claim: Wanted, now: datetime = START) -> Decision:
    return decide_claim(stored, claim, now, SKEW)


def test_the_first_claim_runs() -> None:
    assert decide(None, wanted()) == Run(record())


def test_a_directive_that_comes_too_late_is_expired() -> None:
    assert decide(None, wanted(), OVER) == Expired()


def test_the_skew_is_granted_to_a_deadline() -> None:
    assert isinstance(decide(None, wanted(), OVER - TICK), Run)


@pytest.mark.parametrize("state", ClaimState)
@pytest.mark.parametrize("owner", ["a", "b", None])
def test_a_higher_attempt_replaces_whatever_is_stored(state: ClaimState, owner: str | None) -> None:
    stored = record(state, owner=owner, epoch=7, takeovers=2)
    assert decide(stored, wanted(2, "b")) == Run(record(attempt_no=2, owner="b"))


@pytest.mark.parametrize("state", ClaimState)
def test_a_higher_attempt_that_comes_too_late_replaces_nothing(state: ClaimState) -> None:
    assert decide(record(state), wanted(2), OVER) == Expired()


@pytest.mark.parametrize("state", ClaimState)
@pytest.mark.parametrize("now", [START, LAPSED, OVER])
def test_a_lower_attempt_is_superseded(state: ClaimState, now: datetime) -> None:
    assert decide(record(state, attempt_no=2), wanted(1), now) == Superseded()


@pytest.mark.parametrize("state", ClaimState)
@pytest.mark.parametrize("now", [START, LAPSED, OVER])
def test_another_lease_of_the_same_attempt_is_superseded(state: ClaimState, now: datetime) -> None:
    assert decide(record(state), wanted(lease_id="another"), now) == Superseded()


@pytest.mark.parametrize("now", [START, LAPSED, OVER])
@pytest.mark.parametrize("owner", ["a", "b"])
def test_what_was_reported_is_finished(owner: str, now: datetime) -> None:
    assert decide(record(REPORTED), wanted(owner=owner), now) == Finished()


@pytest.mark.parametrize("state", UNFINISHED)
@pytest.mark.parametrize("owner", ["a", "b"])
@pytest.mark.parametrize("now", [START, START + LOCK, LAPSED - TICK])
def test_a_live_claim_is_held_also_by_the_one_who_asks(
    state: ClaimState, owner: str, now: datetime
) -> None:
    assert decide(record(state), wanted(owner=owner), now) == Held(START + LOCK)


@pytest.mark.parametrize("state", UNFINISHED)
def test_a_live_claim_is_held_also_after_the_deadline_that_is_stored(state: ClaimState) -> None:
    """Its owner may know of a later one."""
    stored = record(state, until=OVER + LOCK)
    assert decide(stored, wanted(owner="b"), OVER) == Held(OVER + LOCK)


@pytest.mark.parametrize("state", UNFINISHED)
@pytest.mark.parametrize("owner", ["a", "b"])
def test_a_lapsed_claim_is_taken_over(state: ClaimState, owner: str) -> None:
    """From the beginning: the ACK is sent again."""
    taken = record(CLAIMED, owner=owner, epoch=2, takeovers=1, until=LAPSED + LOCK)
    assert decide(record(state), wanted(owner=owner, now=LAPSED), LAPSED) == Run(taken)


@pytest.mark.parametrize("state", UNFINISHED)
def test_a_released_claim_is_taken_over_at_once_and_that_is_no_crash(state: ClaimState) -> None:
    stored = record(state, owner=None, takeovers=1, until=START)
    taken = record(CLAIMED, owner="b", epoch=2, takeovers=1)
    assert decide(stored, wanted(owner="b")) == Run(taken)


def test_whoever_gets_a_claim_gives_it_a_number() -> None:
    for stored in (None, record(claim_no=3), record(COMPLETED, claim_no=3)):
        decision = decide(stored, wanted(owner="b", now=LAPSED, claim_no=5), LAPSED)
        assert isinstance(decision, Run | Resend)
        assert decision.record.claim_no == 5


@pytest.mark.parametrize("owner", ["a", None])
def test_without_time_left_nobody_takes_over(owner: str | None) -> None:
    assert decide(record(owner=owner), wanted(owner="b"), OVER) == Expired()


def test_the_deadline_is_the_later_of_what_is_stored_and_what_is_wanted() -> None:
    later = START + 2 * LEASE
    for stored, asked in [(later, START), (START, later)]:
        decision = decide(record(deadline=stored), wanted(deadline=asked, now=OVER), OVER)
        assert isinstance(decision, Run)
        assert decision.record.deadline == later


def test_the_deadline_of_a_lower_attempt_is_forgotten() -> None:
    stored = record(deadline=START + 9 * LEASE)
    decision = decide(stored, wanted(2))
    assert isinstance(decision, Run)
    assert decision.record.deadline == START + LEASE


def test_the_third_take_over_is_answered_and_not_run() -> None:
    stored = record(takeovers=2, epoch=3)
    taken = record(owner="b", takeovers=3, epoch=4, until=LAPSED + LOCK)
    assert decide(stored, wanted(owner="b", now=LAPSED), LAPSED) == CrashLoop(taken)


@pytest.mark.parametrize("owner", ["a", None])
def test_after_the_third_take_over_it_never_runs(owner: str | None) -> None:
    stored = record(takeovers=3, epoch=4, owner=owner)
    assert isinstance(decide(stored, wanted(owner="b", now=LAPSED), LAPSED), CrashLoop)


@pytest.mark.parametrize("now", [LAPSED, OVER])
def test_a_result_of_a_lapsed_claim_is_sent_again_also_after_the_deadline(now: datetime) -> None:
    taken = record(COMPLETED, owner="b", epoch=2, until=now + LOCK)
    assert decide(record(COMPLETED), wanted(owner="b", now=now), now) == Resend(taken)


def test_a_result_of_a_released_claim_is_sent_at_once() -> None:
    stored = record(COMPLETED, owner=None, until=START)
    assert decide(stored, wanted(owner="b")) == Resend(record(COMPLETED, owner="b", epoch=2))


def test_a_result_of_its_own_is_sent_in_the_same_epoch() -> None:
    assert decide(record(COMPLETED), wanted()) == Resend(record(COMPLETED))


def test_a_result_that_another_is_sending_is_held() -> None:
    assert decide(record(COMPLETED), wanted(owner="b")) == Held(START + LOCK)


def test_sending_again_is_no_crash() -> None:
    decision = decide(record(COMPLETED, takeovers=2), wanted(owner="b", now=LAPSED), LAPSED)
    assert isinstance(decision, Resend)
    assert decision.record.takeovers == 2


def test_a_claim_goes_from_state_to_state() -> None:
    claimed = record()
    assert acked(claimed) == record(ACKED)
    assert completed(acked(claimed), RESULT) == record(COMPLETED)
    assert reported(record(COMPLETED)) == record(REPORTED)


def test_the_acknowledgement_may_be_skipped() -> None:
    assert completed(record(), RESULT) == record(COMPLETED)


def test_the_acknowledgement_may_be_repeated() -> None:
    assert acked(record(ACKED)) == record(ACKED)


@pytest.mark.parametrize("state", [CLAIMED, ACKED, COMPLETED])
def test_a_released_claim_has_no_owner_and_keeps_the_rest(state: ClaimState) -> None:
    moment = START + TICK
    assert released(record(state), moment) == record(state, owner=None, until=moment)


@pytest.mark.parametrize("state", [CLAIMED, ACKED, COMPLETED])
def test_neither_moment_moves_back(state: ClaimState) -> None:
    earlier, later = START - LEASE, START + 2 * LEASE
    assert renewed(record(state), earlier, earlier) == record(state)
    assert renewed(record(state), later, later) == record(state, until=later, deadline=later)
    assert renewed(record(state), later) == record(state, until=later)
    assert acked(record(), earlier) == record(ACKED)
    assert acked(record(), later) == record(ACKED, deadline=later)


REFUSED: dict[str, tuple[Callable[[Record], Record], list[ClaimState]]] = {
    "acked": (acked, [COMPLETED, REPORTED]),
    "renewed": (lambda stored: renewed(stored, START), [REPORTED]),
    "completed": (lambda stored: completed(stored, RESULT), [COMPLETED, REPORTED]),
    "reported": (reported, [CLAIMED, ACKED, REPORTED]),
    "released": (lambda stored: released(stored, START), [REPORTED]),
}


@pytest.mark.parametrize("verb", REFUSED)
def test_a_transition_refuses_a_state_that_it_cannot_follow(verb: str) -> None:
    transition, states = REFUSED[verb]
    for state in states:
        with pytest.raises(ValueError, match=state.value):
            transition(record(state))


@pytest.mark.parametrize("verb", REFUSED)
@pytest.mark.parametrize("state", ClaimState)
def test_a_released_claim_has_no_transitions(verb: str, state: ClaimState) -> None:
    with pytest.raises(ValueError, match="released"):
        REFUSED[verb][0](record(state, owner=None))
