"""`create` and `find`: an entry, the slots and a whole job, or nothing."""

import asyncio

import pytest

from lucius_contract.routing import Mode
from lucius_contract.states import JobState, OutboxState
from lucius_orchestrator.domain.timers import TimerKind, next_due
from lucius_orchestrator.ports.ledger import (
    Created,
    DirectiveStatus,
    Found,
    IdempotencyConflict,
    JobQuery,
    Ledger,
    Limits,
    NewJob,
    Saturated,
    Scope,
)
from tests.ledger.backends import Backend
from tests.ledger.jobs import CONTENT, DIRECTIVE, LEASE, MANY, TENANT, Pair, World, together
from tests.ledger.view import assert_unchanged, job_ids, on_the_wire, view

OTHER_CONTENT = "o" * 64
ENTRIES = ["key:order-17", "hash:" + "ab" * 32, "redrive:job_1"]


async def test_a_new_job_is_there_with_all_that_belongs_to_it(ledger: Ledger, world: World) -> None:
    submission = world.submission(steps=3)
    created = await world.submit(submission)
    job_id, expected = submission.reservation.job_id, submission.build(created.job_id)
    assert created.job_id == job_id
    assert created.stored is not None
    assert created.stored.aggregate == expected.aggregate
    assert created.stored.timer == next_due(expected.aggregate)
    assert await ledger.load(job_id) == created.stored
    assert await ledger.events(job_id) == list(expected.decision.events)
    assert (await ledger.jobs(JobQuery(TENANT))).items == (expected.aggregate.job,)
    assert await ledger.find(TENANT, submission.reservation.entry) == Found(job_id, CONTENT)


async def test_a_new_job_has_a_directive_a_timer_and_slots(ledger: Ledger, world: World) -> None:
    job = await world.create(mode=Mode.BURST)
    status = DirectiveStatus(OutboxState.PENDING, claimable=True)
    assert await ledger.directive(job.job_id, "step_01", 1) == status
    due = job.stored.timer
    assert due is not None
    assert await ledger.due([TimerKind.DISPATCH], due.at, MANY) == [(job.job_id, due)]
    in_flight = await ledger.in_flight(TENANT)
    assert (in_flight.total, in_flight.tenant, in_flight.by_mode[Mode.BURST]) == (1, 1, 1)
    (claim,) = await ledger.claim(DIRECTIVE, MANY, LEASE)
    assert (claim.job_id, claim.kind, claim.tries) == (job.job_id, DIRECTIVE, 0)
    assert on_the_wire(claim.row) == on_the_wire(job.directives[0])


async def test_an_entry_that_nobody_used_stands_for_nothing(ledger: Ledger, world: World) -> None:
    await world.create(entry="key:a")
    assert await ledger.find(TENANT, "key:b") is None
    assert await ledger.find("other", "key:a") is None


@pytest.mark.parametrize("entry", ENTRIES)
async def test_the_same_request_again_is_answered_with_the_earlier_job(
    ledger: Ledger, world: World, entry: str
) -> None:
    first = await world.create(entry=entry)
    before = await view(ledger)
    again = await world.submit(world.submission(entry=entry, steps=3))
    assert again == Created(first.job_id, None)
    assert_unchanged(before, await view(ledger))


async def test_other_content_under_an_entry_is_a_conflict_that_names_the_job(
    ledger: Ledger, world: World
) -> None:
    first = await world.create(entry="key:a")
    before = await view(ledger)
    with pytest.raises(IdempotencyConflict) as refusal:
        await world.submit(world.submission(entry="key:a", content=OTHER_CONTENT))
    assert refusal.value.job_id == first.job_id
    assert_unchanged(before, await view(ledger))
    assert await ledger.find(TENANT, "key:a") == Found(first.job_id, CONTENT)


async def test_a_job_that_has_ended_still_answers_for_its_entry(world: World) -> None:
    first = await (await world.create(entry="key:a")).succeeds()
    assert await world.submit(world.submission(entry="key:a")) == Created(first.job_id, None)


