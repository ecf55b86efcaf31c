"""What becomes of jobs that are steered, fail or are not answered: the same with either engine."""

from datetime import timedelta
from typing import Any

import pytest

from lucius_contract.messages import Directive, ResultStatus
from lucius_orchestrator.ports.registry import GlobalConfig, Snapshot
from tests.api.stage import Stage, code
from tests.engine.plane import PIPELINE, ack, configured, heartbeat, one_step, result

WAIT = timedelta(milliseconds=100)


def quick(**policy: Any) -> Snapshot:
    """One step that is tried again at once."""
    return one_step(**{"backoff": (WAIT,), **policy})


async def seen(stage: Stage, job_id: str) -> tuple[str, str]:
    """The states of the job and of its current step, as the API shows them."""
    job = (await stage.get(f"/v1/jobs/{job_id}")).json()
    current = next(step for step in job["steps"] if step["stepId"] == job["current_step_id"])
    return job["state"], current["state"]


async def tell(stage: Stage, job_id: str, verb: str) -> str:
    answer = await stage.post(f"/v1/jobs/{job_id}:{verb}")
    assert answer.status_code == 200, answer.text
    state: str = answer.json()["state"]
    return state


async def in_the_first_step(stage: Stage, **members: Any) -> Directive:
    await stage.submitted(**PIPELINE | members)
    directive = await stage.plane.directive()
    await stage.plane.reply(ack(directive))
    return directive


async def test_a_job_goes_through_all_of_its_steps(stage: Stage) -> None:
    job_id = await stage.submitted(**PIPELINE)
    for service in ("ocr", "embedding", "sis"):
        directive = await stage.plane.directive(service)
        await stage.plane.reply(ack(directive))
        await stage.plane.reply(result(directive))
    assert await seen(stage, job_id) == ("SUCCEEDED", "SUCCEEDED")
    assert await stage.plane.dispatch() >= 0
    assert await stage.plane.deliveries("ocr") == []


async def test_a_paused_job_ends_its_step_and_begins_none_until_it_is_resumed(
    stage: Stage,
) -> None:
    directive = await in_the_first_step(stage)
    assert await tell(stage, directive.job_id, "pause") == "PAUSING"
    assert await tell(stage, directive.job_id, "pause") == "PAUSING"
    await stage.plane.reply(result(directive))
    assert await seen(stage, directive.job_id) == ("PAUSED", "PENDING")
    await stage.plane.dispatch()
    assert await stage.plane.directives("embedding") == []
    assert await tell(stage, directive.job_id, "resume") == "IN_PROGRESS"
    following = await stage.plane.directive("embedding")
    assert (following.attempt_no, following.step_type) == (1, "EMBEDDING")


async def test_a_job_that_is_paused_before_it_began_begins_when_it_is_resumed(
    stage: Stage,
) -> None:
    job_id = await stage.submitted()
    await tell(stage, job_id, "pause")
    await tell(stage, job_id, "resume")
    directive = await stage.plane.directive()
    assert (directive.job_id, directive.attempt_no) == (job_id, 1)


async def test_a_cancelled_job_lets_its_step_end_and_begins_no_other(stage: Stage) -> None:
    directive = await in_the_first_step(stage)
    assert await tell(stage, directive.job_id, "cancel") == "CANCELLING"
    answer = await stage.reply(heartbeat(directive))
    assert answer.json()["cancel_requested"] is True
    await stage.plane.reply(result(directive))
    assert await seen(stage, directive.job_id) == ("CANCELLED", "SUCCEEDED")
    await stage.plane.dispatch()
    assert await stage.plane.directives("embedding") == []
    assert await tell(stage, directive.job_id, "cancel") == "CANCELLED"
    refused = await stage.post(f"/v1/jobs/{directive.job_id}:resume")
    assert code(refused) == (409, "STATE_CONFLICT")


async def test_a_paused_job_that_is_cancelled_has_ended(stage: Stage) -> None:
    directive = await in_the_first_step(stage)
    await tell(stage, directive.job_id, "pause")
    await stage.plane.reply(result(directive))
    assert await tell(stage, directive.job_id, "cancel") == "CANCELLED"


async def test_a_job_that_has_ended_takes_no_command(stage: Stage) -> None:
    given = await stage.plane.succeeded()
    for verb in ("cancel", "pause", "resume"):
        refused = await stage.post(f"/v1/jobs/{given.job_id}:{verb}")
        assert code(refused) == (409, "STATE_CONFLICT"), verb


