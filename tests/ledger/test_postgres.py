"""What only PostgreSQL has: locks that are waited for, connections that are lost, its own types."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from lucius_contract.messages import Outcome
from lucius_contract.routing import Mode
from lucius_contract.states import JobState
from lucius_orchestrator.adapters.ledger.postgres import PostgresLedger
from lucius_orchestrator.adapters.ledger.postgres import statements as sql
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.domain.events import AckReceived, DispatchStale, HeartbeatReceived
from lucius_orchestrator.ports.ledger import (
    Conflict,
    Created,
    DeadLetterQuery,
    Found,
    JobQuery,
    LedgerUnavailable,
    Limits,
    Repair,
    Saturated,
    Scope,
    Stored,
    UnknownSchema,
)
from tests.ledger.backends import START, Clock
from tests.ledger.jobs import CONTENT, DIRECTIVE, LEASE, MANY, TENANT, Story, World, together
from tests.ledger.test_adapters import VERBS
from tests.ledger.test_dead_letters import UNREADABLE
from tests.ledger.view import LATER, job_ids, letters, view
from tests.names import unique
from tests.postgres import postgres_server
from tests.runner.deadlines import DEADLINE

NAMED = {"namespaces": ["lucius.invocation"], "topic": "t", "names": ["a", "b"]}
NUL = "a\0b\x1a0c\x1a1\x1a"
JOBS, SLOTS = "lucius_ledger_jobs", "lucius_ledger_in_flight"
TABLES = {
    JOBS: "job_id",
    "lucius_ledger_plans": "job_id",
    "lucius_ledger_steps": "job_id",
    "lucius_ledger_events": "job_id",
    "lucius_ledger_idempotency": "entry",
}


class Database:
    """An empty schema. Ledgers on it are what different processes would open."""

    def __init__(self, uri: str, schema: str, stack: AsyncExitStack) -> None:
        self.uri = uri
        self.schema = schema
        self._stack = stack

    def conninfo(self, options: str = "") -> str:
        return make_conninfo(self.uri, options=f"-c search_path={self.schema} {options}")

    async def ledger(self, options: str = "", **settings: Any) -> PostgresLedger:
        ledger = await PostgresLedger.open(self.conninfo(options), **settings)
        self._stack.push_async_callback(ledger.close)
        return ledger

    async def connect(self) -> AsyncConnection[Any]:
        """In autocommit mode: a transaction lasts from BEGIN to COMMIT."""
        connection = await AsyncConnection.connect(self.conninfo(), autocommit=True)
        return await self._stack.enter_async_context(connection)

    async def execute(self, statement: str, *values: Any) -> list[Any]:
        async with await AsyncConnection.connect(self.conninfo(), autocommit=True) as connection:
            cursor = await connection.execute(statement.encode(), values)
            return await cursor.fetchall() if cursor.description else []

    async def explain(self, statement: str, values: Any) -> str:
        async with await AsyncConnection.connect(self.conninfo()) as connection:
            cursor = await connection.execute(f"EXPLAIN {statement}".encode(), values)
            return "\n".join(row[0] for row in await cursor.fetchall())


@pytest.fixture
async def database(postgres_uri: str) -> AsyncIterator[Database]:
    async with AsyncExitStack() as stack:
        database = Database(postgres_uri, unique("special"), stack)
        await database.execute(f"CREATE SCHEMA {database.schema}")
        stack.push_async_callback(database.execute, f"DROP SCHEMA {database.schema} CASCADE")
        yield database


@pytest.fixture
async def ledger(database: Database, clock: Clock) -> PostgresLedger:
    return await database.ledger(clock=clock)


@pytest.fixture
async def other(database: Database, clock: Clock) -> PostgresLedger:
    return await database.ledger(clock=clock)


@pytest.fixture
def world(ledger: PostgresLedger, clock: Clock) -> World:
    return World(ledger, clock)


@asynccontextmanager
async def waiting(
    database: Database, locks: AsyncConnection[Any], call: Awaitable[Any]
) -> AsyncIterator[asyncio.Future[Any]]:
    """The call, once it waits for a lock of the connection; let go of that in the body."""
    pid = locks.info.backend_pid
    query = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
    answer = asyncio.ensure_future(call)
    async with asyncio.timeout(DEADLINE):
        while await database.execute(query, pid) == [(0,)]:
            assert not answer.done(), answer
            await asyncio.wait([answer], timeout=0.01)
        yield answer
        await asyncio.wait([answer])


async def test_of_many_writers_one_wins_with_a_connection_for_each_process(
    database: Database, clock: Clock
) -> None:
    ledgers = [await database.ledger(clock=clock, pool_size=1) for _ in range(3)]
    job = await World(ledgers[0], clock).create()
    beats = [HeartbeatReceived(*job.identity, TENANT, {"note": str(n)}) for n in range(12)]
    decisions = [job.decide(beat) for beat in beats]
    answers = await together(
        *(ledgers[n % 3].commit(job.stored, each) for n, each in enumerate(decisions))
    )
    (winner,) = [answer for answer in answers if isinstance(answer, Stored)]
    assert sum(isinstance(answer, Conflict) for answer in answers) == 11
    assert await ledgers[2].load(job.job_id) == winner


async def test_limits_are_exact_while_jobs_of_two_processes_come_and_go(
    ledger: PostgresLedger, other: PostgresLedger, world: World
) -> None:
    seen: list[int] = []

    async def come_and_go(number: int) -> int:
        handle, created = (ledger, other)[number % 2], 0
        tenant, mode = f"tenant-{number % 3}", list(Mode)[number % 2]
        for _ in range(5):
            submission = world.submission(tenant, mode=mode)
            with suppress(Saturated):
                answer = await handle.create(*submission, Limits(tenant=3, mode=4, total=5))
                assert answer.stored is not None
                seen.append((await handle.in_flight()).total)
                await Story(handle, world.clock, answer.stored).succeeds()
                created += 1
        return created

    counts = await together(*(come_and_go(number) for number in range(12)))
    assert all(isinstance(count, int) for count in counts), counts
    assert 0 < max(seen) <= 5
    assert len(await ledger.ended(LATER, MANY)) == sum(counts)
    for tenant in ("tenant-0", "tenant-1", "tenant-2"):
        assert await other.in_flight(tenant) == (0, dict.fromkeys(Mode, 0), 0)


async def test_jobs_of_two_tenants_begin_and_end_in_opposite_order_without_a_deadlock(
    ledger: PostgresLedger, other: PostgresLedger, world: World
) -> None:
    kinds = [("acme", Mode.DEFAULT), ("zeta", Mode.BURST)] * 12
    ending = [await world.create(tenant, mode=mode) for tenant, mode in kinds]
    beginning = [world.submission(tenant, mode=mode) for tenant, mode in reversed(kinds)]
    calls: list[Awaitable[Any]] = []
    for n, (job, submission) in enumerate(zip(ending, beginning, strict=True)):
        one, two = (ledger, other) if n % 2 else (other, ledger)
        calls.append(Story(one, world.clock, job.stored).succeeds())
        calls.append(two.create(*submission, Limits(total=MANY)))
    answers = await together(*calls)
    assert not [answer for answer in answers if isinstance(answer, Exception)]
    assert await ledger.in_flight("acme") == (24, dict.fromkeys(Mode, 12), 12)
    assert await ledger.repair(MANY) == []


async def test_a_creator_that_waits_for_another_takes_over_if_that_one_gives_up(
    database: Database, world: World
) -> None:
    submission = world.submission(entry="key:a")
    rival = await database.connect()
    await rival.execute("BEGIN")
    await rival.execute(
        "INSERT INTO lucius_ledger_idempotency VALUES (%s, 'key:a', %s, 'job_rival')",
        (TENANT, CONTENT),
    )
    async with waiting(database, rival, world.submit(submission)) as answer:
        await rival.execute("ROLLBACK")
    assert (await answer).stored is not None
    assert await world.ledger.find(TENANT, "key:a") == Found((await answer).job_id, CONTENT)


async def test_a_creator_that_waits_for_another_finds_its_job(
    database: Database, world: World
) -> None:
    submission = world.submission(entry="key:a")
    rival = await database.connect()
    await rival.execute("BEGIN")
    await rival.execute(
        "INSERT INTO lucius_ledger_idempotency VALUES (%s, 'key:a', %s, 'job_rival')",
        (TENANT, CONTENT),
    )
    async with waiting(database, rival, world.submit(submission)) as answer:
        await rival.execute("COMMIT")
    assert await answer == Created("job_rival", None)


async def test_an_entry_that_is_being_removed_can_be_used_again(
    database: Database, world: World
) -> None:
    job = await (await world.create(entry="key:a")).succeeds()
    remover = await database.connect()
    await remover.execute("BEGIN")
    values = {"job_id": job.job_id, "version": job.stored.version, **NAMED}
    await remover.execute(sql.REMOVE, values)
    again = world.submission(entry="key:a")
    async with waiting(database, remover, world.submit(again)) as answer:
        await remover.execute("COMMIT")
    assert (await answer).stored is not None
    assert await world.ledger.load(job.job_id) is None


@pytest.mark.parametrize(
    ("scope", "limits"),
    [
        (Scope.TENANT, Limits(tenant=2, mode=2, total=2)),
        (Scope.MODE, Limits(mode=2, total=2)),
        (Scope.GLOBAL, Limits(total=2)),
    ],
)
async def test_a_limit_that_is_reached_at_the_last_moment_leaves_nothing(
    database: Database, world: World, scope: Scope, limits: Limits
) -> None:
    """The first look sees room; a rival takes it while the creator waits for the counter."""
    await world.create()
    before = await view(world.ledger)
    refused = world.submission(entry="key:a")
    rival = await database.connect()
    await rival.execute("BEGIN")
    await rival.execute(f"UPDATE {SLOTS} SET jobs = jobs + 1 WHERE scope = %s", (scope.value,))
    async with waiting(database, rival, world.submit(refused, limits)) as answer:
        await rival.execute("COMMIT")
    with pytest.raises(Saturated) as refusal:
        await answer
    assert refusal.value.scope is scope
    await database.execute(f"UPDATE {SLOTS} SET jobs = jobs - 1 WHERE scope = %s", scope.value)
    assert await view(world.ledger) == before
    assert await world.ledger.find(TENANT, "key:a") is None
    assert await world.submit(world.submission(entry="key:a"), limits)


async def test_a_counter_that_is_too_low_does_not_keep_a_job_from_its_end(
    database: Database, world: World
) -> None:
    jobs = await world.create_many(2)
    await database.execute(f"UPDATE {SLOTS} SET jobs = 0 WHERE scope = 'TENANT'")
    assert (await jobs[0].succeeds()).job.state is JobState.SUCCEEDED
    assert await world.ledger.repair(MANY) == [Repair("in_flight", f"TENANT {TENANT}", "0", "1")]
    assert await world.ledger.repair(MANY) == []


async def test_counters_are_mended_while_jobs_begin_and_end(
    database: Database, ledger: PostgresLedger, other: PostgresLedger, clock: Clock
) -> None:
    world = World(ledger, clock)
    ending = await world.create_many(15)
    await database.execute(f"UPDATE {SLOTS} SET jobs = jobs + 5")
    begins = [world.submit(world.submission()) for _ in range(15)]
    repairs = [other.repair(MANY) for _ in range(4)]
    answers = await together(*(job.succeeds() for job in ending), *begins, *repairs)
    assert not [answer for answer in answers if isinstance(answer, Exception)]
    mended = [repair for found in answers[30:] for repair in found]
    assert sorted(repair.key for repair in mended) == [
        "GLOBAL ",
        "MODE DEFAULT",
        f"TENANT {TENANT}",
    ]
    assert all(int(repair.before) - int(repair.after) == 5 for repair in mended)
    assert await ledger.in_flight(TENANT) == (15, {Mode.DEFAULT: 15, Mode.BURST: 0}, 15)


async def test_a_repair_waits_for_a_creator_that_has_taken_its_slots(
    database: Database, ledger: PostgresLedger, world: World
) -> None:
    await world.create()
    await database.execute(f"UPDATE {SLOTS} SET jobs = 7 WHERE scope = 'GLOBAL'")
    creator = await database.connect()
    await creator.execute("BEGIN")
    await creator.execute(f"UPDATE {SLOTS} SET jobs = jobs + 1 WHERE scope = 'TENANT'")
    async with waiting(database, creator, ledger.repair(MANY)) as answer:
        await creator.execute("ROLLBACK")
    assert await answer == [Repair("in_flight", "GLOBAL ", "7", "1")]


async def test_tenants_without_jobs_have_no_counter_for_ever(
    database: Database, world: World
) -> None:
    for job in [await world.create(f"tenant-{n}") for n in range(3)]:
        await job.succeeds()
    await world.create("tenant-1")
    assert await world.ledger.repair(MANY) == []
    rows = await database.execute(f"SELECT name, jobs FROM {SLOTS} WHERE scope = 'TENANT'")
    assert rows == [("tenant-1", 1)]


async def impatient(uri: str, clock: Clock) -> PostgresLedger:
    """It waits 50 ms for a connection, and for a lock. On a busy machine that may be too short to
    open it."""
    async with asyncio.timeout(DEADLINE):
        while True:
            with suppress(LedgerUnavailable):
                return await PostgresLedger.open(
                    uri, clock=clock, patience=timedelta(milliseconds=50)
                )


async def test_a_lock_that_is_not_let_go_makes_the_ledger_unavailable(
    database: Database, clock: Clock, world: World
) -> None:
    job = await world.create()
    ledger = await impatient(database.conninfo(), clock)
    holder = await database.connect()
    await holder.execute("BEGIN")
    await holder.execute(f"SELECT FROM {JOBS} FOR UPDATE")
    clock.advance(minutes=2)
    for decision in (job.decide(job.result()), job.decide(job.timer(DispatchStale))):
        with pytest.raises(LedgerUnavailable):
            await ledger.commit(job.stored, decision)
    await holder.execute("ROLLBACK")
    await ledger.close()
    await job.succeeds()


async def test_a_schema_that_is_newer_than_known_is_refused(
    database: Database, ledger: PostgresLedger
) -> None:
    for prefix in ("lucius_ledger", "lucius_outbox"):
        await database.execute(f"INSERT INTO {prefix}_schema VALUES (99, 'later')")
        with pytest.raises(UnknownSchema, match="99"):
            await ledger.check()
        with pytest.raises(UnknownSchema, match="99"):
            await database.ledger()
        await database.execute(f"DELETE FROM {prefix}_schema WHERE version = 99")
    await ledger.check()


async def test_a_schema_that_is_not_there_is_unknown(
    database: Database, ledger: PostgresLedger
) -> None:
    await database.execute(f"DROP TABLE {JOBS}")
    with pytest.raises(UnknownSchema):
        await ledger.load("job_1")
    await database.execute("DROP TABLE lucius_ledger_schema")
    with pytest.raises(UnknownSchema):
        await ledger.check()


async def test_processes_that_start_together_migrate_once(database: Database) -> None:
    ledgers = await together(*(database.ledger() for _ in range(5)))
    for ledger in ledgers:
        await ledger.check()
    assert await database.execute("SELECT version FROM lucius_ledger_schema") == [(1,), (2,), (3,)]


async def test_a_server_that_is_not_there_is_unavailable(tmp_path: Any) -> None:
    with pytest.raises(LedgerUnavailable):
        await PostgresLedger.open(f"host={tmp_path} dbname=none")


async def test_a_server_that_goes_away_is_unavailable_to_every_verb(clock: Clock) -> None:
    with postgres_server() as uri:
        patient = await PostgresLedger.open(uri, clock=clock)
        world = World(patient, clock)
        job = await world.create()
        claim = await world.claim_one()
        sent = job.decide(AckReceived(*job.identity, TENANT))
        await patient.close()
        ledger = await impatient(uri, clock)
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: ledger.commit(job.stored, sent),
        lambda: ledger.commit(job.stored, sent, claim),
        lambda: ledger.reschedule(job.stored),
        lambda: ledger.remove(job.stored),
        lambda: ledger.in_states([JobState.PAUSING], 1),
        lambda: ledger.release([claim]),
        lambda: ledger.postpone([claim], "later"),
        lambda: ledger.discard([claim]),
        *(partial(verb, ledger, world) for verb in VERBS.values()),
    ]
    try:
        for call in calls:
            with pytest.raises(LedgerUnavailable):
                await call()
    finally:
        await ledger.close()


async def test_lost_connections_are_replaced(database: Database, world: World) -> None:
    job = await world.create()
    await _terminate(database)
    async with asyncio.timeout(DEADLINE):
        while isinstance(await _refusal(world.ledger.load(job.job_id)), LedgerUnavailable):
            pass
    await job.succeeds()


async def test_verbs_that_were_abandoned_leave_every_connection_usable(
    database: Database, clock: Clock
) -> None:
    ledger = await database.ledger(clock=clock, pool_size=2)
    world = World(ledger, clock)
    for turns in range(60):
        submission = world.submission(entry=f"key:abandoned-{turns}")
        calls = [world.submit(submission), ledger.claim(DIRECTIVE, 1, LEASE)]
        tasks = [asyncio.ensure_future(call) for call in calls]
        for _ in range(turns % 30):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await together(*tasks)
    before = (await ledger.in_flight(TENANT)).total
    jobs = await together(*(world.create() for _ in range(6)))
    assert all(isinstance(job, Story) for job in jobs), jobs
    assert len(await job_ids(ledger)) == before + 6 == (await ledger.in_flight(TENANT)).tenant
    assert await ledger.repair(MANY) == []


@asynccontextmanager
async def listening(ledger: PostgresLedger) -> AsyncIterator[asyncio.Queue[None]]:
    """A token for each wake-up, but for the first, which says that it has begun."""
    woken: asyncio.Queue[None] = asyncio.Queue()
    task = asyncio.create_task(ledger.listen(lambda: woken.put_nowait(None)))
    async with asyncio.timeout(DEADLINE):
        try:
            await woken.get()
            yield woken
        finally:
            task.cancel()
            await asyncio.wait([task])
    assert task.cancelled()


async def test_a_listener_is_woken_by_what_other_processes_commit(
    ledger: PostgresLedger, other: PostgresLedger, clock: Clock
) -> None:
    world = World(other, clock)
    async with listening(ledger) as woken:
        job = await world.create(steps=2)
        await woken.get()
        claim = await world.claim_one()
        await other.release([claim])
        await woken.get()
        clock.advance(minutes=2)
        stale = job.decide(job.timer(DispatchStale))
        assert not stale.outbox
        await job.commit(stale)
        await woken.get()
        await job.acked()
        await job.heartbeat()
        assert woken.empty()
        await job.happens(job.result())  # the next step
        await woken.get()
        assert woken.empty()
        workflow = await world.create(engine=Engine.TEMPORAL)
        await woken.get()
        await workflow.opened()  # whose directive nobody looks for
        assert woken.empty()
        await workflow.acked()
        await woken.get()
        assert woken.empty()


async def test_listening_leaves_the_pool_to_the_verbs(database: Database, clock: Clock) -> None:
    ledger = await database.ledger(clock=clock, pool_size=1)
    async with listening(ledger) as woken:
        await World(ledger, clock).create()
        await woken.get()


async def test_a_listener_whose_connection_was_lost_listens_again(
    database: Database, ledger: PostgresLedger, world: World
) -> None:
    async with listening(ledger) as woken:
        await _terminate(database, "LISTEN%")
        await woken.get()
        await world.create()
        await woken.get()


async def test_characters_that_postgresql_refuses_are_kept(
    ledger: PostgresLedger, world: World
) -> None:
    job = await world.create()
    fields = {"error_code": NUL, "error_message": NUL, "output_ref": {"uri": NUL}}
    await job.happens(job.result(Outcome.FAILED_FINAL, **fields))
    await job.happens(AckReceived("step_01", 1, NUL, TENANT))
    assert await ledger.load(job.job_id) == job.stored
    assert job.job.error_message == NUL
    assert await ledger.events(job.job_id) == job.trail
    assert [letter.code for letter in await letters(ledger)] == [NUL]


async def test_a_nul_can_be_asked_for(ledger: PostgresLedger, world: World) -> None:
    job = await world.create(entry=NUL)
    assert await ledger.find(TENANT, NUL) == Found(job.job_id, CONTENT)
    assert await ledger.find(TENANT, NUL.replace("\0", "\x1a0")) is None
    assert await ledger.load(NUL) is None
    assert await ledger.events(NUL) == []
    assert await ledger.directive(NUL, NUL, 1) is None
    assert await job_ids(ledger, JobQuery(NUL, request_type=NUL)) == []
    assert (await ledger.in_flight(NUL)).tenant == 0
    await ledger.postpone(await world.claim(), NUL)


async def test_a_dead_letter_may_hold_a_nul(ledger: PostgresLedger) -> None:
    letter = UNREADABLE._replace(id=NUL, tenant_id=NUL, job_id=NUL, code=NUL, message=NUL)
    assert await ledger.bury(letter)
    assert not await ledger.bury(letter)
    for query in (DeadLetterQuery(), DeadLetterQuery(NUL), DeadLetterQuery(code=NUL)):
        assert await letters(ledger, query) == [letter]
    assert await ledger.mark_redriven(NUL, NUL) == 1


async def test_a_stray_reply_may_name_any_attempt(ledger: PostgresLedger, world: World) -> None:
    job = await world.create()
    for number in (2**31, 2**63, 10**40):
        await job.happens(AckReceived("step_01", number, "stray", TENANT))
    assert await ledger.events(job.job_id) == job.trail
    assert job.trail[-1].attempt_no == 10**40


async def test_ids_are_listed_in_the_order_of_their_characters(
    ledger: PostgresLedger, world: World
) -> None:
    """And not in that of the database's language."""
    ids = [f"job_{letter}_of_an_alphabet" for letter in "BZabé日"]
    for job_id in ids:
        reservation, build = world.submission(entry=f"key:{job_id}")
        await ledger.create(reservation._replace(job_id=job_id), build, Limits())
    for tenant in (None, TENANT):
        assert await job_ids(ledger, JobQuery(tenant, limit=1)) == sorted(ids, reverse=True)


