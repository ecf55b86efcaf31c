"""START and SIGNAL rows reach Temporal, whatever happens in between."""

import asyncio
from datetime import timedelta

import pytest

from lucius_contract.audit import EventType
from lucius_contract.messages import ResultStatus
from lucius_contract.states import JobState
from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.engine.telemetry import WORKFLOWS_STARTED
from lucius_orchestrator.temporal.courier import CourierSettings
from lucius_orchestrator.temporal.signals import WorkflowSignals
from lucius_orchestrator.temporal.starts import WorkflowStarts
from lucius_orchestrator.temporal.watch import WorkflowWatch
from tests.engine.plane import Plane, ack, heartbeat, result
from tests.invoker.stage import InvokerStage, RecordedWorkflows
from tests.runner.deadlines import DEADLINE

AT_ONCE = CourierSettings(pause=timedelta(0), linger=timedelta(0))
SLOWLY = CourierSettings(pause=timedelta(0), linger=timedelta(minutes=1))


@pytest.fixture
def workflows() -> RecordedWorkflows:
    return RecordedWorkflows()


@pytest.fixture
def starts(plane: Plane, workflows: RecordedWorkflows) -> WorkflowStarts:
    return WorkflowStarts(plane.engine, workflows, AT_ONCE)


@pytest.fixture
def signals(plane: Plane, workflows: RecordedWorkflows) -> WorkflowSignals:
    return WorkflowSignals(plane.engine, workflows, AT_ONCE)


async def left(plane: Plane, kind: OutboxKind) -> int:
    """How many rows are still to be delivered."""
    claims = await plane.ledger.claim(kind, 100, timedelta(0))
    await plane.ledger.release(claims)
    return len(claims)


async def test_a_job_that_was_committed_gets_its_workflow(
    stage: InvokerStage, starts: WorkflowStarts, workflows: RecordedWorkflows
) -> None:
    job_id = await stage.submitted()
    assert await starts.run_once() == 1
    body = workflows.running[job_id]
    assert (body["tenant_id"], body["request_type"]) == ("acme", "OCR")
    assert body["next"] == await stage.next(job_id)
    assert await left(stage.plane, OutboxKind.START) == 0
    assert stage.plane.metrics.count(WORKFLOWS_STARTED, restart="false") == 1


async def test_a_start_waits_while_temporal_is_away(
    stage: InvokerStage, starts: WorkflowStarts, workflows: RecordedWorkflows
) -> None:
    job_id = await stage.submitted()
    workflows.away = True
    await starts.run_once()
    assert await left(stage.plane, OutboxKind.START) == 1
    workflows.away = False
    await starts.run_once()
    assert job_id in workflows.running


async def test_a_start_that_was_left_by_another_process_is_taken_up(
    stage: InvokerStage, workflows: RecordedWorkflows
) -> None:
    """The process that committed it died before it told Temporal."""
    job_id = await stage.submitted()
    other = await stage.plane.replica()
    await WorkflowStarts(other.engine, workflows, AT_ONCE).run_once()
    assert job_id in workflows.running


async def test_a_start_told_twice_is_one_workflow(
    stage: InvokerStage, starts: WorkflowStarts, workflows: RecordedWorkflows
) -> None:
    """The process died after Temporal knew, before the row was ended."""
    job_id = await stage.submitted()
    stage.plane.detour.fail("discard")
    await starts.run_once()
    stage.plane.detour.heal()
    workflows.terminate(job_id)
    stage.plane.later(minutes=1)
    assert await starts.run_once() == 1
    assert job_id not in workflows.running


async def test_a_job_that_has_ended_is_not_started(
    stage: InvokerStage, starts: WorkflowStarts, workflows: RecordedWorkflows
) -> None:
    job_id = await stage.submitted()
    await stage.desk.command(job_id, "cancel", None)
    await starts.run_once()
    assert job_id not in workflows.running
    assert await left(stage.plane, OutboxKind.START) == 0


async def test_what_happens_to_a_job_is_told_to_its_workflow(
    stage: InvokerStage,
    starts: WorkflowStarts,
    signals: WorkflowSignals,
    workflows: RecordedWorkflows,
) -> None:
    directive = await stage.published()
    await starts.run_once()
    for reply in (ack(directive), result(directive)):
        await stage.plane.reply(reply)
        await signals.run_once()
    assert workflows.told[directive.job_id] == ["step_ack", "step_result"]
    last = workflows.bodies[-1]
    assert (last["stepId"], last["attempt_no"], last["lease_id"]) == (
        "step_01",
        1,
        directive.lease_id,
    )
    assert (last["status"], last["next"]["action"]) == ("SUCCEEDED", "END")


