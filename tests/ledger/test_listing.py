"""`jobs`: newest first, page by page."""

import base64
import json
from datetime import timedelta

import pytest

from lucius_contract.states import JobState
from lucius_orchestrator.adapters.ledger.tables import listing
from lucius_orchestrator.domain.aggregate import Job
from lucius_orchestrator.ports.ledger import Created, InvalidCursor, JobQuery, Ledger, Page
from tests.ledger.jobs import TENANT, Pair, Story, World, ids, together
from tests.ledger.view import all_pages, job_ids


def made_up(parts: list[str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()


NOT_CURSORS = [
    *("nonsense", "", " ", "ünïcode", "%00", "'; --", "e30=", "W10", "0", "-1", "a" * 5000),
    *(made_up(["job", job_id]) for job_id in ("\ud800", "a\0b")),
]


def newest_first(jobs: list[Story]) -> list[str]:
    return sorted(ids(jobs), reverse=True)


async def test_an_empty_ledger_lists_nothing(ledger: Ledger) -> None:
    assert await job_ids(ledger) == []


async def test_jobs_are_listed_newest_first_as_they_are_now(ledger: Ledger, world: World) -> None:
    jobs = await world.create_many(3)
    await jobs[1].succeeds()
    page = await ledger.jobs(JobQuery())
    assert page.items == (jobs[2].job, jobs[1].job, jobs[0].job)
    assert page.items[1].state is JobState.SUCCEEDED


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
async def test_pages_of_any_size_hold_each_job_once(
    ledger: Ledger, world: World, limit: int
) -> None:
    jobs = await world.create_many(7)
    query = JobQuery(TENANT, limit=limit)
    pages = await all_pages(lambda cursor: ledger.jobs(query._replace(cursor=cursor)))
    assert max(map(len, pages)) <= limit
    assert [job.job_id for page in pages for job in page] == newest_first(jobs)


async def test_jobs_of_one_moment_are_listed_in_the_order_of_their_ids(
    ledger: Ledger, world: World
) -> None:
    submissions = [world.submission() for _ in range(6)]
    created = [(await world.submit(each)).job_id for each in reversed(submissions)]
    listed = await job_ids(ledger, JobQuery(limit=2))
    assert listed == sorted(created, reverse=True)


async def test_a_tenant_sees_its_own_jobs_and_nobody_sees_all(ledger: Ledger, world: World) -> None:
    mine = await world.create_many(3)
    theirs = await world.create_many(2, "acme2")
    mine += await world.create_many(2)
    assert await job_ids(ledger, JobQuery(TENANT, limit=2)) == newest_first(mine)
    assert await job_ids(ledger, JobQuery("acme2", limit=1)) == newest_first(theirs)
    assert await job_ids(ledger, JobQuery("nobody")) == []
    assert await job_ids(ledger, JobQuery(None, limit=3)) == newest_first(mine + theirs)


@pytest.mark.parametrize("tenant", [TENANT, None])
async def test_filters_are_met_all_at_once(
    ledger: Ledger, world: World, tenant: str | None
) -> None:
    await world.create_many(2, request_type="OCR")
    since = world.clock.now + timedelta(seconds=1)
    ocr = await world.create_many(3, request_type="OCR")
    sis = await world.create_many(3, request_type="SIS")
    for job in (ocr[0], sis[0], sis[2]):
        await job.succeeds()

    async def found(**fields: object) -> list[str]:
        query = JobQuery(tenant, limit=2)._replace(**fields)  # type: ignore[arg-type]
        return await job_ids(ledger, query)

    done = JobState.SUCCEEDED
    assert await found(since=since) == newest_first(ocr + sis)
    assert await found(state=done) == newest_first([ocr[0], sis[0], sis[2]])
    assert await found(request_type="SIS") == newest_first(sis)
    assert await found(request_type="SIS", state=done) == newest_first([sis[0], sis[2]])
    assert await found(request_type="OCR", since=since) == newest_first(ocr)
    assert await found(state=done, since=since, request_type="OCR") == [ocr[0].job_id]
    assert await found(state=JobState.PAUSED) == []
    assert await found(request_type="ocr") == []


async def test_since_begins_with_its_own_moment(ledger: Ledger, world: World) -> None:
    jobs = await world.create_many(3)
    moment = jobs[1].job.created_at
    assert await job_ids(ledger, JobQuery(since=moment)) == newest_first(jobs[1:])
    later = moment + timedelta(microseconds=1)
    assert await job_ids(ledger, JobQuery(since=later)) == [jobs[2].job_id]


async def test_since_finds_a_job_whose_id_is_older_than_its_moment(
    ledger: Ledger, world: World
) -> None:
    """Ids tell milliseconds apart; within one, they are in any order."""
    world.clock.advance(microseconds=200)
    later = await world.submit(world.submission())
    world.clock.advance(microseconds=-100)
    earlier = await world.submit(world.submission())
    assert later.stored is not None
    assert later.job_id < earlier.job_id
    since = later.stored.aggregate.job.created_at
    for tenant in (TENANT, None):
        assert await job_ids(ledger, JobQuery(tenant, since=since, limit=1)) == [later.job_id]


async def test_a_rare_state_is_found_among_more_jobs_than_a_page_may_cost(
    ledger: Ledger, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "EXAMINED", 100)
    rare = await (await world.create()).succeeds()
    for _ in range(3):
        submissions = [world.submission() for _ in range(50)]
        answers = await together(*(world.submit(each) for each in submissions))
        assert {type(answer) for answer in answers} == {Created}
    for tenant in (TENANT, None):
        query = JobQuery(tenant, state=JobState.SUCCEEDED, limit=2)
        assert await job_ids(ledger, query) == [rare.job_id]
    assert len(await job_ids(ledger, JobQuery(limit=300))) == 151


async def test_a_job_created_between_two_pages_is_on_neither(ledger: Ledger, world: World) -> None:
    jobs = await world.create_many(5)

    async def read(cursor: str | None) -> Page[Job]:
        page = await ledger.jobs(JobQuery(limit=2, cursor=cursor))
        await world.create_many(2)
        return page

    pages = await all_pages(read)
    assert [job.job_id for page in pages for job in page] == newest_first(jobs)


async def test_a_job_that_goes_on_between_two_pages_is_still_listed_once(
    ledger: Ledger, world: World
) -> None:
    jobs = await world.create_many(6)
    query = JobQuery(TENANT, limit=2)
    first = await ledger.jobs(query)
    for job in jobs:
        await job.acked()
    rest = await job_ids(ledger, query._replace(cursor=first.cursor))
    assert [job.job_id for job in first.items] + rest == newest_first(jobs)


async def test_a_page_follows_even_if_its_cursors_job_is_gone(ledger: Ledger, world: World) -> None:
    jobs = [await job.succeeds() for job in await world.create_many(4)]
    first = await ledger.jobs(JobQuery(limit=2))
    assert [job.job_id for job in first.items] == newest_first(jobs)[:2]
    await ledger.remove(jobs[2].stored)
    second = await ledger.jobs(JobQuery(limit=2, cursor=first.cursor))
    assert [job.job_id for job in second.items] == newest_first(jobs)[2:]


async def test_a_cursor_is_good_in_every_process(ledgers: Pair, world: World) -> None:
    jobs = await world.create_many(4)
    first = await ledgers[0].jobs(JobQuery(limit=3))
    second = await ledgers[1].jobs(JobQuery(limit=3, cursor=first.cursor))
    assert [job.job_id for job in second.items] == newest_first(jobs)[3:]


@pytest.mark.parametrize("cursor", NOT_CURSORS)
@pytest.mark.parametrize("tenant", [TENANT, None])
async def test_what_no_ledger_gave_is_an_invalid_cursor(
    ledger: Ledger, world: World, cursor: str, tenant: str | None
) -> None:
    await world.create()
    with pytest.raises(InvalidCursor):
        await ledger.jobs(JobQuery(tenant, cursor=cursor))
