"""The account that a process keeps of attempts that Temporal drives, as it learns of them."""

from datetime import timedelta

import pytest

from lucius_contract.messages import Outcome
from lucius_orchestrator.domain.window import Limits
from lucius_orchestrator.engine.service_load import Seen
from lucius_orchestrator.engine.traffic import (
    LAPSED,
    UNACKNOWLEDGED,
    WORKING,
    Move,
    Traffic,
    digest_of,
)
from tests.domain.scenario import START, Scenario

KEY = ("job_1", "step_01")
DIGEST = digest_of(KEY)
LANE = 3
SECOND = timedelta(seconds=1)


class Account:
    """Of one service with a window of one directive; the job is driven by a workflow."""

    def __init__(self) -> None:
        self.job = Scenario.driven()
        self.traffic = Traffic(lambda: self.job.now, Limits(1, 1), lane_limit=1)
        self.traffic.is_shared = True

    def commits(self, *verbs: str) -> "Account":
        for verb in verbs:
            getattr(self.job, verb)()
        return self

    def committed(self, verb: str) -> list[int | None]:
        """Let it happen in this process; return what the others are told."""
        told = len(self.traffic.moves)
        event = _recorded(self.job, verb)
        self.traffic.committed(event, self.job.last, self.job.aggregate)
        return [move.state for move in self.traffic.moves[told:]]

    def hears(self, state: int | None, ago: timedelta = timedelta()) -> None:
        self.traffic.apply([Move(DIGEST, state, self.job.now - ago)])

    @property
    def seen(self) -> Seen:
        return self.traffic.seen(dispatches=True).get("ocr", Seen())

    def claim(self) -> None:
        self.job.now += SECOND
        self.traffic.turn_claimed(*KEY, "ocr", LANE)


def _recorded(job: Scenario, verb: str):  # type: ignore[no-untyped-def]
    events = []
    happens = job.happens

    def record(event, after=SECOND):  # type: ignore[no-untyped-def]
        events.append(event)
        return happens(event, after)

    job.happens = record  # type: ignore[method-assign]
    try:
        getattr(job, verb)()
    finally:
        job.happens = happens  # type: ignore[method-assign]
    return events[-1]


def test_what_another_granted_is_told_and_not_counted() -> None:
    account = Account().commits("submitted", "queued", "turn_granted")
    assert account.committed("opened") == []
    assert account.committed("sent") == [UNACKNOWLEDGED]
    assert account.committed("acked") == [WORKING]
    assert account.committed("result") == [None]
    assert (account.seen.unacknowledged, account.seen.working) == (0, 0)


def test_a_process_that_is_alone_counts_what_it_publishes() -> None:
    account = Account().commits("submitted", "queued", "turn_granted", "opened")
    account.traffic.is_shared = False
    account.committed("sent")
    assert account.seen.unacknowledged == 1


def test_an_ack_that_was_missed_is_told_as_that() -> None:
    account = Account().commits("submitted", "opened", "sent")
    assert account.committed("ack_timeout") == [LAPSED]
    assert account.committed("queued") == [None]


def test_a_retry_that_is_admitted_here_ends_the_account_that_another_keeps() -> None:
    account = Account().commits("submitted", "opened", "sent", "ack_timeout")
    account.traffic.claimed(*KEY, "ocr", LANE)
    assert account.committed("opened") == [None]


def test_a_claim_that_is_made_again_gives_no_room_to_others() -> None:
    account, came = Account(), list[int]()
    account.claim()
    account.traffic.set_backlog("ocr", waits=True)
    account.traffic.on_room = lambda: came.append(1)
    account.claim()
    assert account.seen.unacknowledged == 1
    assert came == []


def test_a_claim_follows_what_others_tell_of_it() -> None:
    account = Account()
    account.claim()
    account.hears(UNACKNOWLEDGED)
    assert account.seen.unacknowledged == 1
    account.hears(WORKING)
    assert (account.seen.unacknowledged, account.seen.working) == (0, 1)
    account.hears(UNACKNOWLEDGED)  # told by a third process, and later
    assert account.seen.working == 1
    account.hears(None)
    assert account.seen.working == 0
    assert account.seen.rate > 0


def test_a_claim_that_ends_unpublished_finishes_nothing() -> None:
    account = Account()
    account.claim()
    account.hears(None)
    assert (account.seen.unacknowledged, account.seen.rate) == (0, 0.0)


def test_a_move_of_the_attempt_before_does_not_end_the_claim_of_the_next() -> None:
    account = Account()
    account.claim()
    account.hears(None, ago=SECOND)
    assert account.seen.unacknowledged == 1


@pytest.mark.parametrize("absent", [True, False])
def test_a_missed_ack_is_judged_by_what_was_heard_of_the_service(absent: bool) -> None:
    account = Account()
    account.claim()
    account.hears(UNACKNOWLEDGED)
    if not absent:
        account.job.now += SECOND
        account.traffic.learn([{"ocr": Seen(heard_at=account.job.now)}], 1, 0)
    account.hears(LAPSED)
    assert account.seen.absent == absent
    assert account.seen.unacknowledged == 1


def test_a_late_ack_counts_although_the_next_attempt_waits() -> None:
    account = Account().commits("submitted", "opened")
    account.traffic.claimed(*KEY, "ocr", LANE)
    for verb in ("sent", "ack_timeout"):
        account.committed(verb)
    assert account.traffic.room("ocr") == 0
    account.committed("queued")
    assert account.traffic.room("ocr") == 1
    account.committed("acked")
    assert account.seen.working == 1
    account.claim()  # the turn of the next attempt, for which it is too early
    assert (account.seen.unacknowledged, account.seen.working) == (0, 1)


@pytest.mark.parametrize(
    ("verbs", "counts"),
    [
        (["submitted"], (0, 0)),
        (["submitted", "queued"], (0, 0)),
        (["submitted", "queued", "turn_granted"], (1, 0)),
        (["submitted", "queued", "turn_granted", "pause"], (0, 0)),
        (["submitted", "queued", "turn_granted", "opened"], (1, 0)),
        (["submitted", "opened", "sent"], (1, 0)),
        (["submitted", "opened", "sent", "ack_timeout"], (1, 0)),
        (["submitted", "opened", "sent", "ack_timeout", "queued"], (0, 0)),
        (["submitted", "opened", "sent", "acked"], (0, 1)),
        (["submitted", "opened", "sent", "acked", "cancel"], (0, 1)),
    ],
)
def test_a_job_that_is_read_again_counts_as_it_stands(
    verbs: list[str], counts: tuple[int, int]
) -> None:
    account = Account().commits(*verbs)
    for _ in range(2):
        account.traffic.restore(account.job.aggregate)
        assert (account.seen.unacknowledged, account.seen.working) == counts


def test_what_is_worked_on_takes_no_room_of_its_lane() -> None:
    account = Account().commits("submitted", "opened", "sent", "acked")
    lane = account.job.active.route.lane
    account.traffic.restore(account.job.aggregate)
    assert account.traffic.has_lane_room("ocr", lane)
    account.job.result(Outcome.FAILED_FINAL)
    account.traffic.restore(account.job.aggregate)
    account.traffic.claimed("job_2", "step_01", "ocr", lane)
    assert not account.traffic.has_lane_room("ocr", lane)
    assert account.job.now > START
