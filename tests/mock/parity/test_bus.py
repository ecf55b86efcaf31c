"""Replies over the bus: what becomes of them in the job's state and events."""

from typing import Any

import pytest

from lucius_contract.messages import REPLY_LIMIT, Directive
from lucius_orchestrator.domain.aggregate import ReplyVia
from tests.mock.parity.service import BusService, Service, applied, duplicate, failed
from tests.mock.parity.target import Target

pytestmark = pytest.mark.asyncio(loop_scope="module")
REPLIES = ("ACK", "HEARTBEAT", "RESULT")
APPLIED, DUPLICATE, STALE, CONFLICT = "APPLIED", "DUPLICATE", "STALE_ATTEMPT", "RESULT_CONFLICT"
INVALID, NOT_FOUND = "ENVELOPE_INVALID", "JOB_NOT_FOUND"


async def submitted(target: Target) -> Directive:
    return await target.submit(ReplyVia.BUS)


async def states(target: Target, given: Directive) -> tuple[str, str]:
    return (await target.seen(given.job_id)).states


async def test_a_directive_to_be_answered_over_the_bus_has_no_address(target: Target) -> None:
    given = await submitted(target)
    assert given.callback_urls is None
    assert given.callback_token is None


async def test_an_attempt_is_acknowledged_kept_alive_and_finished(
    target: Target, bus_service: BusService
) -> None:
    given = await submitted(target)
    assert await bus_service.send(given, "ACK") == APPLIED
    assert await states(target, given) == ("IN_PROGRESS", "IN_PROGRESS")
    assert await bus_service.send(given, "HEARTBEAT", progress={"fraction": 0.5}) == APPLIED
    assert (await target.seen(given.job_id)).progress == {"fraction": 0.5}
    assert await bus_service.send(given, "RESULT") == APPLIED
    assert await states(target, given) == ("SUCCEEDED", "SUCCEEDED")


@pytest.mark.parametrize("type", REPLIES)
async def test_every_reply_may_be_the_first(
    target: Target, bus_service: BusService, type: str
) -> None:
    given = await submitted(target)
    assert await bus_service.send(given, type) == APPLIED
    assert (await target.seen(given.job_id)).attempts[0].is_acknowledged


async def test_what_is_said_again_is_a_duplicate(target: Target, bus_service: BusService) -> None:
    given = await submitted(target)
    await bus_service.send(given, "ACK")
    assert await bus_service.send(given, "ACK") == DUPLICATE
    await bus_service.send(given, "RESULT")
    for type in REPLIES:
        assert await bus_service.send(given, type) == DUPLICATE
    assert (await target.seen(given.job_id)).attempts[0].ignored_replies == 4


async def test_a_result_with_other_content_conflicts(
    target: Target, bus_service: BusService
) -> None:
    given = await submitted(target)
    await bus_service.send(given, "RESULT")
    assert await bus_service.send(given, "RESULT", **failed("FAILED_FINAL")) == CONFLICT
    assert await states(target, given) == ("SUCCEEDED", "SUCCEEDED")


@pytest.mark.parametrize("type", REPLIES)
async def test_an_attempt_that_another_has_followed_is_stale(
    target: Target, bus_service: BusService, type: str
) -> None:
    given = await submitted(target)
    await bus_service.send(given, "ACK")
    await target.expire(given.job_id)
    assert await bus_service.send(given, type) == STALE
    await target.next_attempt(given.job_id)
    assert await bus_service.send(given, type) == STALE
    assert (await target.seen(given.job_id)).attempts[0].ignored_replies == 2


@pytest.mark.parametrize("type", REPLIES)
async def test_with_another_lease_a_reply_is_stale(
    target: Target, bus_service: BusService, type: str
) -> None:
    given = await submitted(target)
    assert await bus_service.send(given, type, lease_id="0" * 32) == STALE
    assert await states(target, given) == ("DISPATCHING", "AWAITING_ACK")


async def test_a_reply_of_an_attempt_that_never_was_is_stray(
    target: Target, bus_service: BusService
) -> None:
    given = await submitted(target)
    assert await bus_service.send(given, "ACK", attempt_no=2) == STALE
    assert (await target.seen(given.job_id)).stray_replies == 1