async def test_an_error_is_told_with_its_code(
    stage: InvokerStage,
    starts: WorkflowStarts,
    signals: WorkflowSignals,
    workflows: RecordedWorkflows,
) -> None:
    directive = await stage.published()
    await starts.run_once()
    await stage.plane.reply(result(directive, ResultStatus.FAILED_RETRY))
    await signals.run_once()
    assert workflows.bodies[-1]["error"] == {"code": "ocr.BROKEN", "message": "it broke"}


async def test_a_reply_that_changes_nothing_is_not_told(
    stage: InvokerStage, starts: WorkflowStarts, signals: WorkflowSignals
) -> None:
    directive = await stage.published()
    await stage.plane.reply(ack(directive))
    await signals.run_once()
    await stage.plane.reply(ack(directive))
    assert await left(stage.plane, OutboxKind.SIGNAL) == 0


async def test_a_signal_waits_while_temporal_is_away(
    stage: InvokerStage,
    starts: WorkflowStarts,
    signals: WorkflowSignals,
    workflows: RecordedWorkflows,
) -> None:
    directive = await stage.published()
    await starts.run_once()
    workflows.away = True
    await stage.plane.reply(result(directive))
    await signals.run_once()
    assert await left(stage.plane, OutboxKind.SIGNAL) == 1
    workflows.away = False
    await signals.run_once()
    assert workflows.told[directive.job_id] == ["step_result"]


async def test_of_signals_that_wait_for_one_job_the_last_is_sent(
    stage: InvokerStage,
    starts: WorkflowStarts,
    signals: WorkflowSignals,
    workflows: RecordedWorkflows,
) -> None:
    directive = await stage.published()
    await starts.run_once()
    for reply in (ack(directive), result(directive)):
        await stage.plane.reply(reply)
    assert await signals.run_once() == 2
    assert workflows.told[directive.job_id] == ["step_result"]
    assert await left(stage.plane, OutboxKind.SIGNAL) == 0


async def test_an_ack_waits_for_its_result(
    stage: InvokerStage, starts: WorkflowStarts, workflows: RecordedWorkflows
) -> None:
    slow = WorkflowSignals(stage.plane.engine, workflows, SLOWLY)
    directive = await stage.published()
    await starts.run_once()
    await stage.plane.reply(ack(directive))
    await slow.run_once()
    assert workflows.told[directive.job_id] == []
    await stage.plane.reply(result(directive))
    await slow.run_once()
    assert workflows.told[directive.job_id] == ["step_result"]
    assert await left(stage.plane, OutboxKind.SIGNAL) == 0


async def test_an_ack_that_waits_is_sent_at_the_end(
    stage: InvokerStage, starts: WorkflowStarts, workflows: RecordedWorkflows
) -> None:
    slow = WorkflowSignals(stage.plane.engine, workflows, SLOWLY)
    directive = await stage.published()
    await starts.run_once()
    await stage.plane.reply(ack(directive))
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(slow.run())
        await stage.plane.detour.called("claim", times=2)
        await slow.stop()
    assert workflows.told[directive.job_id] == ["step_ack"]


async def test_an_ack_that_has_waited_long_enough_is_sent(
    stage: InvokerStage, starts: WorkflowStarts, workflows: RecordedWorkflows
) -> None:
    settings = CourierSettings(pause=timedelta(0), linger=timedelta(milliseconds=5))
    signals = WorkflowSignals(stage.plane.engine, workflows, settings)
    directive = await stage.published()
    await starts.run_once()
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(signals.run())
        await stage.plane.reply(ack(directive))
        await stage.plane.detour.called("discard", times=2)
        await signals.stop()
    assert workflows.told[directive.job_id] == ["step_ack"]