async def test_leases_are_measured_by_the_database_when_no_clock_is_given(
    database: Database, clock: Clock
) -> None:
    ledger = await database.ledger()
    clock.advance(days=365)  # of this test; the database has its own
    job = await World(ledger, clock).create()
    (claim,) = await ledger.claim(DIRECTIVE, MANY, LEASE)
    assert await ledger.claim(DIRECTIVE, MANY, LEASE) == []
    status = await ledger.directive(job.job_id, "step_01", 1)
    assert status is not None
    assert not status.claimable
    expire = "UPDATE lucius_outbox_messages SET locked_until = now() - interval '1 second'"
    await database.execute(expire)
    status = await ledger.directive(job.job_id, "step_01", 1)
    assert status is not None
    assert status.claimable
    (again,) = await ledger.claim(DIRECTIVE, MANY, LEASE)
    assert again.row == claim.row


async def test_settings_of_the_database_make_no_difference(
    database: Database, clock: Clock
) -> None:
    options = "-c default_transaction_isolation=serializable -c timezone=Asia/Tokyo"
    ledgers = [await database.ledger(options, clock=clock) for _ in range(2)]
    world = World(ledgers[0], clock)
    submissions = [world.submission() for _ in range(10)]
    answers = await together(
        *(ledgers[n % 2].create(*each, Limits(total=7)) for n, each in enumerate(submissions))
    )
    assert sum(isinstance(answer, Created) for answer in answers) == 7
    assert sum(isinstance(answer, Saturated) for answer in answers) == 3
    created = next(answer.job_id for answer in answers if isinstance(answer, Created))
    stored = await ledgers[1].load(created)
    assert stored is not None
    assert stored.timer is not None
    assert stored.timer.at.utcoffset() == stored.aggregate.job.updated_at.utcoffset() == timedelta()


