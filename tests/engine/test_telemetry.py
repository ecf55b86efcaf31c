"""What an operator sees is what the tables promise, and nothing that must not be seen."""

import logging
from datetime import timedelta
from typing import Any, cast

import pytest

from lucius_bus.port import Bus, BusMessage
from lucius_contract.messages import Directive, ResultStatus
from lucius_orchestrator.bootstrap import running
from lucius_orchestrator.domain.aggregate import Engine, ReplyVia
from lucius_orchestrator.engine import telemetry as told
from lucius_orchestrator.engine.telemetry import EVENTS, METRICS
from lucius_orchestrator.engine.traffic_reports import TrafficReporter
from lucius_orchestrator.ports.ledger import Conflict, LedgerUnavailable, Repair
from lucius_orchestrator.replies.consumer import ConsumerSettings, ReplyConsumer
from lucius_orchestrator.sweepers.ack_timeout import AckTimeout
from lucius_orchestrator.sweepers.index_repair import IndexRepair
from lucius_orchestrator.temporal.courier import CourierSettings
from lucius_orchestrator.temporal.starts import WorkflowStarts
from tests.engine.plane import (
    PIPELINE,
    REPLIES,
    SECRET,
    SKEW,
    TOPIC,
    Plane,
    ack,
    heartbeat,
    on_the_bus,
    once,
    one_step,
    request,
    result,
)
from tests.invoker.stage import RecordedWorkflows
from tests.outbox.test_telemetry import STANDARD

RETRY, FINAL = ResultStatus.FAILED_RETRY, ResultStatus.FAILED_FINAL
LABELS = {info.name: frozenset(info.labels) for info in METRICS}


@pytest.fixture(autouse=True)
def everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


def records(caplog: pytest.LogCaptureFixture, name: str | None = None) -> list[dict[str, Any]]:
    return [
        vars(record)
        for record in caplog.records
        if record.name.startswith("lucius_orchestrator") and name in (None, record.getMessage())
    ]


async def consumed(plane: Plane, *messages: BusMessage) -> None:
    """Publish the messages to the reply topic and wait until each was settled."""
    settings = ConsumerSettings(pause=timedelta(milliseconds=1))
    consumer = ReplyConsumer(plane.engine, cast(Bus, plane.bus_detour), settings)
    plane.bus_detour.calls.clear()
    await plane.bus.publish(REPLIES, messages)
    async with running([consumer]):
        await plane.bus_detour.called("complete", "dead_letter", times=len(messages))


async def everything_happens(plane: Plane) -> list[Directive]:
    """All that is counted or told, good and bad; the directives of all attempts."""
    await _a_job_that_temporal_drives(plane)
    return [
        await _a_job_that_succeeds(plane),
        await _a_job_that_fails(plane),
        await _a_job_that_runs_out_of_time(plane),
        await _a_job_of_an_absent_service(plane),
        *await _a_bus_that_fails(plane),
        await _a_ledger_that_fails(plane),
    ]


async def _a_job_that_temporal_drives(plane: Plane) -> None:
    await plane.submit(request(engine=Engine.TEMPORAL, idempotency_key="k-0"))
    workflows = RecordedWorkflows()
    starts = WorkflowStarts(plane.engine, workflows, CourierSettings(pause=timedelta(0)))
    workflows.away = True
    await starts.run_once()
    workflows.away = False
    await starts.run_once()


async def _a_job_that_succeeds(plane: Plane) -> Directive:
    directive = await plane.succeeded(request(idempotency_key="k-1"))
    await plane.reply(result(directive, FINAL))
    await plane.reply(heartbeat(directive.model_copy(update={"lease_id": "guessed"})))
    return directive


async def _a_job_that_fails(plane: Plane) -> Directive:
    directive = await plane.working(request(one_step(), idempotency_key="k-2"))
    await plane.reply(result(directive, FINAL))
    return directive


async def _a_job_that_runs_out_of_time(plane: Plane) -> Directive:
    directive = await plane.working(request(one_step(), idempotency_key="k-3"))
    plane.later(timedelta(minutes=15) + SKEW)
    await plane.sweep_all()
    return directive


async def _a_job_of_an_absent_service(plane: Plane) -> Directive:
    job_id = await plane.submit(request(one_step(), idempotency_key="k-7"))
    directive = await plane.directive()
    plane.later(seconds=32)
    await plane.sweep(AckTimeout)
    await plane.engine.cancel(job_id)
    return directive


async def _a_bus_that_fails(plane: Plane) -> list[Directive]:
    await plane.submit(request(one_step(max_attempts=1), idempotency_key="k-4"))
    plane.bus.go_away()
    await plane.dispatch()
    plane.bus.come_back()
    plane.bus.refuse(TOPIC)
    plane.later(seconds=30)
    await plane.dispatch()
    plane.bus.allow(TOPIC)
    directive = await plane.working(request(one_step(), idempotency_key="k-5"))
    whole = on_the_bus(result(directive))
    cut = BusMessage(whole.message_id, whole.body[:-1])
    wrong = BusMessage(whole.message_id, whole.body.replace(b"SUCCEEDED", SECRET.encode()))
    await consumed(plane, cut, wrong, whole)
    return [directive]


