"""`claim_in_turn` and `backlogs`: directives by service, mode and tenant."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from lucius_contract.routing import Mode
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.domain.creation import StepPlan
from lucius_orchestrator.domain.events import RetryDue
from lucius_orchestrator.ports.ledger import Backlog, Claim, Ledger, Queue
from tests.domain.scenario import a_plan
from tests.ledger.backends import Clock
from tests.ledger.jobs import LEASE, MANY, Pair, Story, World, directive_of, ids, together

DEFAULT, BURST = Mode.DEFAULT, Mode.BURST
OCR, SIS = "ocr-engine", "sis"
STRANGE = ["a/b", "a/b/c", "/", "x'y\"z", "100%s", "été", "\U0001f980", "\uffee", "a b", "\\"]


def evenly(room: int) -> Callable[[Sequence[Queue]], dict[Queue, int]]:
    """One of each queue, again and again, until the room is used."""

    def allot(waiting: Sequence[Queue]) -> dict[Queue, int]:
        each, more = divmod(room, len(waiting))
        return {queue: each + (n < more) for n, queue in enumerate(waiting)}

    return allot


@dataclass
class Turns:
    """Room for some services, and a record of what was asked."""

    rooms: Mapping[str, int]
    shares: Mapping[Queue, int] | None = None
    served: dict[tuple[str, Mode], Queue] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    waiting: dict[str, list[Queue]] = field(default_factory=dict)

    def room(self, service: str) -> int:
        self.asked.append(service)
        return self.rooms.get(service, 0)

    def last(self, service: str, mode: Mode) -> Queue | None:
        return self.served.get((service, mode))

    def allot(self, service: str, waiting: Sequence[Queue]) -> Mapping[Queue, int]:
        assert service not in self.waiting, "asked twice"
        self.waiting[service] = list(waiting)
        if self.shares is not None:
            return self.shares
        return evenly(self.rooms[service])(waiting)

    def tenants(self, service: str, mode: Mode = DEFAULT) -> list[str]:
        """Those of the queues that were handed to `allot`, in their order."""
        waiting = self.waiting.get(service, [])
        return [queue.tenant_id for queue in waiting if queue.mode is mode]


def plans_for(service: str) -> tuple[StepPlan, ...]:
    return tuple(replace(step, service=service) for step in a_plan(1).steps)


async def queued(
    world: World, tenant: str, service: str = OCR, mode: Mode = DEFAULT, count: int = 1
) -> list[Story]:
    return await world.create_many(count, tenant, plans=plans_for(service), mode=mode)


async def claim(ledger: Ledger, turns: Turns) -> list[Claim]:
    return await ledger.claim_in_turn(turns, LEASE)


async def claimed(ledger: Ledger, turns: Turns) -> list[str]:
    return [claim.job_id for claim in await claim(ledger, turns)]


def queue(tenant: str, service: str = OCR, mode: Mode = DEFAULT) -> Queue:
    return Queue(service, mode, tenant)


def queues_of(claims: Sequence[Claim]) -> list[Queue]:
    rows = [directive_of(claim) for claim in claims]
    return [Queue(row.service, Mode(row.body["mode"]), row.body["tenant_id"]) for row in rows]


async def test_each_claim_is_of_a_queue_that_was_allotted_and_no_more_than_that(
    ledger: Ledger, world: World
) -> None:
    for tenant in ("a", "b", "c"):
        await queued(world, tenant, count=3)
    await queued(world, "b", mode=BURST, count=3)
    shares = {queue("b"): 2, queue("b", mode=BURST): 1, queue("c"): 0, queue("nobody"): 5}
    claims = await claim(ledger, Turns({OCR: 8}, shares))
    assert sorted(queues_of(claims)) == sorted([queue("b"), queue("b"), queue("b", mode=BURST)])


@pytest.mark.parametrize("mode", Mode)
async def test_the_last_queue_may_go_on_though_there_was_no_room_to_list_it(
    ledger: Ledger, world: World, mode: Mode
) -> None:
    """Whose turn is longer than there is room at a time is not cut short."""
    for tenant in ("a", "b", "c"):
        await queued(world, tenant, count=2, mode=mode)
    last = queue("b", mode=mode)
    turns = Turns({OCR: 1}, {last: 1}, served={(OCR, mode): last})
    assert queues_of(await claim(ledger, turns)) == [last]
    assert turns.tenants(OCR, mode) == ["c"]


async def test_a_claim_in_turn_is_a_claim_as_any_other(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    (job,) = await queued(world, "a")
    (one,) = await claim(ledger, Turns({OCR: 1}))
    assert (one.job_id, one.tries) == (job.job_id, 0)
    assert one.row == job.directives[0]
    assert one.version in (job.stored.version, None)
    await job.sent(one)
    clock.advance(hours=1)
    assert await claimed(ledger, Turns({OCR: 1})) == []


async def test_a_queue_gives_its_oldest_rows(ledger: Ledger, world: World) -> None:
    jobs = []
    for _ in range(3):
        jobs += await queued(world, "a", count=2)
        await queued(world, "b")
    shares = {queue("a"): 4}
    assert await claimed(ledger, Turns({OCR: 9}, shares)) == ids(jobs[:4])
    assert await claimed(ledger, Turns({OCR: 9}, shares)) == ids(jobs[4:])


async def test_a_service_without_room_is_passed_over_though_its_rows_are_the_oldest(
    ledger: Ledger, world: World
) -> None:
    await queued(world, "a", OCR, count=5)
    jobs = await queued(world, "a", SIS)
    turns = Turns({OCR: 0, SIS: 5})
    assert await claimed(ledger, turns) == ids(jobs)
    assert sorted(turns.asked) == [OCR, SIS]
    assert list(turns.waiting) == [SIS]
    assert await claimed(ledger, Turns({})) == []


async def test_only_services_with_pending_directives_are_asked_for_their_room(
    ledger: Ledger, world: World
) -> None:
    turns = Turns({OCR: 5})
    assert await claimed(ledger, turns) == []
    assert turns.asked == []
    for service in ("ocr", "ocr-2", "ocr2"):
        await queued(world, "a", service)
    await claim(ledger, turns)
    assert sorted(turns.asked) == ["ocr", "ocr-2", "ocr2"]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (None, "abcde"),
        ("b", "cdeab"),
        ("bb", "cdeab"),
        ("e", "abcde"),
        ("zz", "abcde"),
    ],
)
async def test_waiting_queues_begin_behind_the_last_one_and_wrap(
    ledger: Ledger, world: World, last: str | None, expected: str
) -> None:
    """Each queue once."""
    for tenant in "edcba":
        await queued(world, tenant, count=2)
    await queued(world, "c", SIS)
    served = {(OCR, DEFAULT): queue(last)} if last else {}
    turns = Turns({OCR: 10}, {}, served)
    await claim(ledger, turns)
    assert "".join(turns.tenants(OCR)) == expected


async def test_at_most_as_many_queues_of_a_mode_are_handed_over_as_there_is_room(
    ledger: Ledger, world: World
) -> None:
    for tenant in "abcd":
        await queued(world, tenant)
        await queued(world, tenant, mode=BURST)
    served = {(OCR, DEFAULT): queue("c"), (OCR, BURST): queue("a", mode=BURST)}
    turns = Turns({OCR: 3}, {}, served)
    await claim(ledger, turns)
    assert turns.tenants(OCR) == ["d", "a", "b"]
    assert turns.tenants(OCR, BURST) == ["b", "c", "d"]
    assert [each.mode for each in turns.waiting[OCR]] == [DEFAULT] * 3 + [BURST] * 3


async def test_all_tenants_get_their_turn(ledger: Ledger, world: World) -> None:
    """With room for one at a time, whoever has the most."""
    await queued(world, "a", count=6)
    for tenant in "bc":
        await queued(world, tenant, count=2)
    turns, tenants = Turns({OCR: 1}), ""
    for _ in range(7):
        turns.waiting.clear()
        (found,) = queues_of(await claim(ledger, turns))
        turns.served[OCR, DEFAULT] = found
        tenants += found.tenant_id
    assert tenants == "abcabca"


async def test_queues_whose_rows_are_all_postponed_give_nothing(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    jobs = await queued(world, "a", count=2)
    claims = await claim(ledger, Turns({OCR: 5}))
    await ledger.postpone(claims, "the bus is unavailable")
    assert await claimed(ledger, Turns({OCR: 5}, {queue("a"): 5})) == []
    others = await queued(world, "b")
    assert await claimed(ledger, Turns({OCR: 5}, {queue("a"): 5, queue("b"): 5})) == ids(others)
    clock.advance(hours=1)
    again = await claim(ledger, Turns({OCR: 5}, {queue("a"): 5}))
    postponed = [each for each in again if each.job_id in ids(jobs)]
    assert [each.tries for each in postponed] == [1, 1]


async def test_lapsed_claims_come_first_whatever_the_room(
    ledgers: Pair, world: World, clock: Clock
) -> None:
    one, other = ledgers
    lapsing = [*await queued(world, "a", OCR), *await queued(world, "a", SIS)]
    assert len(await claim(one, Turns({OCR: 5, SIS: 5}))) == 2
    fresh = await queued(world, "b", SIS)
    clock.advance(seconds=LEASE.total_seconds() - 2)
    assert await claimed(other, Turns({})) == []
    clock.advance(seconds=3)
    found = await claimed(other, Turns({SIS: 1}))
    assert sorted(found[:2]) == sorted(ids(lapsing))
    assert found[2:] == ids(fresh)
    assert await claimed(one, Turns({OCR: 5, SIS: 5})) == []


async def test_a_lapsed_claim_is_taken_though_no_service_has_room(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    (job,) = await queued(world, "a")
    await claim(ledger, Turns({OCR: 1}))
    await queued(world, "a")
    clock.advance(seconds=31)
    assert await claimed(ledger, Turns({})) == [job.job_id]


async def test_two_processes_that_claim_at_once_never_get_the_same_row(
    ledgers: Pair, world: World
) -> None:
    jobs = [job for tenant in "abc" for job in await queued(world, tenant, count=8)]
    answers = await together(*(claimed(ledgers[n % 2], Turns({OCR: 9})) for n in range(6)))
    taken = [job_id for answer in answers for job_id in answer]
    while more := await claimed(ledgers[0], Turns({OCR: MANY})):
        taken += more
    assert sorted(taken) == sorted(ids(jobs))


async def test_released_rows_are_the_first_of_their_queue_again(
    ledger: Ledger, world: World
) -> None:
    jobs = await queued(world, "a", count=3)
    await ledger.release(await claim(ledger, Turns({OCR: 2})))
    turns = Turns({OCR: 9})
    assert await claimed(ledger, turns) == ids(jobs)
    assert turns.waiting[OCR] == [queue("a")]


async def test_retries_come_behind_the_rows_that_wait(ledger: Ledger, world: World) -> None:
    (first,) = await queued(world, "a")
    (one,) = await claim(ledger, Turns({OCR: 1}))
    await first.sent(one)
    waiting = await queued(world, "a", count=2)
    await first.acked()
    await first.fails_for_now()
    await first.fires(RetryDue)
    assert len(first.directives) == 2
    assert await claimed(ledger, Turns({OCR: 9})) == [*ids(waiting), first.job_id]


@pytest.mark.parametrize("mode", Mode)
async def test_any_name_of_a_tenant_is_a_queue(ledger: Ledger, world: World, mode: Mode) -> None:
    for tenant in STRANGE:
        await queued(world, tenant, mode=mode)
    turns, seen = Turns({OCR: 3}), list[Queue]()
    for _ in range(4):
        turns.waiting.clear()
        seen += (found := queues_of(await claim(ledger, turns)))
        turns.served[OCR, mode] = found[-1]
    assert sorted(seen) == sorted(queue(tenant, mode=mode) for tenant in STRANGE)


async def test_rows_of_other_kinds_are_in_no_queue(ledger: Ledger, world: World) -> None:
    job = await world.create(engine=Engine.TEMPORAL)
    await job.opened()
    turns = Turns({OCR: 5, "": 5})
    assert await claimed(ledger, turns) == []
    assert turns.asked == []


async def test_a_claim_of_all_rows_takes_rows_of_queues_too(ledger: Ledger, world: World) -> None:
    jobs = [*await queued(world, "a"), *await queued(world, "b", SIS)]
    assert [each.job_id for each in await world.claim()] == ids(jobs)
    assert await claimed(ledger, Turns({OCR: 5, SIS: 5})) == []


async def test_an_error_of_the_turns_leaves_the_ledger_usable(ledger: Ledger, world: World) -> None:
    class Broken(Turns):
        def allot(self, service: str, waiting: Sequence[Queue]) -> Mapping[Queue, int]:
            raise ValueError(service, waiting)

    jobs = await queued(world, "a")
    with pytest.raises(ValueError, match=OCR):
        await claim(ledger, Broken({OCR: 1}))
    assert await claimed(ledger, Turns({OCR: 1})) == ids(jobs)


async def test_backlogs_are_counted_by_service_and_lane(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    assert await ledger.backlogs() == []
    first, *_ = await queued(world, "a", count=3)
    (sent, second) = await queued(world, "b", SIS, count=2)
    shares = {queue("a"): 1, queue("b", SIS): 1}
    for one in await claim(ledger, Turns({OCR: 1, SIS: 1}, shares)):
        if one.job_id == sent.job_id:
            await sent.sent(one)
    invocation = await world.create("a", engine=Engine.TEMPORAL, plans=plans_for("embedder"))
    await invocation.opened()
    expected = [
        Backlog(job.directives[0].service, job.job.route.lane, count, job.directives[0].created_at)
        for job, count in ((first, 3), (second, 1))
    ]
    clock.advance(hours=1)
    assert sorted(await ledger.backlogs()) == sorted(expected)
    counted = await ledger.backlog()
    lane = invocation.job.route.lane
    assert sum(counted.values()) == 5
    assert counted[lane] == 1 + sum(each.waiting for each in expected if each.lane == lane)


async def test_a_lease_of_a_claim_in_turn_is_as_long_as_asked(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    (job,) = await queued(world, "a")
    await ledger.claim_in_turn(Turns({OCR: 1}), timedelta(minutes=5))
    clock.advance(minutes=4)
    assert await claimed(ledger, Turns({OCR: 1})) == []
    clock.advance(minutes=2)
    assert await claimed(ledger, Turns({OCR: 1})) == [job.job_id]