async def test_an_entry_that_exists_wins_over_full_limits(world: World) -> None:
    first = await world.create(entry="key:a")
    full = Limits(tenant=1, total=1, mode=1)
    assert await world.submit(world.submission(entry="key:a"), full) == Created(first.job_id, None)
    with pytest.raises(IdempotencyConflict):
        await world.submit(world.submission(entry="key:a", content=OTHER_CONTENT), full)
    with pytest.raises(Saturated):
        await world.submit(world.submission(entry="key:b"), full)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("acme", "key:a"), ("other", "key:a")),
        (("acme", "key:a"), ("Acme", "key:a")),
        (("acme", "key:a"), ("acme", "key:A")),
        (("acme", "key:a"), ("acme", "hash:a")),
        (("acme", "key:a"), ("acme", "key:a ")),
        (("acmekey:", "a"), ("acme", "key:a")),
        (("ä/\\#?%", "key:日本"), ("ä/\\#?%", "key:日木")),
        (("é", "key:é"), ("e\u0301", "key:e\u0301")),
        (("a" * 127 + "x", "key:" + "k" * 255), ("a" * 127 + "y", "key:" + "k" * 255)),
    ],
)
async def test_entries_are_equal_only_if_tenant_and_text_are(
    ledger: Ledger, world: World, one: tuple[str, str], other: tuple[str, str]
) -> None:
    first = await world.create(one[0], entry=one[1])
    second = await world.create(other[0], entry=other[1])
    assert await ledger.find(*one) == Found(first.job_id, CONTENT)
    assert await ledger.find(*other) == Found(second.job_id, CONTENT)
    assert await job_ids(ledger, JobQuery(one[0], limit=1)) == [
        job.job_id for job in (second, first) if job.job.tenant_id == one[0]
    ]


@pytest.mark.parametrize(
    ("limits", "scope"),
    [
        (Limits(tenant=2), Scope.TENANT),
        (Limits(mode=2), Scope.MODE),
        (Limits(total=2), Scope.GLOBAL),
        (Limits(tenant=2, mode=2, total=2), Scope.TENANT),
        (Limits(tenant=3, mode=2, total=2), Scope.MODE),
        (Limits(tenant=3, mode=3, total=2), Scope.GLOBAL),
        (Limits(tenant=0), Scope.TENANT),
    ],
)
async def test_a_full_limit_is_reported_the_tenants_first_then_the_modes(
    ledger: Ledger, world: World, limits: Limits, scope: Scope
) -> None:
    await world.create_many(2)
    before = await view(ledger)
    with pytest.raises(Saturated) as refusal:
        await world.submit(world.submission(entry="key:refused"), limits)
    assert refusal.value.scope is scope
    assert_unchanged(before, await view(ledger))
    assert await ledger.find(TENANT, "key:refused") is None


async def test_a_limit_includes_the_new_job_and_counts_its_own_scope_only(world: World) -> None:
    await world.create_many(2, "crowded", mode=Mode.BURST)
    await world.create(limits=Limits(tenant=1, mode=1, total=3))
    for limits in (Limits(tenant=1), Limits(mode=1), Limits(total=3)):
        with pytest.raises(Saturated):
            await world.create(limits=limits)
    assert await world.create("other", limits=Limits(tenant=1))
    assert await world.create("other", mode=Mode.BURST, limits=Limits(mode=3))


@pytest.mark.parametrize("scope", Scope)
async def test_a_limit_of_none_at_all_refuses_the_first_job(
    ledger: Ledger, world: World, scope: Scope
) -> None:
    field = {Scope.TENANT: "tenant", Scope.MODE: "mode", Scope.GLOBAL: "total"}[scope]
    before = await view(ledger)
    with pytest.raises(Saturated) as refusal:
        await world.create(limits=Limits(**{field: 0}))
    assert refusal.value.scope is scope
    assert_unchanged(before, await view(ledger))


async def test_a_job_keeps_its_slots_until_it_has_ended(world: World) -> None:
    one = Limits(tenant=1)
    job = await world.create(limits=one)
    await job.paused()
    await job.fails_for_now()
    assert job.job.state is JobState.PAUSED
    with pytest.raises(Saturated):
        await world.create(limits=one)
    await job.cancelled()
    assert await world.create(limits=one)


