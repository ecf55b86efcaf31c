"""`claim_in_turn` on tables: what it costs and what it finds, however many directives wait."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import pytest

from lucius_contract.routing import LANES, DecisionSource, Mode, ModeDecision, lane_of, route
from lucius_contract.states import OutboxState
from lucius_orchestrator.adapters.ledger.tables import indexes, keys, leading, queues, reports
from lucius_orchestrator.adapters.ledger.tables.directives import MISSES
from lucius_orchestrator.adapters.ledger.tables.indexes import PENDING, queue_partition
from lucius_orchestrator.adapters.ledger.tables.lanes import PAGE, Range
from lucius_orchestrator.adapters.ledger.tables.partition import JOBS
from lucius_orchestrator.adapters.ledger.tables.store import (
    BATCH_LIMIT,
    KEY_LIMIT,
    Call,
    Insert,
    Merge,
    Row,
)
from lucius_orchestrator.domain.aggregate import StepPolicy
from lucius_orchestrator.domain.creation import StepPlan
from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.ports.ledger import ALL_LANES, Backlog, Claim, Ledger, Queue, TrafficReport
from tests.azurite import Azurite
from tests.ledger.azure_stage import Account
from tests.ledger.backends import START
from tests.ledger.jobs import DIRECTIVE, LEASE, MANY, Story, World, directive_of, ids, together
from tests.ledger.tables_stage import Crash, Store

OCR = "ocr"
BURST, DEFAULT = Mode.BURST, Mode.DEFAULT
DEEP = 2 * PAGE
FULL = "_full"
TENANTS = "abcde"
PLANS = (StepPlan("OCR", OCR, {}, StepPolicy()),)


class Turns:
    """A share for each queue, of as much room as there is."""

    def __init__(self, room: int = MANY, **rooms: int) -> None:
        self._room = room
        self._rooms = rooms
        self._last: dict[tuple[str, Mode], Queue] = {}
        self.listed: list[Queue] = []

    def room(self, service: str) -> int:
        return self._rooms.get(service, self._room)

    def last(self, service: str, mode: Mode) -> Queue | None:
        return self._last.get((service, mode))

    def allot(self, service: str, waiting: Sequence[Queue]) -> Mapping[Queue, int]:
        self.listed += waiting
        share = max(1, self.room(service) // len(waiting))
        served = waiting[: self.room(service) // share]
        self._last |= {(queue.service, queue.mode): queue for queue in served}
        return dict.fromkeys(served, share)

    def set_room(self, service: str, room: int) -> None:
        self._rooms[service] = room

    def last_was(self, queue: Queue) -> None:
        self._last[queue.service, queue.mode] = queue


class Costs:
    """Counts the calls of a process."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, _: Call) -> None:
        self.calls += 1


class Yard(Store):
    """A store with directives of many queues."""

    async def directive(
        self, tenant: str, service: str = OCR, mode: Mode = DEFAULT, doc: str = "doc"
    ) -> Story:
        decision = ModeDecision(mode, DecisionSource.REQUEST, "because")
        plans = (StepPlan(service.upper(), service, {}, StepPolicy()),)
        return await self.world.create(
            tenant, plans=plans, route=route(tenant, doc, decision), mode=mode
        )

    async def directives(self, *tenants: str, **fields: Any) -> list[Story]:
        return [await self.directive(tenant, **fields) for tenant in tenants]

    async def claim(
        self, turns: Turns | None = None, lanes: Sequence[int] = ALL_LANES
    ) -> list[str]:
        return jobs_of(await self.ledger.claim_in_turn(turns or Turns(), LEASE, lanes))

    async def fill(self, queue: Queue, count: int, lane: int | None = None, **values: Any) -> None:
        """Rows that were announced after all others, by a process that is gone."""
        partition = queue_partition(queue, lane_of(queue.tenant_id) if lane is None else lane)
        await self.fill_partition(partition, count, **queue._asdict(), **values)

    async def fill_partition(self, partition: str, count: int, **values: Any) -> None:
        now = self.clock.now
        common = {"job_id": "job_gone", "base": "none", "written_at": now, "due_at": now}
        common |= {"until": None, "tries": 0, "error": None, **values}
        rows = [
            Insert(keys.key(keys.moment(now), name, "t"), {**common, "outbox_id": name})
            for name in (f"job_gone.step.{number:06d}" for number in range(count))
        ]
        batches = [rows[n : n + BATCH_LIMIT] for n in range(0, count, BATCH_LIMIT)]
        await asyncio.gather(*(self.tables.batch(PENDING, partition, each) for each in batches))

    async def pending(self) -> list[Row]:
        """Of all services but the one that is full."""
        rows = await self.tables.shared().scan(PENDING, ("", ""), keys.END, 10 * DEEP)
        return [row for row in rows if row.values.get("service", FULL) != FULL]

    async def cost(self, turns: Turns) -> tuple[int, int]:
        """Calls of a new process, and how many rows it claimed."""
        costs = Costs()
        claims = await self.process(costs).claim_in_turn(turns, LEASE)
        return costs.calls, len(claims)