async def test_a_step_that_failed_is_tried_again_under_another_lease(stage: Stage) -> None:
    stage.registry.current = quick()
    job_id = await stage.submitted()
    first = await stage.plane.directive()
    await stage.plane.reply(result(first, ResultStatus.FAILED_RETRY))
    assert await seen(stage, job_id) == ("IN_PROGRESS", "FAILED_RETRY")
    await stage.plane.until(lambda: _dispatched(stage, job_id, 2))
    (second,) = await stage.plane.directives()
    assert (second.attempt_no, second.lease_id == first.lease_id) == (2, False)
    assert (await stage.reply(heartbeat(first))).json()["verdict"] == "DUPLICATE"
    assert code(await stage.reply(result(first))) == (409, "RESULT_CONFLICT")
    await stage.plane.reply(result(second))
    assert await seen(stage, job_id) == ("SUCCEEDED", "SUCCEEDED")


async def _dispatched(stage: Stage, job_id: str, attempt_no: int) -> bool:
    step = await stage.plane.step(job_id)
    return step.attempt_no == attempt_no and step.state == "AWAITING_ACK"


async def test_a_step_that_nobody_acknowledges_is_tried_again(stage: Stage) -> None:
    stage.registry.current = quick(ack_timeout=WAIT)
    job_id = await stage.submitted()
    first = await stage.plane.directive()
    await stage.plane.until(lambda: _dispatched(stage, job_id, 2))
    second = (await stage.plane.directives())[-1]
    assert second.attempt_no == 2
    late = await stage.reply(result(first))
    assert code(late) == (409, "STALE_ATTEMPT")
    (step,) = (await stage.get(f"/v1/jobs/{job_id}/steps")).json()["items"]
    assert step["attempts"][0]["ended_by"] == "ACK_TIMEOUT"


async def test_a_step_whose_lease_runs_out_is_tried_again(stage: Stage) -> None:
    stage.registry.current = quick(lease=WAIT)
    job_id = await stage.submitted()
    first = await stage.plane.directive()
    await stage.plane.reply(ack(first))
    await stage.plane.until(lambda: _dispatched(stage, job_id, 2))
    (step,) = (await stage.get(f"/v1/jobs/{job_id}/steps")).json()["items"]
    assert step["attempts"][0]["ended_by"] == "LEASE_EXPIRED"
    assert code(await stage.reply(result(first))) == (409, "STALE_ATTEMPT")


async def test_a_job_whose_attempts_are_used_up_failed_and_can_be_redriven(stage: Stage) -> None:
    stage.registry.current = quick(max_attempts=1)
    job_id = await stage.submitted()
    directive = await stage.plane.directive()
    await stage.plane.reply(result(directive, ResultStatus.FAILED_RETRY))
    assert await seen(stage, job_id) == ("FAILED_FINAL", "FAILED_FINAL")
    answer = await stage.post(f"/v1/jobs/{job_id}:redrive")
    again = await stage.post(f"/v1/jobs/{job_id}:redrive")
    new_id = answer.json()["jobId"]
    assert (answer.status_code, again.json()["jobId"]) == (202, new_id)
    (letter,) = (await stage.get("/v1/dead-letters")).json()["items"]
    assert (letter["jobId"], letter["redriven_by"]) == (job_id, new_id)
    following = await stage.plane.directive()
    assert following.job_id == new_id
    await stage.plane.reply(result(following))
    assert await seen(stage, new_id) == ("SUCCEEDED", "SUCCEEDED")
    assert (await stage.get(f"/v1/jobs/{new_id}")).json()["redrive_of"] == job_id


async def test_a_job_that_exceeds_its_sla_has_failed(stage: Stage) -> None:
    stage.registry.current = configured(defaults=GlobalConfig(job_sla=timedelta(seconds=1)))
    given = await in_the_first_step(stage)

    async def has_ended() -> bool:
        return (await seen(stage, given.job_id))[0] == "FAILED_FINAL"

    await stage.plane.until(has_ended)
    job = (await stage.get(f"/v1/jobs/{given.job_id}")).json()
    assert job["error"]["code"] == "SLA_EXCEEDED"
    assert code(await stage.reply(result(given))) == (409, "STALE_ATTEMPT")


@pytest.mark.parametrize("verb", ["cancel", "pause", "resume"])
async def test_commands_say_who_gave_them(stage: Stage, verb: str) -> None:
    given = await in_the_first_step(stage)
    if verb == "resume":
        await tell(stage, given.job_id, "pause")
    await tell(stage, given.job_id, verb)
    events = (await stage.get(f"/v1/jobs/{given.job_id}/events")).json()["items"]
    assert events[-1]["by"] == "ada"