async def test_a_request_that_was_refused_is_welcome_later(ledger: Ledger, world: World) -> None:
    job = await world.create()
    refused = world.submission(entry="key:a")
    with pytest.raises(Saturated):
        await world.submit(refused, Limits(tenant=1))
    await job.succeeds()
    changed = world.submission(entry="key:a", content=OTHER_CONTENT)
    created = await world.submit(changed, Limits(tenant=1))
    assert created.stored is not None
    assert await ledger.find(TENANT, "key:a") == Found(created.job_id, OTHER_CONTENT)


async def test_rows_that_cannot_be_built_leave_nothing(ledger: Ledger, world: World) -> None:
    before = await view(ledger)
    reservation = world.submission(entry="key:a").reservation

    def build(job_id: str) -> NewJob:
        raise ValueError(job_id)

    with pytest.raises(ValueError, match="job_"):
        await ledger.create(reservation, build, Limits())
    assert_unchanged(before, await view(ledger))
    assert await ledger.find(TENANT, "key:a") is None
    assert await world.create(entry="key:a")


@pytest.mark.parametrize("limits", [Limits(), Limits(tenant=1, mode=1, total=1)])
async def test_of_many_creators_of_one_entry_one_creates_and_the_others_find_it(
    ledgers: Pair, world: World, limits: Limits
) -> None:
    """Full limits refuse none of them: the entry exists, or is theirs."""
    submissions = [world.submission(entry="key:a") for _ in range(12)]
    answers = await together(
        *(ledgers[n % 2].create(*each, limits) for n, each in enumerate(submissions))
    )
    winners = [answer for answer in answers if isinstance(answer, Created) and answer.stored]
    assert len(winners) == 1
    assert {answer.job_id for answer in answers} == {winners[0].job_id}
    assert await job_ids(world.ledger) == [winners[0].job_id]
    assert (await world.ledger.in_flight(TENANT)).tenant == 1


async def test_of_many_contents_under_one_entry_one_is_created_and_the_others_conflict(
    ledgers: Pair, world: World
) -> None:
    submissions = [world.submission(entry="key:a", content=f"{n:064}") for n in range(10)]
    answers = await together(
        *(ledgers[n % 2].create(*each, Limits()) for n, each in enumerate(submissions))
    )
    (winner,) = [answer for answer in answers if isinstance(answer, Created)]
    losers = [answer for answer in answers if isinstance(answer, IdempotencyConflict)]
    assert len(losers) == 9
    assert {loser.job_id for loser in losers} == {winner.job_id}


@pytest.mark.parametrize(
    ("limits", "scope"),
    [
        (Limits(tenant=4), Scope.TENANT),
        (Limits(mode=4), Scope.MODE),
        (Limits(total=4), Scope.GLOBAL),
    ],
)
async def test_as_many_of_many_creators_succeed_as_the_limit_allows(
    backend: Backend, ledgers: Pair, world: World, limits: Limits, scope: Scope
) -> None:
    submissions = [world.submission() for _ in range(12)]
    answers = await together(
        *(ledgers[n % 2].create(*each, limits) for n, each in enumerate(submissions))
    )
    created = {answer.job_id for answer in answers if isinstance(answer, Created)}
    refusals = [answer.scope for answer in answers if isinstance(answer, Saturated)]
    assert len(created) == 4 if backend.counts_exactly else 1 <= len(created) <= 4
    assert refusals == [scope] * (12 - len(created))
    assert set(await job_ids(world.ledger)) == created
    assert {claim.job_id for claim in await world.claim()} == created
    assert (await view(world.ledger)).timers.keys() == created


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13])
async def test_a_creation_that_was_abandoned_is_whole_or_absent(
    backend: Backend, world: World, turns: int
) -> None:
    """The task is cancelled when the event loop has come round so many times."""
    submission = world.submission(entry="key:a")
    task = asyncio.create_task(world.submit(submission))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await together(task)
    await backend.ledger.close()
    after = await backend.reopen()
    job_id, seen = submission.reservation.job_id, await view(after)
    there = await after.load(job_id) is not None
    assert await after.find(TENANT, "key:a") == (Found(job_id, CONTENT) if there else None)
    assert len(seen.jobs) == len(seen.timers) == there
    assert seen.in_flight.get("total", 0) == there
    assert len(await after.events(job_id)) == (2 if there else 0)
    assert len(await after.claim(DIRECTIVE, MANY, LEASE)) == there
