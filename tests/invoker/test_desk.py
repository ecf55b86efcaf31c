"""What workflows ask of the invoker, over HTTP as they do."""

import asyncio
from datetime import timedelta

import pytest

from lucius_bus.port import BusUnavailable, PublishRefused
from lucius_contract.messages import ResultStatus
from lucius_contract.states import JobState, OutboxState, StepState
from lucius_orchestrator.domain.directive import on_the_wire
from lucius_orchestrator.domain.workflow import TimerName
from lucius_orchestrator.invoker.desk import DeskSettings
from tests.api.stage import code
from tests.engine.plane import Plane, ack, request, result
from tests.invoker.stage import KEY, LEASE, InvokerStage, attempt, identity

OTHER_LEASE = "2" * 32


async def test_an_attempt_is_opened_under_the_workflows_number_lease_and_time(
    stage: InvokerStage,
) -> None:
    job_id, ends = await stage.submitted(), stage.lease_end()
    body = identity(attempt(job_id)) | {"lease_expires_at": on_the_wire(ends)}
    answer = await stage.post("steps/attempt", body)
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "ok",
        "opened": True,
        "result": None,
        "next": await stage.next(job_id),
    }
    step = await stage.plane.step(job_id)
    assert (step.state, step.attempt_no) == (StepState.DISPATCHING, 1)
    assert (step.lease_id, step.lease_expires_at) == (LEASE, ends)
    assert answer.json()["next"]["action"] == "PUBLISH"
    status = await stage.plane.row(job_id)
    assert status is not None
    assert status.state is OutboxState.PENDING


async def test_the_same_attempt_asked_for_again_is_ok_and_changes_nothing(
    stage: InvokerStage,
) -> None:
    name = await stage.opened()
    before = await stage.plane.stored(name.job_id)
    again = await stage.desk.open_attempt(name, stage.lease_end() + timedelta(hours=1))
    assert (again.is_open, again.result) == (True, None)
    assert await stage.plane.stored(name.job_id) == before


@pytest.mark.parametrize("lease_id", [OTHER_LEASE])
async def test_another_lease_of_an_open_attempt_is_refused_and_told_what_comes_next(
    stage: InvokerStage, lease_id: str
) -> None:
    name = await stage.opened()
    body = identity(attempt(name.job_id, lease_id=lease_id))
    body["lease_expires_at"] = on_the_wire(stage.lease_end())
    answer = await stage.post("steps/attempt", body)
    assert (answer.status_code, answer.json()["code"]) == (409, "STALE_ATTEMPT")
    assert answer.json()["next"] == await stage.next(name.job_id)
    assert (await stage.plane.step(name.job_id)).lease_id == LEASE


async def test_a_lower_attempt_is_refused(stage: InvokerStage) -> None:
    directive = await stage.published()
    await stage.plane.reply(result(directive, ResultStatus.FAILED_RETRY))
    stage.plane.later(minutes=2)
    second = attempt(directive.job_id, 2, OTHER_LEASE)
    assert (await stage.desk.open_attempt(second, stage.lease_end())).is_open
    body = identity(attempt(directive.job_id)) | {
        "lease_expires_at": on_the_wire(stage.lease_end())
    }
    answer = await stage.post("steps/attempt", body)
    assert (answer.status_code, answer.json()["code"]) == (409, "STALE_ATTEMPT")
    assert (await stage.plane.step(directive.job_id)).attempt_no == 2


async def test_an_attempt_whose_result_is_applied_opens_nothing_and_returns_it(
    stage: InvokerStage,
) -> None:
    directive = await stage.published()
    await stage.plane.reply(result(directive, ResultStatus.FAILED_RETRY))
    opened = await stage.desk.open_attempt(attempt(directive.job_id), stage.lease_end())
    assert opened.result == {
        "status": "FAILED_RETRY",
        "error": {"code": "ocr.BROKEN", "message": "it broke"},
    }
    assert opened.following["action"] == "OPEN"
    assert opened.following["attempt_no"] == 2


async def test_a_paused_job_opens_nothing_and_says_so(stage: InvokerStage) -> None:
    job_id = await stage.submitted()
    await stage.desk.command(job_id, "pause", "ada")
    opened = await stage.desk.open_attempt(attempt(job_id), stage.lease_end())
    assert not opened.is_open
    assert (opened.following["action"], opened.following["state"]) == ("WAIT", "PAUSED")


async def test_a_directive_is_published_once_however_often_it_is_asked_for(
    stage: InvokerStage,
) -> None:
    name = await stage.opened()
    body = {"lane": 14, "directive": identity(name)}
    first, again = await stage.post("publish", body), await stage.post("publish", body)
    assert (first.json()["published"], again.json()["published"]) == (True, False)
    assert first.json()["next"]["action"] == "WAIT"
    (directive,) = await stage.plane.directives()
    assert (directive.attempt_no, directive.lease_id) == (1, LEASE)
    assert (await stage.plane.step(name.job_id)).state is StepState.AWAITING_ACK
    status = await stage.plane.row(name.job_id)
    assert status is not None
    assert status.state is OutboxState.SENT