async def _a_ledger_that_fails(plane: Plane) -> Directive:
    directive = await plane.working(request(one_step(), idempotency_key="k-6"))

    async def break_down(*_: Any) -> None:
        raise RuntimeError("a defect")

    plane.detour.before["commit"] = once(break_down)
    await consumed(plane, on_the_bus(heartbeat(directive)))
    plane.detour.before["commit"] = once(_conflict)
    await plane.reply(heartbeat(directive))
    plane.detour.answers["repair"] = [Repair("in_flight", "GLOBAL", "7", "1")]
    await IndexRepair(plane.engine).run_once()
    plane.later(hours=1)
    plane.detour.fail("load", "publish_report")
    await plane.sweep_all()
    await TrafficReporter(plane.engine, dispatches=True).run_once()
    plane.detour.heal()
    return directive


async def _conflict(*_: Any) -> None:
    raise Conflict("job")


async def test_the_table_names_every_metric_that_is_told_and_no_other(plane: Plane) -> None:
    await everything_happens(plane)
    assert {name for name, _ in plane.metrics.labels()} == LABELS.keys()


async def test_every_metric_has_the_labels_of_the_table(plane: Plane) -> None:
    await everything_happens(plane)
    for name, labels in plane.metrics.labels():
        assert labels == LABELS[name], name


def test_the_table_names_every_metric_of_the_module() -> None:
    constants = {name: value for name, value in vars(told).items() if name.isupper()}
    assert {value for value in constants.values() if isinstance(value, str)} == LABELS.keys()


async def test_every_event_has_the_level_and_the_fields_of_the_table(
    plane: Plane, caplog: pytest.LogCaptureFixture
) -> None:
    await everything_happens(plane)
    table = {info.name: info for info in EVENTS}
    seen = records(caplog)
    assert {record["message"] for record in seen} == table.keys()
    for record in seen:
        info = table[record["message"]]
        assert record.keys() - STANDARD == set(info.fields), info.name
        assert record["levelname"] == info.level


async def test_no_lease_id_is_logged(plane: Plane, caplog: pytest.LogCaptureFixture) -> None:
    """Who has one can speak for the service that does the work."""
    directives = await everything_happens(plane)
    for record in records(caplog):
        for directive in directives:
            assert directive.lease_id not in str(record), record["message"]


async def test_no_payload_is_logged(plane: Plane, caplog: pytest.LogCaptureFixture) -> None:
    await everything_happens(plane)
    assert records(caplog)
    assert all(SECRET not in str(record) for record in records(caplog))


async def test_credentials_in_an_error_are_not_logged(
    plane: Plane, caplog: pytest.LogCaptureFixture
) -> None:
    await plane.submit()
    error = LedgerUnavailable("cannot connect: password=S3cr3t host=db")
    plane.detour.fail("commit", error=error)
    await plane.dispatch()
    directive_error = str(records(caplog, "dispatch.failed"))
    assert "host=db" in directive_error
    assert "S3cr3t" not in directive_error


async def test_a_dead_letter_is_a_metric_and_an_event(
    plane: Plane, caplog: pytest.LogCaptureFixture
) -> None:
    job_id = await plane.failed()
    assert plane.metrics.count(told.DEAD_LETTERS, kind="STEP") == 1
    (event,) = records(caplog, "job.dead_letter")
    assert (event["jobId"], event["stepId"], event["attempt_no"]) == (job_id, "step_01", 1)
    assert (event["tenant_id"], event["correlation_id"]) == ("acme", "c-0")
    assert (event["kind"], event["code"], event["error"]) == ("STEP", "ocr.BROKEN", "it broke")


async def test_an_unreadable_reply_is_a_metric_and_an_event(
    plane: Plane, caplog: pytest.LogCaptureFixture
) -> None:
    await consumed(plane, BusMessage("m-1", b"{"))
    assert plane.metrics.count(told.DEAD_LETTERS, kind="REPLY") == 1
    (event,) = records(caplog, "reply.unreadable")
    assert (event["topic"], event["code"]) == (REPLIES, "ENVELOPE_INVALID")


async def test_an_unreadable_reply_that_comes_again_is_one_dead_letter_more_only_once(
    plane: Plane,
) -> None:
    """`lucius_dead_letters_total` counts dead letters, and the same bytes are one."""
    await consumed(plane, BusMessage("m-1", b"{"), BusMessage("m-2", b"{"))
    assert len(await plane.letters()) == 1
    assert plane.metrics.count(told.DEAD_LETTERS, kind="REPLY") == 1
    assert plane.metrics.count(told.UNREADABLE) == 2