@pytest.mark.parametrize("type", REPLIES)
async def test_a_late_reply_counts_after_an_ack_timeout(
    target: Target, bus_service: BusService, type: str
) -> None:
    given = await submitted(target)
    await target.expire(given.job_id)
    assert await bus_service.send(given, type) == APPLIED


@pytest.mark.parametrize("type", REPLIES)
async def test_a_reply_to_a_job_that_was_cancelled_is_stale(
    target: Target, bus_service: BusService, type: str
) -> None:
    given = await submitted(target)
    await target.expire(given.job_id)
    await target.cancel(given.job_id)
    assert await bus_service.send(given, type) == STALE


@pytest.mark.parametrize("type", REPLIES)
@pytest.mark.parametrize("change", [{"stepId": "step_02"}, {"tenant_id": "globex"}], ids=str)
async def test_another_step_or_tenant_is_refused_and_recorded(
    target: Target, bus_service: BusService, type: str, change: dict[str, Any]
) -> None:
    given = await submitted(target)
    assert await bus_service.send(given, type, **change) == NOT_FOUND
    assert (await target.seen(given.job_id)).refusals == 1
    assert await states(target, given) == ("DISPATCHING", "AWAITING_ACK")


async def test_a_reply_to_no_job_is_forgotten(target: Target, bus_service: BusService) -> None:
    given = await submitted(target)
    assert await bus_service.send(given, "ACK", jobId="job_" + "0" * 32) == NOT_FOUND


UNREADABLE = {
    "no JSON": (b"{", INVALID),
    "no object": (b"[]", INVALID),
    "no UTF-8": (b'{"type": "\xff"}', INVALID),
    "very deep": (b"[" * 5_000 + b"]" * 5_000, INVALID),
    "no reply": (b'{"type": "DIRECTIVE"}', INVALID),
    "members are missing": (b'{"type": "ACK"}', INVALID),
    "another major version": (
        b'{"type": "ACK", "schema_version": "2"}',
        "SCHEMA_VERSION_UNSUPPORTED",
    ),
    "too large": (b" " * (REPLY_LIMIT + 1), "TOO_LARGE"),
}


@pytest.mark.parametrize("what", UNREADABLE)
async def test_what_cannot_be_read_is_put_aside_and_the_next_is_served(
    target: Target, bus_service: BusService, what: str
) -> None:
    raw, code = UNREADABLE[what]
    assert await bus_service.put(raw) == code
    given = await submitted(target)
    assert await bus_service.send(given, "ACK") == APPLIED


async def test_a_result_without_a_canonical_form_is_put_aside(
    target: Target, bus_service: BusService
) -> None:
    given = await submitted(target)
    assert await bus_service.send(given, "RESULT", x_pages=2**53) == INVALID
    assert await states(target, given) == ("DISPATCHING", "AWAITING_ACK")


async def test_unknown_members_and_minor_versions_are_tolerated(
    target: Target, bus_service: BusService
) -> None:
    given = await submitted(target)
    new = {"schema_version": "1.7", "x_new": {"deep": [1]}}
    assert await bus_service.send(given, "ACK", **new) == APPLIED


async def test_cancel_is_recorded_whatever_way_the_result_comes(
    target: Target, bus_service: BusService
) -> None:
    given = await submitted(target)
    await bus_service.send(given, "ACK")
    await target.cancel(given.job_id)
    stopped = failed("FAILED_FINAL", "CANCELLED")
    assert await bus_service.send(given, "RESULT", **stopped) == APPLIED
    assert await states(target, given) == ("CANCELLED", "CANCELLED")


async def test_both_ways_lead_to_the_same_job(
    target: Target, service: Service, bus_service: BusService
) -> None:
    """A directive with an address may be answered over the bus too."""
    given = await target.submit(ReplyVia.HTTP)
    assert await bus_service.send(given, "ACK") == APPLIED
    assert await service.ack(given) == duplicate()
    assert await service.result(given) == applied()
    assert await bus_service.send(given, "RESULT") == DUPLICATE