async def test_two_publishes_at_once_send_one_directive(stage: InvokerStage) -> None:
    name = await stage.opened()
    await asyncio.gather(*(stage.desk.publish(name) for _ in range(5)), return_exceptions=True)
    assert len(await stage.plane.directives()) == 1


async def test_a_bus_that_is_away_is_tried_again_and_then_told_of(stage: InvokerStage) -> None:
    name = await stage.opened()
    stage.plane.bus_detour.fail("publish", error=BusUnavailable("no bus"))
    answer = await stage.post("publish", {"directive": identity(name)})
    assert code(answer) == (503, "UNAVAILABLE")
    assert stage.plane.bus_detour.calls["publish"] == 3
    stage.plane.bus_detour.heal()
    assert (await stage.desk.publish(name)).has_sent


async def test_a_directive_that_the_bus_refuses_for_good_ends_its_attempt(
    stage: InvokerStage,
) -> None:
    name = await stage.opened()
    stage.plane.bus_detour.fail("publish", error=PublishRefused("too large"))
    published = await stage.desk.publish(name)
    assert published.following["action"] == "OPEN"
    assert (await stage.plane.step(name.job_id)).state is StepState.FAILED_RETRY


async def test_a_directive_that_waited_long_goes_out_with_its_whole_lease(
    stage: InvokerStage,
) -> None:
    name = await stage.opened()
    stage.plane.later(minutes=29)
    await stage.desk.publish(name)
    (directive,) = await stage.plane.directives()
    assert directive.lease_expires_at is not None
    assert directive.lease_expires_at > stage.plane.clock() + timedelta(minutes=15)


async def test_no_dispatcher_of_the_other_engine_touches_the_directive(
    stage: InvokerStage,
) -> None:
    await stage.opened()
    assert await stage.plane.dispatch() == 0


async def test_a_deadline_that_has_passed_ends_the_attempt(stage: InvokerStage) -> None:
    directive = await stage.published()
    deadline = (await stage.plane.step(directive.job_id)).ack_deadline
    assert deadline is not None
    stage.plane.later(seconds=31)
    body = {
        "event": "ACK_TIMEOUT",
        "stepId": "step_01",
        "attempt_no": 1,
        "lease_id": LEASE,
        "deadline": on_the_wire(deadline),
    }
    answer = await stage.post(f"jobs/{directive.job_id}/events", body)
    assert answer.json()["next"]["action"] == "OPEN"
    assert (await stage.plane.step(directive.job_id)).state is StepState.FAILED_RETRY
    again = await stage.post(f"jobs/{directive.job_id}/events", body)
    assert again.json() == answer.json()


async def test_a_deadline_that_has_moved_or_not_passed_means_nothing(stage: InvokerStage) -> None:
    directive = await stage.published()
    step = await stage.plane.step(directive.job_id)
    assert step.ack_deadline is not None
    await stage.plane.reply(ack(directive))
    stage.plane.later(seconds=31)
    body = {"event": "ACK_TIMEOUT", **_deadline(step.ack_deadline.isoformat())}
    answer = await stage.post(f"jobs/{directive.job_id}/events", body)
    assert answer.json()["next"]["action"] == "WAIT"
    assert (await stage.plane.step(directive.job_id)).state is StepState.IN_PROGRESS


def _deadline(deadline: str) -> dict[str, object]:
    return {"stepId": "step_01", "attempt_no": 1, "lease_id": LEASE, "deadline": deadline}


async def test_after_a_start_replies_are_let_in_before_deadlines_count(plane: Plane) -> None:
    stage = InvokerStage(plane, DeskSettings(recovery_grace=timedelta(seconds=60)))
    started = plane.clock()
    directive = await stage.published()
    deadline = (await plane.step(directive.job_id)).ack_deadline
    assert deadline is not None
    plane.later(seconds=40)
    body = {"event": "ACK_TIMEOUT", **_deadline(on_the_wire(deadline))}
    answer = (await stage.post(f"jobs/{directive.job_id}/events", body)).json()
    assert answer["not_before"] == on_the_wire(started + timedelta(seconds=60))
    assert (await plane.step(directive.job_id)).state is StepState.AWAITING_ACK
    plane.later(seconds=21)
    answer = (await stage.post(f"jobs/{directive.job_id}/events", body)).json()
    assert (answer["not_before"], answer["next"]["action"]) == (None, "OPEN")


