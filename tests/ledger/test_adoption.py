"""`adopt`: rows that are claimed at birth for a dispatcher in the same process."""

from collections.abc import Sequence
from datetime import timedelta

from lucius_orchestrator.domain.decision import OutboxKind, OutboxRow
from lucius_orchestrator.ports.ledger import Claim, Ledger
from tests.ledger.backends import Backend, Clock
from tests.ledger.jobs import World

LEASE = timedelta(seconds=30)


class Nursery:
    """Takes rows as long as there is room."""

    def __init__(self, room: int = 10) -> None:
        self.room = room
        self.taken: list[Claim] = []

    def wants(self, row: OutboxRow) -> bool:  # noqa: ARG002 - of any queue
        return len(self.taken) < self.room

    def take(self, claims: Sequence[Claim]) -> None:
        self.taken.extend(claims)


async def claimed(ledger: Ledger) -> list[str]:
    return [claim.job_id for claim in await ledger.claim(OutboxKind.DIRECTIVE, 100, LEASE)]


async def test_every_row_is_given_to_the_adopter_or_found_by_a_claim(
    ledger: Ledger, world: World
) -> None:
    adopter = Nursery(room=2)
    end = ledger.adopt(OutboxKind.DIRECTIVE, LEASE, adopter)
    jobs = [await world.create() for _ in range(4)]
    end()
    jobs.append(await world.create())
    given = [claim.job_id for claim in adopter.taken]
    assert len(given) <= 2
    assert sorted(given + await claimed(ledger)) == sorted(job.job_id for job in jobs)


async def test_a_row_whose_adopter_died_is_claimed_when_its_lease_is_over(
    backend: Backend, world: World, clock: Clock
) -> None:
    adopter = Nursery()
    backend.ledger.adopt(OutboxKind.DIRECTIVE, LEASE, adopter)
    job = await world.create()
    other = await backend.reopen()
    if adopter.taken:
        assert await claimed(other) == []
    clock.advance(seconds=31)
    assert await claimed(other) == [job.job_id]


async def test_an_adopted_row_is_ended_by_the_commit_that_names_it(
    backend: Backend, world: World, clock: Clock
) -> None:
    adopter = Nursery()
    backend.ledger.adopt(OutboxKind.DIRECTIVE, LEASE, adopter)
    job = await world.create()
    claim = adopter.taken[0] if adopter.taken else await world.claim_one()
    assert claim.version in (job.stored.version, None)
    assert claim.row.body["jobId"] == job.job_id
    await job.sent(claim)
    clock.advance(hours=1)
    assert await claimed(backend.ledger) == []


async def test_a_job_that_was_not_created_brings_no_row(
    backend: Backend, ledger: Ledger, world: World
) -> None:
    adopter = Nursery()
    ledger.adopt(OutboxKind.DIRECTIVE, LEASE, adopter)
    submission = world.submission()
    await world.submit(submission)
    await world.submit(submission)
    assert len(adopter.taken) + len(await claimed(ledger)) == 1
