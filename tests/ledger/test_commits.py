"""`load` and `commit`: what was decided is what is read."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lucius_contract.messages import Outcome
from lucius_contract.states import JobState, StepState
from lucius_contract.transitions import StepTrigger
from lucius_orchestrator.domain.aggregate import Engine, ReplyVia, StepPolicy
from lucius_orchestrator.domain.events import (
    AckReceived,
    AckTimedOut,
    CancelRequested,
    CeilingReached,
    DispatchStale,
    Event,
    HeartbeatReceived,
    LeaseExpired,
    OutboxFailed,
    OutboxSent,
    OutboxSuperseded,
    PauseRequested,
    PublishDelayed,
    RetryDue,
)
from lucius_orchestrator.ports.ledger import Ledger, Limits
from tests.domain.scenario import ARTIFACT
from tests.ledger.backends import Backend
from tests.ledger.jobs import Story, World, together
from tests.ledger.view import letters, on_the_wire, view

ODD = 'é 日本語 \U0001f9ed "quoted" \\ \' %s {} \u2028 \x7f'
NUL = "a\0b"
LARGE = "ß" * (64 * 1024)  # 128 KiB as UTF-8
POLICY = StepPolicy(
    ack_timeout=timedelta(seconds=7, microseconds=1),
    lease=timedelta(minutes=3),
    heartbeat=timedelta(seconds=20),
    ceiling=timedelta(hours=1),
    max_attempts=9,
    backoff=(timedelta(milliseconds=1500), timedelta(minutes=4)),
    dispatch_backoff=(timedelta(seconds=5),),
    reply_via=ReplyVia.BUS,
)
NESTED = {"odd": ODD, "large": LARGE, "none": None, "list": [1, -0.5, 1e300, True, [], {}, 2**53]}


async def a_rich_job(world: World, **plan: Any) -> Story:
    return await world.create(
        "täh/\\#? nt",
        steps=3,
        policy=POLICY,
        input_ref={"uri": "az://inbox/ä.pdf", "extra": [1, 2, {"x": None}]},
        request_type=ODD,
        correlation_id=ODD,
        idempotency_key=ODD,
        doc_id=ODD,
        callback_urls=("https://one.example/ä", "https://two.example"),
        redrive_of="job_0",
        sla=timedelta(hours=5, microseconds=7),
        **plan,
    )


async def a_long_life(world: World, job: Story, look: Callable[[], Awaitable[None]]) -> None:
    """Each of the things that can happen to a job, with a look at the ledger after each."""

    async def step(event: Event, *, claimed: bool = False) -> None:
        claim = await world.claim_one() if claimed else None
        await job.happens(event, claim)
        await look()

    tenant = job.job.tenant_id
    await step(PublishDelayed(*job.identity))
    await step(OutboxSent(*job.identity), claimed=True)
    await step(AckReceived(*job.identity, tenant))
    await step(HeartbeatReceived(*job.identity, tenant, {"fraction": 0.1, "note": ODD}))
    await step(job.result(Outcome.FAILED_RETRY, error_message=ODD * 9))
    await job.fires(RetryDue)
    await step(OutboxSent(*job.identity), claimed=True)
    await job.fires(AckTimedOut)
    await step(AckReceived(*job.identity, tenant))
    artifacts = ({**ARTIFACT, "name": ODD}, {**ARTIFACT, "size": 2**53})
    await step(job.result(artifacts=artifacts, artifacts_bytes=700, output_ref={"uri": ODD}))
    await step(OutboxFailed(*job.identity, message=ODD), claimed=True)
    await job.fires(RetryDue)
    job.clock.advance(minutes=2)
    await step(replace(job.timer(DispatchStale), by=ODD))
    await step(OutboxSent(*job.identity), claimed=True)
    await step(PauseRequested("ada"))
    await step(job.result(artifacts=()))
    assert job.aggregate.active.state is StepState.PENDING
    await job.resumed()
    await step(AckReceived(*job.identity, "not its tenant"))
    await step(AckReceived(*job.identity, tenant))
    await job.fires(LeaseExpired)
    await step(OutboxSuperseded("step_03", 1, job.identity[2]), claimed=True)
    await job.fires(RetryDue)
    await step(HeartbeatReceived(*job.identity, tenant))
    while job.timer(LeaseExpired).deadline < job.timer(CeilingReached).deadline:
        job.clock.advance(minutes=2)
        await job.heartbeat({"fraction": 0.9})
    await job.fires(CeilingReached)
    await job.fires(RetryDue)
    await step(CancelRequested(ODD))
    await step(job.result(Outcome.FAILED_FINAL, error_code="CANCELLED", error_message=""))
    assert job.job.state is JobState.CANCELLED
    await step(AckReceived("step_01", 1, "stray", tenant))
    await step(PauseRequested())


async def test_whatever_happens_to_a_job_is_read_back_by_another_process(
    backend: Backend, world: World
) -> None:
    job = await a_rich_job(world)

    async def look() -> None:
        other = await backend.reopen()
        assert await other.load(job.job_id) == job.stored
        assert await other.events(job.job_id, limit=1000) == job.trail
        await other.close()

    await look()
    await a_long_life(world, job, look)


async def test_large_payloads_and_odd_characters_are_read_back(
    backend: Backend, world: World
) -> None:
    """Of 128 KiB, which is the most that a request may bring."""
    request = world.submission()
    built = request.build(request.reservation.job_id)
    step = replace(built.aggregate.steps[0], payload=NESTED)
    rows = built._replace(aggregate=built.aggregate._replace(steps=(step,)))
    await world.ledger.create(request.reservation, lambda _: rows, Limits())
    stored = await (await backend.reopen()).load(request.reservation.job_id)
    assert stored is not None
    assert stored.aggregate == rows.aggregate


async def test_a_nul_that_a_service_reports_is_read_back(backend: Backend, world: World) -> None:
    """JSON may hold that character, and some databases do not take it in text."""
    job = await world.create()
    await job.heartbeat({"note": NUL})
    artifacts = ({**ARTIFACT, "name": NUL},)
    await job.fails(error_code=NUL, error_message=NUL)
    done = await world.create()
    await done.happens(done.result(artifacts=artifacts, output_ref={"uri": NUL}))
    other = await backend.reopen()
    assert await other.load(job.job_id) == job.stored
    assert await other.load(done.job_id) == done.stored
    assert await other.events(job.job_id) == job.trail
    (letter,) = await letters(other)
    assert (letter.code, letter.message) == (NUL, NUL)


async def test_a_nul_in_a_request_is_in_its_directives_too(backend: Backend, world: World) -> None:
    job = await world.create(steps=2, input_ref={"uri": "az://x", NUL: NUL})
    await job.happens(job.result(artifacts=({**ARTIFACT, "name": NUL},)))
    assert await (await backend.reopen()).load(job.job_id) == job.stored
    rows = [on_the_wire(claim.row) for claim in await world.claim()]
    assert rows == [on_the_wire(row) for row in job.directives]


async def test_values_are_read_back_as_what_they_are(backend: Backend, world: World) -> None:
    """Equal is not enough where code asks `is`."""
    job = await a_rich_job(world, engine=Engine.TEMPORAL)
    await job.opened()
    await job.fails_for_now()
    stored = await (await backend.reopen()).load(job.job_id)
    assert stored is not None
    (step, *_), row = stored.aggregate.steps, stored.aggregate.job
    assert row.state is JobState.IN_PROGRESS
    assert row.engine is Engine.TEMPORAL
    assert row.route.mode is job.job.route.mode
    assert row.route.decision_source is job.job.route.decision_source
    assert step.state is StepState.FAILED_RETRY
    assert step.policy.reply_via is ReplyVia.BUS
    assert step.attempts[0].outcome is StepState.FAILED_RETRY
    assert step.attempts[0].ended_by is StepTrigger.RESULT_RETRYABLE
    assert step.attempts[0].route == step.route
    rows: list[object] = [row.callback_urls, step.artifacts, step.attempts, step.policy.backoff]
    assert {type(one) for one in rows} == {tuple}
    moments = [
        row.created_at,
        row.sla_deadline,
        step.next_attempt_at,
        step.attempts[0].dispatched_at,
    ]
    assert {moment.utcoffset() for moment in moments if moment} == {timedelta()}


async def test_a_job_that_was_never_created_is_none(ledger: Ledger) -> None:
    assert await ledger.load("job_nobody") is None


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13])
async def test_a_commit_that_was_abandoned_is_whole_or_absent(
    backend: Backend, world: World, turns: int
) -> None:
    job = await world.create()
    decision = job.decide(job.result(Outcome.FAILED_FINAL))
    task = asyncio.create_task(backend.ledger.commit(job.stored, decision))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await together(task)
    await backend.ledger.close()
    seen = await view(await backend.reopen())
    done = seen.jobs[job.job_id] != job.aggregate
    assert len(seen.events[job.job_id]) == len(job.trail) + len(decision.events) * done
    assert (len(seen.dead_letters), len(seen.timers)) == (done, not done)
    assert seen.in_flight.get("total", 0) == (not done)