async def test_heartbeats_are_told_at_most_once_in_a_third_of_a_lease(
    stage: InvokerStage,
    starts: WorkflowStarts,
    signals: WorkflowSignals,
    workflows: RecordedWorkflows,
) -> None:
    directive = await stage.published()
    await starts.run_once()
    await stage.plane.reply(ack(directive))
    for _ in range(30):
        stage.plane.later(minutes=1)
        await stage.plane.reply(heartbeat(directive))
        await signals.run_once()
    assert workflows.told[directive.job_id].count("step_heartbeat") == 6


async def test_a_signal_whose_workflow_is_gone_starts_another(
    stage: InvokerStage,
    starts: WorkflowStarts,
    signals: WorkflowSignals,
    workflows: RecordedWorkflows,
) -> None:
    directive = await stage.published()
    await starts.run_once()
    workflows.terminate(directive.job_id)
    await stage.plane.reply(ack(directive))
    await signals.run_once()
    await starts.run_once()
    assert workflows.running[directive.job_id]["next"] == await stage.next(directive.job_id)
    (event,) = await stage.plane.events(directive.job_id, EventType.WORKFLOW_RESTARTED)
    assert (event.cause, event.by) == ("NOT_FOUND", "signals")


async def test_a_workflow_that_ended_with_its_job_is_not_started_again(
    stage: InvokerStage,
    starts: WorkflowStarts,
    signals: WorkflowSignals,
    workflows: RecordedWorkflows,
) -> None:
    directive = await stage.published()
    await starts.run_once()
    workflows.terminate(directive.job_id)
    await stage.plane.reply(result(directive))
    await signals.run_once()
    assert await left(stage.plane, OutboxKind.SIGNAL) == 0
    assert await left(stage.plane, OutboxKind.START) == 0


async def watched(plane: Plane, workflows: RecordedWorkflows) -> int:
    return await WorkflowWatch(plane.engine, workflows).run_once()


async def test_a_job_whose_workflow_is_closed_gets_another_one(
    stage: InvokerStage, starts: WorkflowStarts, workflows: RecordedWorkflows
) -> None:
    directive = await stage.published()
    await starts.run_once()
    workflows.terminate(directive.job_id)
    stage.plane.later(seconds=30 + 61)
    assert await watched(stage.plane, workflows) == 1
    await starts.run_once()
    assert directive.job_id in workflows.running
    (event,) = await stage.plane.events(directive.job_id, EventType.WORKFLOW_RESTARTED)
    assert (event.cause, event.by) == ("TERMINATED", "workflow_watch")
    assert stage.plane.metrics.count(WORKFLOWS_STARTED, restart="true") == 1


async def test_a_late_job_whose_workflow_runs_is_left_alone(
    stage: InvokerStage, starts: WorkflowStarts, workflows: RecordedWorkflows
) -> None:
    directive = await stage.published()
    await starts.run_once()
    stage.plane.later(seconds=30 + 61)
    assert await watched(stage.plane, workflows) == 0
    assert await left(stage.plane, OutboxKind.START) == 0
    workflows.terminate(directive.job_id)
    assert await watched(stage.plane, workflows) == 0, "it is looked at again a grace later"
    stage.plane.later(seconds=61)
    assert await watched(stage.plane, workflows) == 1


async def test_a_job_that_is_not_late_is_not_asked_about(
    stage: InvokerStage, workflows: RecordedWorkflows
) -> None:
    directive = await stage.published()
    stage.plane.later(seconds=10)
    await stage.plane.reply(ack(directive))
    stage.plane.later(seconds=90)
    workflows.away = True
    assert await watched(stage.plane, workflows) == 0
    assert (await stage.plane.job(directive.job_id)).state is JobState.IN_PROGRESS


async def test_a_job_whose_workflow_is_lost_ends_when_its_sla_has_passed(
    stage: InvokerStage, workflows: RecordedWorkflows
) -> None:
    directive = await stage.published()
    stage.plane.later(hours=24, seconds=61)
    assert await watched(stage.plane, workflows) == 1
    assert (await stage.plane.job(directive.job_id)).error_code == "SLA_EXCEEDED"


async def test_jobs_are_looked_at_again_when_temporal_is_back(
    stage: InvokerStage, workflows: RecordedWorkflows
) -> None:
    directive = await stage.published()
    stage.plane.later(seconds=30 + 61)
    workflows.away = True
    assert await watched(stage.plane, workflows) == 0
    workflows.away = False
    assert await watched(stage.plane, workflows) == 1
    assert directive.job_id