def jobs_of(claims: Sequence[Claim]) -> list[str]:
    return [claim.job_id for claim in claims]


def room(count: int = MANY) -> Turns:
    return Turns(count, **{FULL: 0})


def ocr(tenant: str, mode: Mode = DEFAULT) -> Queue:
    return Queue(OCR, mode, tenant)


@pytest.fixture
async def account(azure_storage: Azurite) -> AsyncIterator[Account]:
    account = Account(azure_storage)
    yield account
    await account.close()


@pytest.fixture
def memory_yard() -> Yard:
    return Yard()


@pytest.fixture
async def azure_tables_yard(account: Account) -> Yard:
    return Yard(await account.new_tables())


@pytest.fixture(params=["memory", "azure_tables"])
def yard(request: pytest.FixtureRequest) -> Yard:
    found: Yard = request.getfixturevalue(f"{request.param}_yard")
    return found


@pytest.fixture(params=["few", "many"])
async def any_yard(yard: Yard, request: pytest.FixtureRequest) -> Yard:
    """Where a page shows all rows, and where it does not: then most are of a service that sorts
    before all others and has no room."""
    if request.param == "many":
        await yard.fill(Queue(FULL, DEFAULT, "z"), PAGE, lane=0)
    return yard


@contextmanager
def previous_release() -> Iterator[None]:
    """Directives are written where the previous release does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexes, "queue_of", lambda _: None)
        yield


# What it costs


async def test_a_look_costs_as_much_whatever_waits(memory_yard: Yard) -> None:
    await memory_yard.directives(*TENANTS * 3)
    costs = []
    for _ in range(3):
        await memory_yard.fill(ocr(TENANTS[0]), PAGE)
        await memory_yard.fill(ocr(TENANTS[1]), PAGE)
        costs.append(await memory_yard.cost(Turns(len(TENANTS))))
        memory_yard.clock.advance(seconds=1)
    assert len(set(costs)) == 1
    calls, claims = costs[0]
    assert claims == len(TENANTS)
    assert calls <= 2 + 3 * LANES + 3 * claims


async def test_deep_queues_of_many_tenants_cost_no_more_than_those_that_are_served() -> None:
    costs = []
    for tenants in (50, 100):
        yard = Yard()
        for number in range(tenants):
            await yard.directive(f"t{number:03}")
            await yard.fill(ocr(f"t{number:03}"), 50)
        costs.append(await yard.cost(Turns(10)))
    (few, claimed), (many, claimed_of_many) = costs
    assert claimed == claimed_of_many == 10
    assert few <= many <= few + LANES  # there are queues in more lanes


async def test_a_service_without_room_costs_a_glance_at_each_lane(memory_yard: Yard) -> None:
    await memory_yard.directives(*TENANTS * 2)
    await memory_yard.fill(ocr(TENANTS[0]), PAGE)
    before, claims = await memory_yard.cost(Turns(3))
    for number in range(200):
        tenant = f"other-{number}"
        await memory_yard.fill(Queue("sis", DEFAULT, tenant), 30)
        await memory_yard.fill(Queue("sis", BURST, tenant), 30)
    after, again = await memory_yard.cost(Turns(3, sis=0))
    assert (claims, again) == (3, 3)
    assert after - before <= 2 * LANES


async def test_a_page_that_shows_all_rows_is_the_only_look(memory_yard: Yard) -> None:
    await memory_yard.directives(*TENANTS)
    assert await memory_yard.cost(Turns(3)) == (1 + 2 * 3, 3)
    assert await memory_yard.cost(Turns(0)) == (1, 0)


# Which queues are next


async def test_every_queue_has_its_turn_before_one_has_another(any_yard: Yard) -> None:
    tenants = [f"t{number:02}" for number in range(7)]
    await any_yard.directives(*tenants, *tenants)
    turns, served = room(3), Counter[str]()
    for _ in range(4):
        claims = await any_yard.ledger.claim_in_turn(turns, LEASE)
        served.update(claim.row.body["tenant_id"] for claim in claims)
        assert max(served.values()) - min(served[tenant] for tenant in tenants) <= 1
    assert served.total() == 12


async def test_queues_are_listed_behind_the_last_one_and_round(any_yard: Yard) -> None:
    await any_yard.directives(*TENANTS)
    turns = room(3)
    turns.last_was(ocr("c"))
    await any_yard.claim(turns)
    assert turns.listed == [ocr("d"), ocr("e"), ocr("a")]
    everything = room()
    everything.last_was(ocr("bb"))  # which has no rows any more
    any_yard.clock.advance(minutes=1)
    await any_yard.ledger.release(await any_yard.ledger.claim_in_turn(room(0), LEASE))
    await any_yard.claim(everything)
    assert everything.listed == [ocr(tenant) for tenant in "cdeab"]


@pytest.mark.parametrize("mode", Mode)
async def test_the_last_queue_may_go_on_though_there_was_no_room_to_list_it(
    any_yard: Yard, mode: Mode
) -> None:
    class GoesOn(Turns):
        def allot(self, service: str, waiting: Sequence[Queue]) -> Mapping[Queue, int]:
            self.listed += waiting
            last = self.last(service, mode)
            return {} if last is None else {last: 2}

    for doc in "xyz":
        await any_yard.directives(*"abc", mode=mode, doc=doc)
    turns = GoesOn(2, **{FULL: 0})
    turns.last_was(ocr("b", mode))
    claims = await any_yard.ledger.claim_in_turn(turns, LEASE)
    assert turns.listed == [ocr("c", mode), ocr("a", mode)]
    assert [directive_of(claim).body["tenant_id"] for claim in claims] == ["b", "b"]


async def test_modes_are_listed_one_by_one(any_yard: Yard) -> None:
    await any_yard.directive("a", mode=BURST)
    await any_yard.directives("a", "b")
    turns = room()
    await any_yard.claim(turns)
    assert sorted(turns.listed) == sorted([ocr("a", BURST), ocr("a"), ocr("b")])
    assert [queue.mode for queue in turns.listed] == sorted(
        (queue.mode for queue in turns.listed), key=list(Mode).index
    )


async def test_a_tenant_in_burst_is_one_queue_over_all_its_lanes(any_yard: Yard) -> None:
    docs = [f"doc-{number}" for number in range(40)]
    jobs = [await any_yard.directive("acme", mode=BURST, doc=doc) for doc in docs]
    assert len({job.job.route.lane for job in jobs}) > 10
    turns = room(15)
    assert await any_yard.claim(turns) == ids(jobs[:15])
    assert turns.listed == [ocr("acme", BURST)]
    assert await any_yard.claim(turns) == ids(jobs[15:30])
    assert await any_yard.claim(turns) == ids(jobs[30:])


async def test_a_tenant_in_burst_is_served_oldest_first_where_its_lanes_are_deep(
    memory_yard: Yard,
) -> None:
    docs = [f"doc-{number % 40}" for number in range(400)]
    jobs = [await memory_yard.directive("acme", mode=BURST, doc=doc) for doc in docs]
    for lane in range(LANES):
        await memory_yard.fill(ocr("acme", BURST), 100, lane)
    assert await memory_yard.claim(Turns(390)) == ids(jobs[:390])


async def test_a_tenant_in_burst_is_served_oldest_first_one_by_one(any_yard: Yard) -> None:
    docs = [f"doc-{number}" for number in range(20)]
    jobs = [await any_yard.directive("acme", mode=BURST, doc=doc) for doc in docs]
    claimed = [await any_yard.claim(room(1)) for _ in jobs]
    assert claimed == [[job.job_id] for job in jobs]


async def test_a_lane_that_has_most_of_the_oldest_rows_is_read_as_far_as_they_go(
    memory_yard: Yard,
) -> None:
    docs = [f"doc-{number}" for number in range(40)]
    jobs = [await memory_yard.directive("acme", mode=BURST, doc=docs[0]) for _ in docs]
    jobs += [await memory_yard.directive("acme", mode=BURST, doc=doc) for doc in docs]
    await memory_yard.fill(ocr("acme", BURST), PAGE, lane_of("acmedoc-1"))
    assert await memory_yard.claim(Turns(40)) == ids(jobs[:40])


async def test_lanes_that_were_not_asked_for_are_left_alone(any_yard: Yard) -> None:
    jobs = await any_yard.directives(*TENANTS)
    with previous_release():
        jobs += await any_yard.directives(*TENANTS)
    lanes = sorted({job.job.route.lane for job in jobs})
    some, others = lanes[:2], lanes[2:]
    expected = [job for job in jobs if job.job.route.lane in some]
    assert sorted(await any_yard.claim(room(), some)) == sorted(ids(expected))
    any_yard.clock.advance(seconds=31)  # they have lapsed
    assert sorted(await any_yard.claim(room(0), others)) == []
    rest = [job for job in jobs if job.job.route.lane in others]
    assert sorted(await any_yard.claim(room(), others)) == sorted(ids(rest))
    assert await any_yard.claim(room(), []) == []


async def test_tenants_and_services_may_be_called_anything(any_yard: Yard) -> None:
    names = ["ä/#?\\", "k" * 600, "k" * 601, "a!b", '"', "Acme", "acme", "~~~"]
    jobs = [await any_yard.directive(name, service) for name in names for service in names]
    turns = room()
    assert sorted(await any_yard.claim(turns)) == sorted(ids(jobs))
    expected = {Queue(service, DEFAULT, name) for name in names for service in names}
    assert set(turns.listed) == expected
    assert len(turns.listed) == len(expected)
    assert {each.service for each in await any_yard.ledger.backlogs()} >= set(names)
    assert len(queue_partition(Queue("k" * 160, DEFAULT, "k" * 160), 15)) <= KEY_LIMIT


# Rows that cannot be claimed


@pytest.mark.parametrize("verb", ["hold", "postpone"])
async def test_rows_that_are_held_or_postponed_do_not_hide_others(
    any_yard: Yard, verb: str
) -> None:
    await any_yard.directives(*["a"] * 30)
    claims = await any_yard.ledger.claim_in_turn(room(30), timedelta(hours=1))
    assert len(claims) == 30
    if verb == "postpone":
        await any_yard.ledger.postpone(claims, "unreachable")
    later = await any_yard.directives("a", "b")
    assert sorted(await any_yard.claim(room())) == sorted(ids(later))


@pytest.mark.parametrize("due", [timedelta(), timedelta(hours=1)])
async def test_a_row_behind_thousands_that_are_held_or_postponed_is_found_in_the_end(
    memory_yard: Yard, due: timedelta
) -> None:
    until = None if due else START + timedelta(hours=1)
    await memory_yard.fill(ocr("a"), DEEP + 500, due_at=START + due, until=until)
    (job,) = await memory_yard.directives("a")
    ledger = memory_yard.process(costs := Costs())
    found, turns = list[str](), Turns()
    for _ in range(4):
        costs.calls = 0
        found += jobs_of(await ledger.claim_in_turn(turns, LEASE))
        assert costs.calls <= 8 + LANES
    assert found == [job.job_id]


async def test_rows_that_were_found_far_behind_are_not_searched_for_again(
    memory_yard: Yard,
) -> None:
    await memory_yard.fill(ocr("a"), DEEP + 500, due_at=START + timedelta(hours=1))
    jobs = await memory_yard.directives(*"aaa")
    found = [await memory_yard.claim(Turns(1)) for _ in range(5)]
    assert found == [[], [], *([job.job_id] for job in jobs)]


async def test_a_row_at_the_head_that_has_become_due_is_found_while_others_are_searched(
    memory_yard: Yard,
) -> None:
    (first,) = await memory_yard.directives("a")
    claims = await memory_yard.ledger.claim_in_turn(Turns(), timedelta(hours=1))
    await memory_yard.fill(ocr("a"), DEEP, due_at=START + timedelta(hours=1))
    assert await memory_yard.claim() == []
    await memory_yard.ledger.release(claims)
    assert await memory_yard.claim() == [first.job_id]


async def test_a_queue_behind_many_that_are_held_or_postponed_has_its_turn(
    memory_yard: Yard,
) -> None:
    later, lane = START + timedelta(hours=1), lane_of("zz")
    for number in range(queues.FRUITLESS * 3):
        await memory_yard.fill(ocr(f"t{number:02}"), 1200, lane, due_at=later)
    (job,) = await memory_yard.directives("zz")
    ledger = memory_yard.process(costs := Costs())
    found, turns = list[str](), Turns()
    for _ in range(4):
        costs.calls = 0
        found += jobs_of(await ledger.claim_in_turn(turns, LEASE))
        assert costs.calls <= 8 + LANES + 2 * queues.FRUITLESS
    assert found == [job.job_id]


async def test_a_queue_with_nothing_to_claim_is_not_listed(any_yard: Yard) -> None:
    await any_yard.directives("a", "b")
    await any_yard.claim(room())
    turns = room()
    assert await any_yard.claim(turns) == []
    assert turns.listed == []


async def test_rows_leave_a_queue_in_the_order_in_which_they_became_due(any_yard: Yard) -> None:
    jobs = await any_yard.directives("a", "a", "a")
    claims = await any_yard.ledger.claim_in_turn(room(1), LEASE)
    any_yard.clock.advance(seconds=1)
    await any_yard.ledger.release(claims)
    assert await any_yard.claim(room()) == [*ids(jobs[1:]), jobs[0].job_id]


async def test_an_announcement_without_a_commit_is_left_and_hides_nothing(any_yard: Yard) -> None:

    async def dies(call: Call) -> None:
        if (call.verb, call.table) == ("batch", JOBS):
            raise Crash

    dying = World(any_yard.process(dies), any_yard.clock)
    with pytest.raises(Crash):
        await dying.create("a", plans=PLANS, entry="another")
    (row,) = await any_yard.pending()
    job = await any_yard.directive("a")
    assert await any_yard.claim(room(1)) == [job.job_id]
    repairs = [each for _ in range(3) for each in await any_yard.ledger.repair(MANY)]
    assert f"{row.partition}/{row.key}" in {repair.key for repair in repairs}
    assert row.key not in {each.key for each in await any_yard.pending()}
    assert await any_yard.ledger.directive(job.job_id, "step_01", 1) is not None


async def test_many_announcements_without_a_commit_cost_little_until_they_are_repaired(
    memory_yard: Yard,
) -> None:
    await memory_yard.fill(ocr("a"), 300)
    (job,) = await memory_yard.directives("a")
    assert await memory_yard.cost(Turns(5)) == (1 + MISSES, 0)
    await memory_yard.ledger.repair(MANY)
    assert await memory_yard.claim(Turns(5)) == [job.job_id]


async def test_a_row_that_has_ended_is_not_claimed_and_goes(any_yard: Yard) -> None:
    job = await any_yard.directive("a")
    (before,) = [row for row in await any_yard.pending() if row.values["tenant_id"] == "a"]
    (claim,) = await any_yard.ledger.claim_in_turn(room(), LEASE)
    await job.sent(claim)
    assert before.key not in {row.key for row in await any_yard.pending()}
    values = dict(before.values)
    await any_yard.tables.batch(PENDING, before.partition, [Insert(before.key, values)])
    any_yard.clock.advance(seconds=31)
    assert await any_yard.claim(room()) == []
    assert before.key not in {row.key for row in await any_yard.pending()}


# Claims that have lapsed


async def test_lapsed_rows_are_claimed_whatever_the_room(any_yard: Yard) -> None:
    jobs = await any_yard.directives(*TENANTS)
    assert len(await any_yard.claim(room())) == len(jobs)
    assert await any_yard.claim(room(0)) == []
    any_yard.clock.advance(seconds=31)
    fresh = await any_yard.directive("a")
    assert sorted(await any_yard.claim(room(0))) == sorted(ids(jobs))
    assert await any_yard.claim(room(1)) == [fresh.job_id]


async def test_lapsed_rows_come_first_and_leave_the_room_to_others(any_yard: Yard) -> None:
    jobs = await any_yard.directives("a", "b")
    assert len(await any_yard.claim(room())) == 2
    any_yard.clock.advance(seconds=31)
    fresh = await any_yard.directives("a", "b", "c")
    claims = await any_yard.claim(room(3))
    assert sorted(claims[:2]) == sorted(ids(jobs))
    assert sorted(claims[2:]) == sorted(ids(fresh))


async def test_a_lapsed_row_deep_in_a_queue_without_room_is_found_by_and_by(
    memory_yard: Yard,
) -> None:
    await memory_yard.fill(ocr("a"), DEEP)
    (job,) = await memory_yard.directives("a")
    partition = queue_partition(ocr("a"), lane_of("a"))
    (row,) = (await memory_yard.tables.query(PENDING, partition, "", keys.END, 2 * DEEP))[-1:]
    lapsed = {"until": START - timedelta(seconds=1)}
    await memory_yard.tables.batch(PENDING, partition, [Merge(row.key, lapsed)])
    found = [await memory_yard.claim(Turns(0)) for _ in range(4)]
    assert sorted(found) == [[], [], [], [job.job_id]]


# Several dispatchers


async def test_no_row_is_claimed_twice_by_dispatchers_that_look_at_once(any_yard: Yard) -> None:
    jobs = await any_yard.directives(*TENANTS * 4)

    async def take_turns(_: Call) -> None:
        await asyncio.sleep(0)

    processes = [any_yard.process(take_turns) for _ in range(3)]

    async def claim_all(ledger: Ledger) -> list[str]:
        turns = room(5)
        return [
            job_id for _ in range(8) for job_id in jobs_of(await ledger.claim_in_turn(turns, LEASE))
        ]

    shares = await together(*map(claim_all, processes))
    claimed = [job_id for share in shares for job_id in share]
    claimed += await any_yard.claim(room())
    assert sorted(claimed) == sorted(ids(jobs))


# Beside the previous release


async def test_rows_of_the_previous_release_are_claimed_oldest_first(any_yard: Yard) -> None:
    with previous_release():
        jobs = await any_yard.directives(*TENANTS)
    new = await any_yard.directive("a")
    unnamed = Turns(0)
    unnamed.set_room("", 3)
    assert await any_yard.claim(unnamed) == ids(jobs[:3])
    assert unnamed.listed == []
    assert sorted(await any_yard.claim(room())) == sorted(ids([*jobs[3:], new]))
    any_yard.clock.advance(seconds=31)
    assert sorted(await any_yard.claim(room(0))) == sorted(ids([*jobs, new]))


async def test_thousands_of_rows_of_the_previous_release_do_not_hide_queues(yard: Yard) -> None:
    with previous_release():
        (old,) = await yard.directives("a")
    await yard.fill_partition(f"DIRECTIVE!{lane_of('a'):02}", PAGE + 50)
    new = await yard.directives(*TENANTS)
    assert await yard.claim(Turns(1)) == [old.job_id, new[0].job_id]


async def test_rows_of_the_previous_release_are_counted(any_yard: Yard) -> None:
    before = Counter(await any_yard.ledger.backlog())
    with previous_release():
        old = await any_yard.directives("a", "a")
    new = await any_yard.directive("a")
    lane = lane_of("a")
    assert Counter(await any_yard.ledger.backlog()) - before == {lane: 3}
    found = [each for each in await any_yard.ledger.backlogs() if each.service != FULL]
    assert found == [
        Backlog("", lane, 2, old[0].directives[0].created_at),
        Backlog(OCR, lane, 1, new.directives[0].created_at),
    ]


async def test_rows_of_the_previous_release_are_marked_and_repaired(any_yard: Yard) -> None:
    with previous_release():
        job, left = await any_yard.directives("a", "a")
    claim, _ = await any_yard.ledger.claim_in_turn(room(), LEASE)
    await job.sent(claim)
    status = await any_yard.ledger.directive(job.job_id, "step_01", 1)
    assert status is not None
    assert status.state is OutboxState.SENT
    await any_yard.ledger.repair(10 * MANY)
    assert await any_yard.ledger.directive(left.job_id, "step_01", 1) is not None
    assert (await any_yard.ledger.backlog())[lane_of("a")] == 1


async def test_a_claim_in_order_of_age_finds_rows_of_both_releases(any_yard: Yard) -> None:
    jobs = []
    for number, tenant in enumerate(TENANTS * 2):
        with previous_release() if number % 2 else nullcontext():
            jobs += await any_yard.directives(tenant)
    claims = await any_yard.ledger.claim(DIRECTIVE, 4, LEASE)
    assert jobs_of(claims) == ids(jobs[:4])
    assert jobs_of(await any_yard.ledger.claim(DIRECTIVE, MANY, LEASE)) == ids(jobs[4:])


async def test_the_previous_release_does_not_look_where_queues_lie(memory_yard: Yard) -> None:
    """Its gauges would not know what to make of them."""
    await memory_yard.directives(*TENANTS)
    first, end = keys.below(OutboxKind.DIRECTIVE.value)
    assert await memory_yard.tables.scan(PENDING, (first, ""), end, 1) == []
    assert {Range.of(kind) for kind in OutboxKind if kind is not DIRECTIVE} == {
        Range(*keys.below(kind.value)) for kind in OutboxKind if kind is not DIRECTIVE
    }


async def test_a_dispatcher_of_the_previous_release_keeps_no_new_one_from_looking(
    memory_yard: Yard,
) -> None:
    until = memory_yard.clock.now + timedelta(hours=1)
    leases = [Insert(f"{lane:02d}", {"owner": "old", "until": until}) for lane in ALL_LANES]
    await memory_yard.tables.batch(PENDING, "LEASES", leases)
    assert await memory_yard.ledger.lead(ALL_LANES, LEASE) == set(ALL_LANES)
    assert leading.LEASES not in (PENDING, "LEASES")


# Reports


async def test_a_report_that_is_renewed_while_it_is_pruned_stays() -> None:
    store = Store()
    await store.ledger.publish_report(TrafficReport("one", START, "old"))

    async def renew(call: Call) -> None:
        if (call.verb, call.partition) == ("batch", reports.REPORTS):
            await store.ledger.publish_report(renewed)

    renewed = TrafficReport("one", START + timedelta(hours=2), "new")
    await store.process(renew).prune(START + timedelta(hours=1), MANY)
    assert await store.ledger.reports(START) == [renewed]
