"""`events`: the history of a job, in order and without gaps."""

from lucius_contract.audit import EventType
from lucius_contract.states import JobState
from lucius_orchestrator.domain.decision import AuditEvent
from lucius_orchestrator.domain.draft import RECORDED_SINGLY
from lucius_orchestrator.domain.events import AckReceived
from lucius_orchestrator.ports.ledger import Ledger
from tests.ledger.jobs import MANY, TENANT, Pair, World


async def test_events_are_those_of_the_decisions_in_order_without_a_gap(
    ledger: Ledger, world: World
) -> None:
    job = await world.create(steps=3)
    await job.acked()
    await job.fails_for_now()
    await job.cancelled()
    events = await ledger.events(job.job_id)
    assert events == job.trail
    assert [event.seq for event in events] == list(range(1, job.job.seq + 1))
    assert {type(event.type) for event in events} == {EventType}


async def test_every_field_of_an_event_is_kept(ledger: Ledger, world: World) -> None:
    job = await world.create()
    await job.happens(AckReceived("step_01", 7, "stray", TENANT))
    await job.fails(error_code="ocr.Ä", error_message="ö")
    await job.resumed()
    events = await ledger.events(job.job_id)
    assert events == job.trail
    refused, failed = events[-1], events[-2]
    assert refused.type is EventType.REFUSED
    assert (refused.by, refused.source, refused.implied) == ("ada", JobState.FAILED_FINAL, False)
    assert failed.target == JobState.FAILED_FINAL
    assert {event.detail for event in events} >= {"ocr.Ä", "STALE_ATTEMPT"}
    assert {event.implied for event in events} == {True, False}
    assert [event.at for event in events] == [event.at for event in job.trail]


async def test_pages_by_sequence_number_cover_each_event_once(ledger: Ledger, world: World) -> None:
    job = await (await world.create(steps=3)).succeeds()
    seen: list[AuditEvent] = []
    for _ in range(0, job.job.seq, 3):
        page = await ledger.events(job.job_id, seen[-1].seq if seen else 0, limit=3)
        assert 1 <= len(page) <= 3
        seen += page
    assert seen == job.trail
    assert len(seen) > 9


async def test_only_events_above_the_number_are_given(ledger: Ledger, world: World) -> None:
    job = await (await world.create()).succeeds()
    last = job.job.seq
    assert await ledger.events(job.job_id, last - 1) == job.trail[-1:]
    assert await ledger.events(job.job_id, last) == []
    assert await ledger.events(job.job_id, last + 1000) == []


async def test_events_of_jobs_do_not_mix(ledger: Ledger, world: World) -> None:
    jobs = await world.create_many(3)
    for job in (*jobs, *jobs):
        await job.happens(AckReceived("step_01", 7, "stray", TENANT))
    for job in jobs:
        assert await ledger.events(job.job_id) == job.trail
    assert await ledger.events("job_nobody") == []


async def test_a_reader_who_follows_the_commits_misses_none(ledgers: Pair, world: World) -> None:
    """As a stream to a client does, from another process."""
    job = await world.create(steps=3)
    seen: list[AuditEvent] = []
    while not job.ended:
        seen += await ledgers[1].events(job.job_id, len(seen))
        await job.happens(job.result())
    seen += await ledgers[1].events(job.job_id, len(seen))
    assert seen == job.trail


async def test_a_long_history_is_read_to_its_end(ledger: Ledger, world: World) -> None:
    """Beyond the replies that are recorded singly, nothing is added."""
    job = await world.create()
    for _ in range(RECORDED_SINGLY + 10):
        await job.happens(AckReceived("step_01", 1, "stray", TENANT))
    assert len(await ledger.events(job.job_id, limit=MANY)) == 2 + RECORDED_SINGLY == job.job.seq
    assert len(await ledger.events(job.job_id, limit=10)) == 10