async def test_jobs_are_counted_when_they_are_accepted_and_when_they_end(plane: Plane) -> None:
    directive = await plane.working()
    await plane.submit()
    assert plane.metrics.count(told.SUBMITTED) == 1
    assert plane.metrics.count(told.FINISHED) == 0
    await plane.reply(result(directive))
    await plane.reply(result(directive))
    assert plane.metrics.count(told.FINISHED, state="SUCCEEDED") == 1


async def test_what_is_not_committed_is_not_told(
    plane: Plane, caplog: pytest.LogCaptureFixture
) -> None:
    directive = await plane.working()
    before = dict(plane.metrics.counts)
    plane.detour.fail("commit")
    with pytest.raises(LedgerUnavailable):
        await plane.reply(result(directive, FINAL))
    assert plane.metrics.counts == before
    assert records(caplog) == []


async def test_the_time_of_each_phase_is_observed(plane: Plane) -> None:
    await plane.submit()
    plane.later(seconds=1)
    directive = await plane.directive()
    plane.later(seconds=2)
    await plane.reply(ack(directive))
    plane.later(seconds=3)
    await plane.reply(result(directive))
    phases = [
        (labels["step_type"], labels["phase"], seconds)
        for name, labels, seconds in plane.metrics.observed
        if name == told.STEP_SECONDS
    ]
    assert phases == [("OCR", "dispatch", 1.0), ("OCR", "pickup", 2.0), ("OCR", "work", 3.0)]


async def test_replies_are_counted_by_type_and_verdict(plane: Plane) -> None:
    directive = await plane.working()
    for reply in (ack(directive), heartbeat(directive), result(directive), result(directive)):
        await plane.reply(reply)
    counted = {
        (dict(labels)["type"], dict(labels)["verdict"]): amount
        for (name, labels), amount in plane.metrics.counts.items()
        if name == told.REPLIES
    }
    assert counted == {
        ("ACK", "APPLIED"): 1,
        ("ACK", "DUPLICATE"): 1,
        ("HEARTBEAT", "APPLIED"): 1,
        ("RESULT", "APPLIED"): 1,
        ("RESULT", "DUPLICATE"): 1,
    }


async def test_a_retry_is_counted_with_its_reason(plane: Plane) -> None:
    directive = await plane.working()
    await plane.reply(result(directive, RETRY))
    assert plane.metrics.count(told.RETRIES, reason="RESULT_RETRYABLE") == 1


async def test_a_timeout_is_counted_by_its_kind(plane: Plane) -> None:
    await plane.submit()
    await plane.directive()
    plane.later(seconds=32)
    await plane.sweep(AckTimeout)
    assert plane.metrics.count(told.TIMEOUTS, kind="ACK_TIMEOUT") == 1
    assert plane.metrics.count(told.RETRIES, reason="ACK_TIMEOUT") == 1


async def test_an_attempt_of_an_absent_service_is_counted_by_service(plane: Plane) -> None:
    """While the service is heard from, an ACK timeout is that alone."""
    other = await plane.working(request(idempotency_key="other"))
    for number in range(2):
        job_id = await plane.submit(request(idempotency_key=f"{number}"))
        await plane.directive()
        plane.later(seconds=1)
        if number == 0:
            await plane.reply(heartbeat(other))
        plane.later(seconds=31)
        await plane.sweep(AckTimeout)
        assert plane.metrics.count(told.UNANSWERED, service="ocr") == number
        await plane.engine.cancel(job_id)
    assert plane.metrics.count(told.TIMEOUTS, kind="ACK_TIMEOUT") == 2


async def test_an_sla_that_is_exceeded_while_a_step_runs_is_counted_once(plane: Plane) -> None:
    long = timedelta(days=3)
    await plane.working(request(one_step(lease=long, ceiling=long)))
    plane.later(hours=25)
    await plane.sweep_all()
    assert plane.metrics.count(told.TIMEOUTS, kind="SLA_EXCEEDED") == 1


async def test_an_sla_that_is_exceeded_between_two_steps_is_counted_too(plane: Plane) -> None:
    directive = await plane.working(request(**PIPELINE))
    await plane.engine.pause(directive.job_id)
    await plane.reply(result(directive))
    plane.later(hours=25)
    await plane.sweep_all()
    assert plane.metrics.count(told.FINISHED, state="FAILED_FINAL") == 1
    assert plane.metrics.count(told.TIMEOUTS, kind="SLA_EXCEEDED") == 1


async def test_an_engine_without_metrics_works_as_well(plane: Plane) -> None:
    plane.engine.telemetry = told.Telemetry()
    await plane.succeeded(request(one_step(reply_via=ReplyVia.BUS)))
    assert plane.metrics.counts == {}