async def test_the_sla_ends_a_job_that_was_never_begun(stage: InvokerStage) -> None:
    job_id = await stage.submitted()
    deadline = (await stage.plane.job(job_id)).sla_deadline
    stage.plane.later(hours=25)
    body = {"event": "SLA_EXCEEDED", "stepId": "step_01", "deadline": on_the_wire(deadline)}
    answer = (await stage.post(f"jobs/{job_id}/events", body)).json()
    assert (answer["next"]["action"], answer["next"]["state"]) == ("END", "FAILED_FINAL")


async def test_a_directive_of_a_job_that_ended_before_it_went_out_is_left_to_nobody(
    stage: InvokerStage,
) -> None:
    name = await stage.opened()
    deadline = (await stage.plane.job(name.job_id)).sla_deadline
    stage.plane.later(hours=25)
    await stage.desk.report(name, TimerName.SLA_EXCEEDED, deadline)
    assert await stage.plane.ledger.backlog() == {}


@pytest.mark.parametrize(
    ("verb", "state"), [("cancel", JobState.CANCELLED), ("pause", JobState.PAUSED)]
)
async def test_commands_are_decided_here(stage: InvokerStage, verb: str, state: JobState) -> None:
    job_id = await stage.submitted()
    answer = await stage.post(f"jobs/{job_id}:{verb}", {"by": "ada"})
    assert (answer.status_code, answer.json()["state"]) == (200, state)
    assert (await stage.plane.job(job_id)).state is state
    assert (await stage.plane.events(job_id))[-1].by == "ada"


async def test_a_command_that_the_job_does_not_allow_is_refused(stage: InvokerStage) -> None:
    job_id = await stage.submitted()
    await stage.desk.command(job_id, "cancel", None)
    answer = await stage.post(f"jobs/{job_id}:resume", {})
    assert (answer.status_code, answer.json()["code"]) == (409, "STATE_CONFLICT")
    assert answer.json()["next"]["action"] == "END"


async def test_jobs_of_the_other_engine_are_not_its_own(stage: InvokerStage) -> None:
    job_id = await stage.plane.submit(request())
    name = attempt(job_id, 2, OTHER_LEASE)
    body = identity(name) | {"lease_expires_at": on_the_wire(stage.lease_end())}
    event = {"event": "SLA_EXCEEDED", **_deadline(on_the_wire(stage.lease_end()))}
    for path, sent in (
        ("steps/attempt", body),
        ("publish", {"directive": identity(name)}),
        (f"jobs/{job_id}/events", event),
        (f"jobs/{job_id}:cancel", {}),
    ):
        answer = await stage.post(path, sent)
        assert (answer.status_code, answer.json()["code"]) == (404, "JOB_NOT_FOUND"), path
    assert (await stage.plane.job(job_id)).state is JobState.DISPATCHING


async def test_another_tenant_has_no_such_job(stage: InvokerStage) -> None:
    name = attempt(await stage.submitted())._replace(tenant_id="globex")
    body = identity(name) | {"lease_expires_at": on_the_wire(stage.lease_end())}
    answer = await stage.post("steps/attempt", body)
    assert (answer.status_code, answer.json()["code"]) == (404, "JOB_NOT_FOUND")


NEARLY = [KEY[:-1], KEY[:1], KEY + "k", KEY.upper(), "other" * 7, "other" * 9]


@pytest.mark.parametrize("key", [None, "wrong" * 8, "", *NEARLY])
async def test_nobody_is_served_without_the_invokers_own_credential(
    stage: InvokerStage, key: str | None
) -> None:
    job_id = await stage.submitted()
    answer = await stage.post(f"jobs/{job_id}:cancel", {}, key)
    assert code(answer) == (401, "UNAUTHENTICATED")
    assert (await stage.plane.job(job_id)).state is JobState.QUEUED


async def test_the_key_before_the_last_is_accepted_too(stage: InvokerStage) -> None:
    job_id = await stage.submitted()
    assert (await stage.post(f"jobs/{job_id}:pause", {}, "other" * 8)).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("steps/attempt", {}, "/jobId"),
        ("publish", {"directive": {}}, "/directive/jobId"),
        ("publish", {"lane": 16, "directive": {}}, "/lane"),
        ("jobs/job_1/events", {"event": "TIRED"}, "/event"),
        ("jobs/job_1:cancel", {"by": 7}, "/by"),
        ("jobs/job_1:cancel", [], ""),
    ],
)
async def test_a_call_that_is_not_whole_says_what_is_missing(
    stage: InvokerStage, path: str, body: object, pointer: str
) -> None:
    answer = await stage.post(path, body)
    assert code(answer) == (400, "ENVELOPE_INVALID")
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]


@pytest.mark.parametrize("path", ["nowhere", "jobs/job_1:explode", "jobs/a b/events"])
async def test_what_is_not_there_is_not_found(stage: InvokerStage, path: str) -> None:
    assert code(await stage.post(path, {})) == (404, "NOT_FOUND")
