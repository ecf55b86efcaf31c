"""Every row of the verdict table, over HTTP: the mock and the orchestrator answer the same."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from lucius_contract.messages import Directive
from tests.mock.parity.service import (
    ARTIFACT,
    CONFLICT,
    FORBIDDEN,
    STALE,
    Service,
    applied,
    duplicate,
    failed,
)
from tests.mock.parity.target import MAX_ATTEMPTS, Target

pytestmark = pytest.mark.asyncio(loop_scope="module")
REPLIES = ("ACK", "HEARTBEAT", "RESULT")


async def working(target: Target, service: Service) -> Directive:
    """A directive that was acknowledged."""
    given = await target.submit()
    assert await service.ack(given) == applied()
    return given


async def states(target: Target, given: Directive) -> tuple[str, str]:
    return (await target.seen(given.job_id)).states


async def following(target: Target, given: Directive) -> Directive:
    """The directive of the attempt after it."""
    found = await target.next_attempt(given.job_id)
    assert found is not None
    assert found.attempt_no == given.attempt_no + 1
    assert found.lease_id != given.lease_id
    return found


async def test_an_ack_is_applied_once(target: Target, service: Service) -> None:
    given = await target.submit()
    assert await states(target, given) == ("DISPATCHING", "AWAITING_ACK")
    assert await service.ack(given) == applied()
    assert await states(target, given) == ("IN_PROGRESS", "IN_PROGRESS")
    assert await service.ack(given) == duplicate()
    assert (await target.seen(given.job_id)).attempts[0].ignored_replies == 1


async def test_heartbeats_are_applied_however_often_they_come(
    target: Target, service: Service
) -> None:
    given = await working(target, service)
    for fraction in (0.25, 0.5):
        progress = {"fraction": fraction, "note": "reading"}
        assert await service.heartbeat(given, progress=progress) == applied()
        assert (await target.seen(given.job_id)).progress == progress
    assert (await target.seen(given.job_id)).attempts[0].ignored_replies == 0


async def test_a_result_is_applied_once_and_ends_the_job(target: Target, service: Service) -> None:
    given = await working(target, service)
    result = {"artifacts": [ARTIFACT], "output_ref": {"uri": "az://outbox/a.txt"}}
    assert await service.result(given, **result) == applied()
    assert await states(target, given) == ("SUCCEEDED", "SUCCEEDED")
    assert (await target.seen(given.job_id)).artifacts == 1
    assert await service.result(given, **result) == duplicate()
    assert await states(target, given) == ("SUCCEEDED", "SUCCEEDED")


@pytest.mark.parametrize("type", ["ACK", "RESULT"])
async def test_of_equal_replies_at_the_same_time_one_is_applied(
    target: Target, service: Service, type: str
) -> None:
    given = await target.submit()
    answers = await asyncio.gather(*(service.send(given, type) for _ in range(5)))
    assert sorted(said.said for said in answers) == ["APPLIED"] + ["DUPLICATE"] * 4


@pytest.mark.parametrize(
    "spelling",
    [
        {"timestamp": "2026-01-27T11:00:00+01:00"},
        {"error": None, "failure_class": None},
        {"artifacts": []},
    ],
    ids=lambda spelling: next(iter(spelling)),
)
async def test_a_result_in_another_spelling_is_the_same_result(
    target: Target, service: Service, spelling: dict[str, Any]
) -> None:
    given = await working(target, service)
    assert await service.result(given) == applied()
    assert await service.result(given, **spelling) == duplicate()


@pytest.mark.parametrize(
    "change",
    [
        failed("FAILED_RETRY"),
        {"artifacts": [ARTIFACT]},
        {"timestamp": "2026-01-27T10:00:01Z"},
        {"x_pages": 7},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_a_result_with_other_content_conflicts_after_the_job_ended(
    target: Target, service: Service, change: dict[str, Any]
) -> None:
    given = await working(target, service)
    await service.result(given)
    assert await service.result(given, **change) == CONFLICT
    assert await service.result(given) == duplicate()
    assert await states(target, given) == ("SUCCEEDED", "SUCCEEDED")


async def test_a_result_with_other_content_conflicts_while_the_job_goes_on(
    target: Target, service: Service
) -> None:
    given = await working(target, service)
    assert await service.result(given, **failed("FAILED_RETRY")) == applied()
    assert await service.result(given) == CONFLICT
    await following(target, given)
    assert await service.result(given) == CONFLICT
    assert await states(target, given) == ("IN_PROGRESS", "AWAITING_ACK")


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED_RETRY", "FAILED_FINAL"])
async def test_after_its_result_an_attempt_says_nothing_new(
    target: Target, service: Service, status: str
) -> None:
    given = await working(target, service)
    await service.result(given, status=status)
    assert await service.ack(given) == duplicate()
    assert await service.heartbeat(given) == duplicate()


async def test_a_result_of_an_attempt_that_is_past_is_still_a_duplicate(
    target: Target, service: Service
) -> None:
    """It is not told of a lease, which is another attempt's."""
    given = await working(target, service)
    await service.result(given, **failed("FAILED_RETRY"))
    await following(target, given)
    assert await service.result(given, **failed("FAILED_RETRY")) == duplicate(lease=None)
    assert await service.ack(given) == duplicate(lease=None)
    assert await service.heartbeat(given) == duplicate(lease=None)


