"""What clients and services may ask of the engine, and what becomes of their jobs."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lucius_contract.audit import EventType, Verdict
from lucius_contract.documents import Ref
from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.messages import Directive, ResultStatus
from lucius_contract.routing import Mode
from lucius_contract.states import JobState, OutboxState, StepState
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.engine.engine import LedgerEngine, Submission
from lucius_orchestrator.engine.requests import JobRequest
from lucius_orchestrator.engine.steering import Steering
from lucius_orchestrator.ports.ledger import Limits, TooLarge
from lucius_orchestrator.ports.registry import GlobalConfig, TenantConfig
from lucius_orchestrator.sweepers.ack_timeout import AckTimeout
from tests.engine.plane import (
    ARTIFACT,
    MOMENT,
    PIPELINE,
    SECRET,
    SKEW,
    TENANT,
    TOPIC,
    Plane,
    ack,
    configured,
    heartbeat,
    one_step,
    request,
    result,
)
from tests.ledger.view import job_ids

RETRY, FINAL = ResultStatus.FAILED_RETRY, ResultStatus.FAILED_FINAL
LIMITS = {
    ErrorCode.TENANT_SATURATED: configured(tenant=TenantConfig(max_inflight=1)),
    ErrorCode.GLOBAL_SATURATED: configured(defaults=GlobalConfig(max_inflight=1)),
    ErrorCode.LANE_SATURATED: configured(
        defaults=GlobalConfig(max_inflight_per_mode={Mode.DEFAULT: 1})
    ),
}


async def refused(plane: Plane, asked: JobRequest) -> ErrorCode:
    with pytest.raises(ContractError) as refusal:
        await plane.submit(asked)
    return refusal.value.code


async def command(engine: LedgerEngine, name: str, job_id: str) -> JobState:
    aggregate = await getattr(engine, name)(job_id, by="ada")
    state: JobState = aggregate.job.state
    return state


async def serve(plane: Plane, service: str, **members: Any) -> Directive:
    """The step of this service succeeds."""
    directive = await plane.directive(service)
    await plane.reply(ack(directive))
    await plane.reply(result(directive, **members))
    return directive


async def test_a_request_becomes_a_job_with_a_directive_to_publish(plane: Plane) -> None:
    job_id, state, duplicate = await plane.engine.submit(request())
    assert (state, duplicate) == (JobState.DISPATCHING, False)
    assert await plane.states(job_id) == (JobState.DISPATCHING, StepState.DISPATCHING)
    row = await plane.row(job_id)
    assert row is not None
    assert (row.state, row.claimable) == (OutboxState.PENDING, True)


@pytest.mark.parametrize("members", [{}, {"idempotency_key": "k-1"}], ids=["content", "key"])
async def test_the_same_request_again_is_answered_with_the_job_as_it_is_now(
    plane: Plane, members: dict[str, Any]
) -> None:
    directive = await plane.working(request(**members))
    again = await plane.engine.submit(request(correlation_id="other", **members))
    assert again == Submission(directive.job_id, JobState.IN_PROGRESS, duplicate=True)
    assert await plane.dispatch() == 0
    assert await job_ids(plane.ledger) == [directive.job_id]


async def test_another_key_makes_another_job_of_the_same_content(plane: Plane) -> None:
    first = await plane.submit(request(idempotency_key="k-1"))
    assert await plane.submit(request(idempotency_key="k-2")) != first


async def test_a_key_with_other_content_is_a_conflict(plane: Plane) -> None:
    job_id = await plane.submit(request(idempotency_key="k-1"))
    other = request(idempotency_key="k-1", payload={"dpi": 72})
    assert await refused(plane, other) is ErrorCode.IDEMPOTENCY_CONFLICT
    assert await job_ids(plane.ledger) == [job_id]


async def test_a_duplicate_whose_job_is_removed_meanwhile_is_to_be_submitted_again(
    plane: Plane,
) -> None:
    directive = await plane.succeeded()

    async def remove(*_: Any) -> None:
        await plane.ledger.remove(await plane.stored(directive.job_id))

    plane.detour.before["find"] = remove
    assert await refused(plane, request()) is ErrorCode.UNAVAILABLE
    assert await plane.submit() != directive.job_id


async def test_a_duplicate_whose_job_is_removed_after_it_was_found_is_to_be_submitted_again(
    plane: Plane,
) -> None:
    directive = await plane.succeeded()

    async def remove(*_: Any) -> None:
        await plane.ledger.remove(await plane.stored(directive.job_id))

    plane.detour.after["find"] = remove
    assert await refused(plane, request()) is ErrorCode.UNAVAILABLE


@pytest.mark.parametrize("code", LIMITS)
async def test_a_full_limit_refuses_until_a_job_has_ended(plane: Plane, code: ErrorCode) -> None:
    first = request(LIMITS[code], idempotency_key="k-1")
    second = request(LIMITS[code], idempotency_key="k-2")
    directive = await plane.working(first)
    assert await refused(plane, second) is code
    assert await job_ids(plane.ledger) == [directive.job_id]
    await plane.reply(result(directive))
    assert await plane.submit(second) != directive.job_id


async def test_a_duplicate_is_answered_although_the_limit_is_full(plane: Plane) -> None:
    asked = request(configured(tenant=TenantConfig(max_inflight=1)))
    job_id = await plane.submit(asked)
    assert (await plane.engine.submit(asked)).job_id == job_id


async def test_a_payload_that_no_directive_can_carry_creates_nothing(plane: Plane) -> None:
    large = request(one_step(), payload={"text": "x" * 200_000})
    assert await refused(plane, large) is ErrorCode.TOO_LARGE
    assert await job_ids(plane.ledger) == []
    assert (await plane.ledger.in_flight(TENANT)).total == 0
    assert await plane.ledger.find(TENANT, large.entry) is None


async def test_a_job_that_no_row_of_the_store_can_hold_is_refused(plane: Plane) -> None:
    plane.detour.fail("create", error=TooLarge("the job is larger than 1 MiB"))
    assert await refused(plane, request()) is ErrorCode.TOO_LARGE


async def test_a_command_to_a_job_of_temporal_is_refused_where_no_invoker_is_known(
    plane: Plane,
) -> None:
    job = replace(await plane.job(await plane.submit()), engine=Engine.TEMPORAL)
    with pytest.raises(ContractError, match="LUCIUS_TEMPORAL_ENABLED") as refusal:
        await Steering(plane.engine).tell(job, "cancel", None)
    assert refusal.value.code is ErrorCode.UNAVAILABLE


async def test_three_steps_lead_to_the_final_output(plane: Plane) -> None:
    job_id = await plane.submit(request(**PIPELINE))
    await serve(plane, "ocr")
    await serve(plane, "embedding")
    await serve(plane, "sis", output_ref=Ref(uri="az://outbox/real.json"))
    job = await plane.job(job_id)
    assert (job.state, job.final_output) == (JobState.SUCCEEDED, "az://outbox/real.json")
    assert [step.state for step in (await plane.stored(job_id)).aggregate.steps] == [
        StepState.SUCCEEDED
    ] * 3


async def test_no_two_attempts_of_any_jobs_share_a_lease(plane: Plane) -> None:
    leases = []
    for number in range(3):
        await plane.submit(request(**PIPELINE | {"idempotency_key": f"k-{number}"}))
        leases += [(await serve(plane, name)).lease_id for name in ("ocr", "embedding", "sis")]
        failing = await plane.working(request(idempotency_key=f"f-{number}"))
        await plane.reply(result(failing, RETRY))
        plane.later(minutes=2)
        await plane.sweep_all()
        leases += [failing.lease_id, (await serve(plane, "ocr")).lease_id]
    assert len(set(leases)) == len(leases) == 15


async def report_failures(plane: Plane, jobs: Sequence[str]) -> None:
    await plane.dispatch()
    for job_id in jobs:
        await plane.reply(result(await plane.attempt(job_id), RETRY))


async def acknowledge_nothing(plane: Plane, _jobs: Sequence[str]) -> None:
    await plane.dispatch()
    plane.later(timedelta(seconds=30) + SKEW)
    await plane.sweep(AckTimeout)


async def be_out_of_reach(plane: Plane, _jobs: Sequence[str]) -> None:
    plane.bus.refuse(TOPIC)
    await plane.dispatch()


@pytest.mark.parametrize("fail", [report_failures, acknowledge_nothing, be_out_of_reach])
async def test_each_failed_attempt_waits_by_a_jitter_of_its_own(
    plane: Plane, fail: Callable[[Plane, Sequence[str]], Awaitable[None]]
) -> None:
    """Else those that fail together would be tried again together."""
    plane.chances = (number / 1000 for number in range(1000))
    jobs = [await plane.submit(request(idempotency_key=f"k-{number}")) for number in range(3)]
    waits = []
    for whole_wait in (timedelta(minutes=1), timedelta(minutes=5)):
        await fail(plane, jobs)
        for job_id in jobs:
            step = await plane.step(job_id)
            assert step.next_attempt_at is not None
            waits.append((step.next_attempt_at - plane.clock.now) / whole_wait)
        plane.later(1.1 * whole_wait + SKEW)
        assert await plane.sweep_all() == {"due_retries": len(jobs)}
    assert all(0.9 <= wait < 1.1 for wait in waits)
    assert len(set(waits)) == len(waits) == 2 * len(jobs)


async def test_a_job_that_published_nothing_has_no_final_output(plane: Plane) -> None:
    directive = await plane.succeeded()
    assert (await plane.job(directive.job_id)).final_output is None


async def test_a_directive_carries_the_artifacts_of_the_steps_before(plane: Plane) -> None:
    await plane.submit(request(**PIPELINE))
    first = await serve(plane, "ocr", artifacts=[ARTIFACT])
    second = await serve(plane, "embedding", artifacts=[])
    third = await plane.directive("sis")
    assert first.prior_artifacts == {}
    assert {kind: len(found) for kind, found in second.prior_artifacts.items()} == {"OCR": 1}
    assert third.prior_artifacts["OCR"][0].to_json() == ARTIFACT
    assert third.prior_artifacts["EMBEDDING"] == []
    assert (first.payload, second.payload) == ({"dpi": 300}, {})
    assert third.payload["prompt_set"][0]["prompt"] == SECRET


async def test_a_step_begins_only_after_the_one_before_it_succeeded(plane: Plane) -> None:
    await plane.submit(request(**PIPELINE))
    directive = await plane.directive("ocr")
    await plane.reply(ack(directive))
    assert await plane.dispatch() == 0
    assert await plane.directives("embedding") == []


async def test_a_failed_attempt_is_followed_by_another_after_the_backoff(plane: Plane) -> None:
    first = await plane.working()
    await plane.reply(result(first, RETRY))
    assert await plane.states(first.job_id) == (JobState.IN_PROGRESS, StepState.FAILED_RETRY)
    plane.later(timedelta(minutes=1) + SKEW - MOMENT)
    assert await plane.sweep_all() == {}
    plane.later(MOMENT)
    assert await plane.sweep_all() == {"due_retries": 1}
    second = await plane.directive()
    assert (second.job_id, second.step_id) == (first.job_id, first.step_id)
    assert (first.attempt_no, second.attempt_no) == (1, 2)
    assert first.lease_id != second.lease_id


async def test_after_the_last_attempt_the_job_has_failed(plane: Plane) -> None:
    first = await plane.working(request(one_step(max_attempts=1)))
    await plane.reply(result(first, RETRY))
    job = await plane.job(first.job_id)
    assert (job.state, job.error_code) == (JobState.FAILED_FINAL, "ocr.BROKEN")
    (letter,) = await plane.letters()
    assert (letter.job_id, letter.step_id, letter.attempt_no) == (first.job_id, "step_01", 1)
    assert (letter.kind, letter.code, letter.message) == ("STEP", "ocr.BROKEN", "it broke")


async def test_an_ack_restarts_the_lease_and_says_so(plane: Plane) -> None:
    await plane.submit()
    directive = await plane.directive()
    plane.later(seconds=20)
    answer = await plane.reply(ack(directive))
    assert answer == (Verdict.APPLIED, plane.clock.now + timedelta(minutes=15), False)
    assert await plane.states(directive.job_id) == (JobState.IN_PROGRESS, StepState.IN_PROGRESS)


async def test_a_second_ack_changes_nothing_and_is_recorded(plane: Plane) -> None:
    directive = await plane.working()
    before = await plane.step(directive.job_id)
    plane.later(seconds=5)
    answer = await plane.reply(ack(directive))
    assert answer.verdict is Verdict.DUPLICATE
    assert (await plane.step(directive.job_id)).lease_expires_at == before.lease_expires_at
    (event,) = await plane.events(directive.job_id, EventType.REPLY_IGNORED)
    assert (event.cause, event.detail) == ("AckReceived", Verdict.DUPLICATE)


async def test_a_reply_of_an_earlier_attempt_is_stale_and_recorded(plane: Plane) -> None:
    first = await plane.working()
    plane.later(timedelta(minutes=15) + SKEW)
    assert await plane.sweep_all() == {"expired_lease": 1}
    plane.later(timedelta(minutes=1) + SKEW)
    assert await plane.sweep_all() == {"due_retries": 1}
    answer = await plane.reply(result(first))
    assert answer == (Verdict.STALE_ATTEMPT, None, False)
    step = await plane.step(first.job_id)
    assert (step.attempt_no, step.state) == (2, StepState.DISPATCHING)
    (event,) = await plane.events(first.job_id, EventType.REPLY_IGNORED)
    assert (event.attempt_no, event.detail) == (1, Verdict.STALE_ATTEMPT)


async def test_a_reply_with_another_lease_is_stale(plane: Plane) -> None:
    directive = await plane.working()
    stranger = directive.model_copy(update={"lease_id": "guessed"})
    assert (await plane.reply(result(stranger))).verdict is Verdict.STALE_ATTEMPT
    assert (await plane.job(directive.job_id)).state is JobState.IN_PROGRESS


async def test_a_reply_after_the_end_changes_nothing_and_is_recorded(plane: Plane) -> None:
    directive = await plane.working()
    await plane.engine.cancel(directive.job_id)
    await plane.reply(result(directive, RETRY))
    late = directive.model_copy(update={"attempt_no": 2})
    answer = await plane.reply(result(late))
    assert answer.verdict is Verdict.STALE_ATTEMPT
    assert (await plane.job(directive.job_id)).state is JobState.CANCELLED
    (event,) = await plane.events(directive.job_id, EventType.REPLY_IGNORED)
    assert (event.cause, event.attempt_no) == ("ResultReceived", 2)


async def test_a_heartbeat_extends_the_lease_and_is_no_event(plane: Plane) -> None:
    directive = await plane.working()
    before = await plane.events(directive.job_id)
    plane.later(minutes=10)
    answer = await plane.reply(heartbeat(directive, 0.25))
    step = await plane.step(directive.job_id)
    assert answer.lease_expires_at == plane.clock.now + timedelta(minutes=15)
    assert step.lease_expires_at == answer.lease_expires_at
    assert step.progress == {"fraction": 0.25}
    assert await plane.events(directive.job_id) == before


async def test_a_result_counts_although_its_ack_was_lost(plane: Plane) -> None:
    await plane.submit()
    directive = await plane.directive()
    assert (await plane.reply(result(directive))).verdict is Verdict.APPLIED
    moves = await plane.events(directive.job_id, EventType.STEP_STATE_CHANGED)
    assert [(move.target, move.implied) for move in moves][-2:] == [
        (StepState.IN_PROGRESS, True),
        (StepState.SUCCEEDED, False),
    ]


async def test_the_same_result_again_is_a_duplicate(plane: Plane) -> None:
    directive = await plane.succeeded()
    assert (await plane.reply(result(directive))).verdict is Verdict.DUPLICATE


async def test_another_result_of_the_attempt_is_a_conflict(plane: Plane) -> None:
    directive = await plane.succeeded()
    answer = await plane.reply(result(directive, FINAL))
    assert answer.verdict is Verdict.RESULT_CONFLICT
    assert (await plane.job(directive.job_id)).state is JobState.SUCCEEDED


async def test_a_reply_to_no_job_is_not_found(plane: Plane) -> None:
    directive = await plane.working()
    with pytest.raises(ContractError) as refusal:
        await plane.reply(ack(directive.model_copy(update={"job_id": "job_unknown"})))
    assert refusal.value.code is ErrorCode.JOB_NOT_FOUND


@pytest.mark.parametrize("name", ["cancel", "pause", "resume", "read"])
async def test_who_asks_for_a_job_that_is_not_there_is_told(plane: Plane, name: str) -> None:
    with pytest.raises(ContractError) as refusal:
        await getattr(plane.engine, name)("job_unknown")
    assert refusal.value.code is ErrorCode.JOB_NOT_FOUND


async def test_a_reply_in_the_name_of_another_tenant_is_refused_and_recorded(
    plane: Plane,
) -> None:
    directive = await plane.working()
    with pytest.raises(ContractError) as refusal:
        await plane.reply(result(directive.model_copy(update={"tenant_id": "other"})))
    assert refusal.value.code is ErrorCode.JOB_NOT_FOUND
    assert (await plane.job(directive.job_id)).state is JobState.IN_PROGRESS
    (event,) = await plane.events(directive.job_id, EventType.REFUSED)
    assert event.cause == "ResultReceived"


async def test_a_cancelled_job_lets_its_step_finish_and_ends(plane: Plane) -> None:
    directive = await plane.working(request(**PIPELINE))
    assert await command(plane.engine, "cancel", directive.job_id) is JobState.CANCELLING
    assert (await plane.reply(heartbeat(directive))).cancel_requested
    await plane.reply(result(directive))
    steps = (await plane.stored(directive.job_id)).aggregate.steps
    assert [step.state for step in steps] == [
        StepState.SUCCEEDED,
        StepState.CANCELLED,
        StepState.CANCELLED,
    ]
    assert (await plane.job(directive.job_id)).state is JobState.CANCELLED
    assert await plane.dispatch() == 0


async def test_a_job_with_nothing_in_flight_is_cancelled_at_once(plane: Plane) -> None:
    directive = await plane.working()
    await plane.reply(result(directive, RETRY))
    assert await command(plane.engine, "cancel", directive.job_id) is JobState.CANCELLED


async def test_a_paused_job_finishes_its_step_and_goes_on_when_it_is_resumed(
    plane: Plane,
) -> None:
    directive = await plane.working(request(**PIPELINE))
    assert await command(plane.engine, "pause", directive.job_id) is JobState.PAUSING
    await plane.reply(result(directive))
    assert await plane.states(directive.job_id) == (JobState.PAUSED, StepState.PENDING)
    assert await plane.dispatch() == 0
    assert await command(plane.engine, "resume", directive.job_id) is JobState.IN_PROGRESS
    assert (await plane.directive("embedding")).job_id == directive.job_id


async def test_a_command_is_recorded_with_the_one_who_gave_it(plane: Plane) -> None:
    directive = await plane.working()
    await plane.engine.pause(directive.job_id, by="ada")
    event = (await plane.events(directive.job_id))[-1]
    assert (event.source, event.target, event.by) == ("IN_PROGRESS", "PAUSING", "ada")


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("cancel", JobState.CANCELLING),
        ("pause", JobState.PAUSING),
        ("resume", JobState.IN_PROGRESS),
    ],
)
async def test_to_ask_for_what_holds_already_changes_nothing(
    plane: Plane, name: str, state: JobState
) -> None:
    directive = await plane.working()
    assert await command(plane.engine, name, directive.job_id) is state
    before = await plane.events(directive.job_id)
    assert await command(plane.engine, name, directive.job_id) is state
    assert await plane.events(directive.job_id) == before


@pytest.mark.parametrize("status", [ResultStatus.SUCCEEDED, FINAL])
@pytest.mark.parametrize("name", ["cancel", "pause", "resume"])
async def test_a_job_that_has_ended_takes_no_commands(
    plane: Plane, name: str, status: ResultStatus
) -> None:
    directive = await plane.working()
    await plane.reply(result(directive, status))
    before = await plane.job(directive.job_id)
    with pytest.raises(ContractError) as refusal:
        await command(plane.engine, name, directive.job_id)
    assert refusal.value.code is ErrorCode.STATE_CONFLICT
    assert (await plane.job(directive.job_id)).state is before.state
    (event,) = await plane.events(directive.job_id, EventType.REFUSED)
    assert event.by == "ada"


async def test_a_redrive_is_a_new_job_in_a_folder_of_its_own(plane: Plane) -> None:
    failed_id = await plane.failed(request(one_step(), payload={"dpi": 72}, doc_id="d-1"))
    failed = await plane.stored(failed_id)
    plane.later(hours=1)
    submission = await plane.engine.redrive(failed_id, Limits())
    assert (submission.state, submission.duplicate) == (JobState.DISPATCHING, False)
    job, directive = await plane.job(submission.job_id), await plane.directive()
    assert job.redrive_of == failed_id
    assert (job.protocol_id, job.protocol_version) == ("short", "7")
    assert (job.route, job.doc_id) == (failed.aggregate.job.route, "d-1")
    assert job.sla_deadline - job.created_at == timedelta(hours=24)
    assert directive.payload == {"dpi": 72}
    assert directive.attempt_no == 1
    assert directive.workspace_ref.uri == f"az://workspace/lucius/acme/{submission.job_id}/"


async def test_a_redrive_marks_the_dead_letters_and_leaves_the_failed_job_as_it_is(
    plane: Plane,
) -> None:
    failed_id = await plane.failed()
    before, trail = await plane.stored(failed_id), await plane.events(failed_id)
    submission = await plane.engine.redrive(failed_id, Limits())
    assert await plane.stored(failed_id) == before
    assert await plane.events(failed_id) == trail
    assert [letter.redriven_by for letter in await plane.letters()] == [submission.job_id]


@pytest.mark.parametrize("key", [None, "k-redrive"])
async def test_a_redrive_that_is_asked_for_twice_is_one_job(plane: Plane, key: str | None) -> None:
    failed_id = await plane.failed()
    first = await plane.engine.redrive(failed_id, Limits(), key)
    again = await plane.engine.redrive(failed_id, Limits(), key)
    assert again == Submission(first.job_id, JobState.DISPATCHING, duplicate=True)
    assert await plane.dispatch() == 1


async def test_a_redrive_that_was_interrupted_marks_the_letters_when_asked_again(
    plane: Plane,
) -> None:
    failed_id = await plane.failed()
    plane.detour.fail("mark_redriven", error=ConnectionError("cut"))
    with pytest.raises(ConnectionError):
        await plane.engine.redrive(failed_id, Limits())
    plane.detour.heal()
    submission = await plane.engine.redrive(failed_id, Limits())
    assert submission.duplicate
    assert [letter.redriven_by for letter in await plane.letters()] == [submission.job_id]


async def test_a_redrive_under_a_key_has_that_key(plane: Plane) -> None:
    submission = await plane.engine.redrive(await plane.failed(), Limits(), "k-redrive")
    assert (await plane.job(submission.job_id)).idempotency_key == "k-redrive"


@pytest.mark.parametrize("other", [{}, {"payload": {"dpi": 72}}], ids=["its own", "another"])
async def test_a_key_that_stands_for_a_request_cannot_stand_for_a_redrive(
    plane: Plane, other: dict[str, Any]
) -> None:
    failed_id = await plane.failed(request(idempotency_key="k-0"))
    key = "k-1" if other else "k-0"
    await plane.submit(request(idempotency_key=key, **other))
    with pytest.raises(ContractError) as refusal:
        await plane.engine.redrive(failed_id, Limits(), key)
    assert refusal.value.code is ErrorCode.IDEMPOTENCY_CONFLICT
    assert [letter.redriven_by for letter in await plane.letters()] == [None]


async def test_only_a_job_that_failed_can_be_redriven(plane: Plane) -> None:
    directive = await plane.working()
    with pytest.raises(ContractError) as refusal:
        await plane.engine.redrive(directive.job_id, Limits())
    assert refusal.value.code is ErrorCode.STATE_CONFLICT
    await plane.reply(result(directive))
    with pytest.raises(ContractError) as refusal:
        await plane.engine.redrive(directive.job_id, Limits())
    assert refusal.value.code is ErrorCode.STATE_CONFLICT
    assert await job_ids(plane.ledger) == [directive.job_id]


async def test_a_redrive_of_no_job_is_not_found(plane: Plane) -> None:
    with pytest.raises(ContractError) as refusal:
        await plane.engine.redrive("job_unknown", Limits())
    assert refusal.value.code is ErrorCode.JOB_NOT_FOUND


async def test_a_redrive_counts_towards_the_limits(plane: Plane) -> None:
    failed_id = await plane.failed()
    await plane.submit(request(idempotency_key="k-1"))
    with pytest.raises(ContractError) as refusal:
        await plane.engine.redrive(failed_id, Limits(tenant=1))
    assert refusal.value.code is ErrorCode.TENANT_SATURATED


async def test_the_request_of_a_failed_job_still_stands_for_that_job(plane: Plane) -> None:
    failed_id = await plane.failed()
    await plane.engine.redrive(failed_id, Limits())
    assert await plane.engine.submit(request()) == Submission(
        failed_id, JobState.FAILED_FINAL, duplicate=True
    )