async def test_no_verb_reads_a_whole_table(database: Database, world: World) -> None:
    """Neither with fresh statistics nor with those of an empty table."""
    job = await world.create()
    await database.execute(f"ALTER TABLE {JOBS} ALTER unsettled DROP EXPRESSION")
    for table, key in TABLES.items():
        await database.execute(
            f"INSERT INTO {table} SELECT (copy).* FROM ("
            f" SELECT jsonb_populate_record(t, jsonb_build_object('{key}', {key} || n)) AS copy"
            f" FROM {table} t, generate_series(1, 20000) AS n OFFSET 0) AS copies"
        )
    for statistics in ("SELECT", "ANALYZE"):
        await database.execute(statistics)
        for statement, values in _statements(job.job_id):
            explained = await database.explain(statement, values)
            for table in TABLES:
                assert f"Seq Scan on {table}" not in explained, f"{statement}\n{explained}"


def _statements(job_id: str) -> list[tuple[str, Any]]:
    page = {
        "tenant_id": TENANT,
        "cursor": job_id,
        "scan": 50,
        "state": None,
        "request_type": None,
        "since": None,
        "limit": 50,
    }
    update = sql.update(("seq",), (("attempt_no",),), events=True, letters=True, slots=True)
    slots = ["TENANT", TENANT, "MODE", "DEFAULT", "GLOBAL", ""]
    return [
        (sql.LOAD, [job_id]),
        (sql.VERSIONS, [[job_id]]),
        (update, [1, job_id, 1, 1, job_id, 0, "[]", "[]", *slots]),
        (sql.FIND, [TENANT, "key:1"]),
        (sql.EVENTS, [job_id, 0, 100]),
        (sql.DUE, {"kinds": ["ACK", "SLA"], "before": START, "limit": 10}),
        (sql.UNSETTLED, [["PAUSING"], 10]),
        (sql.ENDED, [START, 10]),
        (sql.REMOVE, {"job_id": job_id, "version": 1, **NAMED}),
        *((sql.jobs_page(tenant, True), page) for tenant in (True, False)),
        *((sql.jobs_page(tenant, False), page) for tenant in (True, False)),
    ]


async def _terminate(database: Database, queries: str = "%") -> None:
    """Every connection to the database's schema but this one."""
    await database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND query LIKE %s",
        queries,
    )


async def _refusal(call: Awaitable[Any]) -> Exception | None:
    (answer,) = await together(call)
    return answer if isinstance(answer, Exception) else None