@pytest.mark.parametrize("type", REPLIES)
async def test_an_attempt_that_another_has_followed_is_stale(
    target: Target, service: Service, type: str
) -> None:
    given = await working(target, service)
    await target.expire(given.job_id)
    current = await following(target, given)
    assert await service.send(given, type) == STALE
    assert (await target.seen(given.job_id)).attempts[0].ignored_replies == 1
    assert await service.ack(current) == applied()
    assert await service.result(current) == applied()
    assert await service.send(given, type) == STALE


@pytest.mark.parametrize("type", REPLIES)
async def test_an_attempt_that_missed_its_ack_timeout_and_was_followed_is_stale(
    target: Target, service: Service, type: str
) -> None:
    given = await target.submit()
    await target.expire(given.job_id)
    await following(target, given)
    assert await service.send(given, type) == STALE


@pytest.mark.parametrize("type", REPLIES)
async def test_with_another_lease_the_token_does_not_fit(
    target: Target, service: Service, type: str
) -> None:
    given = await working(target, service)
    assert await service.send(given, type, lease_id="0" * 32) == FORBIDDEN
    assert await states(target, given) == ("IN_PROGRESS", "IN_PROGRESS")


@pytest.mark.parametrize("type", REPLIES)
async def test_a_reply_to_a_job_that_was_cancelled_is_stale(
    target: Target, service: Service, type: str
) -> None:
    given = await target.submit()
    assert await target.cancel(given.job_id)
    assert await target.expire(given.job_id)
    assert await states(target, given) == ("CANCELLED", "CANCELLED")
    assert await service.send(given, type) == STALE


@pytest.mark.parametrize("type", REPLIES)
async def test_a_reply_to_a_job_that_failed_for_good_is_stale(
    target: Target, service: Service, type: str
) -> None:
    """Each attempt was acknowledged: of a service that nothing is heard from none would count."""
    given = await target.submit()
    for _ in range(MAX_ATTEMPTS - 1):
        await service.ack(given)
        await target.expire(given.job_id)
        given = await following(target, given)
    await service.ack(given)
    assert await target.expire(given.job_id)
    assert await states(target, given) == ("FAILED_FINAL", "FAILED_FINAL")
    assert await service.send(given, type) == STALE
    assert await target.next_attempt(given.job_id) is None


@pytest.mark.parametrize("type", ["HEARTBEAT", "RESULT"])
@pytest.mark.parametrize("marked", [True, False], ids=["sent", "not yet marked as sent"])
async def test_what_comes_without_an_ack_implies_it(
    target: Target, service: Service, type: str, marked: bool
) -> None:
    given = await target.submit(marked=marked)
    assert await service.send(given, type) == applied()
    (attempt,) = (await target.seen(given.job_id)).attempts
    assert attempt.is_acknowledged
    assert await service.ack(given) == duplicate()


async def test_an_ack_may_come_before_the_directive_is_marked_as_sent(
    target: Target, service: Service
) -> None:
    given = await target.submit(marked=False)
    assert await states(target, given) == ("DISPATCHING", "DISPATCHING")
    assert await service.ack(given) == applied()
    assert await states(target, given) == ("IN_PROGRESS", "IN_PROGRESS")


@pytest.mark.parametrize("type", REPLIES)
async def test_a_reply_after_an_ack_timeout_is_late_not_lost(
    target: Target, service: Service, type: str
) -> None:
    given = await target.submit()
    assert await target.expire(given.job_id)
    assert await states(target, given) == ("DISPATCHING", "FAILED_RETRY")
    assert await service.send(given, type) == applied()
    assert await service.ack(given) == duplicate()
    assert await service.result(given) == (duplicate() if type == "RESULT" else applied())
    assert await states(target, given) == ("SUCCEEDED", "SUCCEEDED")


@pytest.mark.parametrize("type", REPLIES)
async def test_a_reply_after_the_lease_has_expired_is_stale(
    target: Target, service: Service, type: str
) -> None:
    given = await working(target, service)
    assert await target.expire(given.job_id)
    assert await states(target, given) == ("IN_PROGRESS", "FAILED_RETRY")
    assert await service.send(given, type) == STALE


@pytest.mark.parametrize("type", ["HEARTBEAT", "RESULT"])
async def test_a_lease_that_is_over_counts_until_somebody_has_noticed(
    target: Target, service: Service, type: str
) -> None:
    given = await target.submit(lease=timedelta(microseconds=1))
    assert await service.ack(given) == applied(lease=0)
    await target.outlive_lease(given.job_id)
    assert await service.send(given, type) == applied(lease=0)


@pytest.mark.parametrize("type", REPLIES)
async def test_a_reply_after_cancel_of_an_attempt_that_waits_to_be_retried_is_stale(
    target: Target, service: Service, type: str
) -> None:
    given = await target.submit()
    await target.expire(given.job_id)
    assert await target.cancel(given.job_id)
    assert await states(target, given) == ("CANCELLED", "CANCELLED")
    assert await service.send(given, type) == STALE


RETRIED, FINAL = ("IN_PROGRESS", "FAILED_RETRY"), ("FAILED_FINAL", "FAILED_FINAL")
FAILURES: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "FAILED_RETRY": (failed("FAILED_RETRY", failure_class="RETRYABLE"), RETRIED),
    "FAILED_RETRY without a class": (failed("FAILED_RETRY"), RETRIED),
    "FAILED_FINAL": (failed("FAILED_FINAL", failure_class="NON_RETRYABLE"), FINAL),
    "FAILED_FINAL without a class": (failed("FAILED_FINAL"), FINAL),
    "older, retryable": (failed("FAILED", failure_class="RETRYABLE"), RETRIED),
    "older, not retryable": (failed("FAILED", failure_class="NON_RETRYABLE"), FINAL),
    "older, without a class": (failed("FAILED"), RETRIED),
    "the status wins over a class": (failed("FAILED_FINAL", failure_class="RETRYABLE"), FINAL),
    "and the other way round": (failed("FAILED_RETRY", failure_class="NON_RETRYABLE"), RETRIED),
    "CANCELLED, and nobody asked": (failed("FAILED_FINAL", "CANCELLED"), FINAL),
    "without an error": ({"status": "FAILED_FINAL"}, FINAL),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_failure_is_retried_or_final(
    target: Target, service: Service, failure: str
) -> None:
    members, ended = FAILURES[failure]
    given = await working(target, service)
    assert await service.result(given, **members) == applied()
    assert await states(target, given) == ended
    (attempt,) = (await target.seen(given.job_id)).attempts
    assert attempt.outcome == ended[1]
    assert attempt.error_code == members.get("error", {"code": "INTERNAL"})["code"]
    assert (await target.next_attempt(given.job_id) is not None) is (ended == RETRIED)


async def test_a_retryable_failure_of_the_last_attempt_is_final(
    target: Target, service: Service
) -> None:
    given = await target.submit()
    for _ in range(MAX_ATTEMPTS - 1):
        assert await service.result(given, **failed("FAILED_RETRY")) == applied()
        given = await following(target, given)
    assert await service.result(given, **failed("FAILED_RETRY")) == applied()
    assert await states(target, given) == FINAL


async def test_cancel_is_told_in_the_answers_of_an_attempt_at_work(
    target: Target, service: Service
) -> None:
    given = await target.submit()
    assert await target.cancel(given.job_id)
    assert await service.ack(given) == applied(cancel_requested=True)
    assert await service.ack(given) == duplicate(cancel_requested=True)
    assert await service.heartbeat(given) == applied(cancel_requested=True)
    assert await states(target, given) == ("CANCELLING", "IN_PROGRESS")


ENDS_OF_A_CANCELLED_JOB: dict[str, tuple[dict[str, Any], str]] = {
    "it stopped": (failed("FAILED_FINAL", "CANCELLED"), "CANCELLED"),
    "it had finished": ({"status": "SUCCEEDED"}, "SUCCEEDED"),
    "it may be tried again": (failed("FAILED_RETRY"), "CANCELLED"),
    "it failed for good": (failed("FAILED_FINAL"), "FAILED_FINAL"),
}


@pytest.mark.parametrize("end", ENDS_OF_A_CANCELLED_JOB)
async def test_however_the_work_ends_a_job_that_is_cancelling_is_cancelled(
    target: Target, service: Service, end: str
) -> None:
    members, step = ENDS_OF_A_CANCELLED_JOB[end]
    given = await working(target, service)
    await target.cancel(given.job_id)
    assert await service.result(given, **members) == applied(cancel_requested=True)
    assert await states(target, given) == ("CANCELLED", step)
    assert await service.result(given, **members) == duplicate(cancel_requested=True)
    assert await service.result(given, x_pages=7, **members) == CONFLICT


async def test_a_lease_that_expires_while_cancelling_cancels(
    target: Target, service: Service
) -> None:
    given = await working(target, service)
    await target.cancel(given.job_id)
    assert await target.expire(given.job_id)
    assert await states(target, given) == ("CANCELLED", "CANCELLED")
    assert await service.result(given) == STALE


async def test_a_job_that_has_ended_cannot_be_cancelled(target: Target, service: Service) -> None:
    given = await working(target, service)
    await service.result(given)
    assert not await target.cancel(given.job_id)
    assert await service.result(given) == duplicate()


async def test_a_new_attempt_has_its_own_token_and_lease(target: Target, service: Service) -> None:
    given = await working(target, service)
    await service.result(given, **failed("FAILED_RETRY"))
    current = await following(target, given)
    assert current.callback_token != given.callback_token
    assert await service.ack(current) == applied()
    assert await service.result(current) == applied()
    assert await states(target, given) == ("SUCCEEDED", "SUCCEEDED")
