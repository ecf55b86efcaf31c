"""What only PostgreSQL has: writers side by side, locks, connections that are lost."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from lucius_artifacts.catalogue.postgres import PostgresCatalogue
from lucius_artifacts.catalogue.postgres.connections import Connections
from lucius_artifacts.catalogue.postgres.session import _translation
from lucius_artifacts.errors import Refused, Unavailable
from lucius_artifacts.model import Hold
from lucius_artifacts.ports.catalogue import Reader, Transaction
from lucius_artifacts.states import BlobState
from lucius_orchestrator.adapters.ledger.postgres import PostgresLedger
from lucius_outbox import EqualJitter, RetryPolicy
from tests.artifacts import rows
from tests.artifacts.catalogue import plans
from tests.artifacts.catalogue.asking import Meeting, ask, put
from tests.artifacts.catalogue.backends import PostgresBackend
from tests.artifacts.catalogue.test_adapters import VERBS
from tests.artifacts.rows import DIGEST, NOW
from tests.runner.deadlines import DEADLINE, seconds

T = TypeVar("T")

ONCE = RetryPolicy(max_attempts=1)
SOON = EqualJitter(timedelta(milliseconds=1))


class Publisher:
    """Takes the next number, after it has met the other one."""

    def __init__(self, meet: Meeting) -> None:
        self._meet = meet
        self.runs = 0

    async def __call__(self, transaction: Transaction) -> None:
        self.runs += 1
        number = await transaction.latest_number("acme", "answers") + 1
        await self._meet()
        await transaction.put_version(rows.version(number=number))


async def test_work_that_met_another_is_run_again(postgres_backend: PostgresBackend) -> None:
    publisher = Publisher(Meeting(postgres_backend))
    catalogue = postgres_backend.catalogue
    await asyncio.gather(*(catalogue.change(publisher) for _ in range(2)))
    assert publisher.runs == 3
    assert await ask(catalogue).latest_number("acme", "answers") == 2


async def test_work_that_meets_others_every_time_is_given_up(
    postgres_backend: PostgresBackend,
) -> None:
    catalogue = await postgres_backend.open(races=ONCE)
    publisher = Publisher(Meeting(postgres_backend))
    answers = await asyncio.gather(
        *(catalogue.change(publisher) for _ in range(2)), return_exceptions=True
    )
    assert publisher.runs == 2
    assert [answer for answer in answers if answer is None] == [None]
    (refused,) = [answer for answer in answers if answer is not None]
    assert isinstance(refused, Unavailable)
    assert await ask(catalogue).latest_number("acme", "answers") == 1
    await catalogue.close()


async def test_a_crowd_of_one_process_is_through_by_the_third_run(
    postgres_backend: PostgresBackend,
) -> None:
    """Whoever has met others twice meets none."""
    catalogue = await postgres_backend.open(races=RetryPolicy(max_attempts=3, backoff=SOON))
    publisher = Publisher(Meeting(postgres_backend))
    async with asyncio.timeout(seconds(60)):
        await asyncio.gather(*(catalogue.change(publisher) for _ in range(12)))
    assert await ask(catalogue).latest_number("acme", "answers") == 12
    await catalogue.close()


@pytest.mark.parametrize("hides", ["returns", "raises"])
async def test_work_that_hides_a_race_is_run_again_all_the_same(
    postgres_backend: PostgresBackend, hides: str
) -> None:
    publish = Publisher(Meeting(postgres_backend))
    catalogue = postgres_backend.catalogue

    async def hide(transaction: Transaction) -> None:
        try:
            await publish(transaction)
        except Unavailable as error:
            if hides == "raises":
                raise Refused("another one was faster") from error

    await asyncio.gather(*(catalogue.change(hide) for _ in range(2)))
    assert await ask(catalogue).latest_number("acme", "answers") == 2


async def test_work_that_ran_into_the_row_of_another_is_run_again(
    postgres_backend: PostgresBackend,
) -> None:
    """Which it had not looked for: so PostgreSQL speaks of the row, and not of the race."""
    runs = 0

    async def bring(transaction: Transaction) -> str:
        nonlocal runs
        runs += 1
        there = await transaction.blob(DIGEST) if runs > 1 else None
        if there is None:
            await transaction.put_blob(rows.blob())
        return there.object_key if there else "ob_1"

    async with await AsyncConnection.connect(postgres_backend.conninfo) as rival:
        await rival.execute(
            "INSERT INTO lucius_artifacts_blobs VALUES (%s, 1, 'ob_2', 'live', now(), now())",
            (DIGEST,),
        )
        change = asyncio.create_task(postgres_backend.catalogue.change(bring))
        await blocked(postgres_backend, change)
        await rival.commit()
    assert await change == "ob_2"
    assert runs == 2


async def blocked(backend: PostgresBackend, change: asyncio.Task[Any]) -> None:
    """Until the change waits for a lock."""
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE application_name = %s AND wait_event_type = 'Lock'"
    )
    async with asyncio.timeout(DEADLINE):
        while await backend.execute(waiting, backend.schema) == [(0,)]:
            assert not change.done(), change
            await asyncio.wait([change], timeout=0.01)


async def test_a_commit_that_was_begun_is_ended_whoever_goes_away(
    postgres_backend: PostgresBackend,
) -> None:
    await postgres_backend.execute(
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_advisory_xact_lock(12); RETURN NULL; END'"
    )
    await postgres_backend.execute(
        "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON lucius_artifacts_uploads"
        " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()"
    )
    async with await AsyncConnection.connect(postgres_backend.conninfo) as rival:
        await rival.execute("SELECT pg_advisory_xact_lock(12)")
        change = asyncio.create_task(put(postgres_backend.catalogue, rows.upload()))
        await blocked(postgres_backend, change)
        change.cancel()
        await asyncio.wait([change], timeout=0.05)
        assert not change.done()
        await rival.rollback()
    with pytest.raises(asyncio.CancelledError):
        await change
    assert await ask(postgres_backend.catalogue).upload("up_1") == rows.upload()


async def test_a_refusal_is_nothing_that_the_pool_warns_of(
    postgres_backend: PostgresBackend, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(transaction: Transaction) -> None:
        await transaction.put_upload(rows.upload())
        raise Refused("no")

    with pytest.raises(Refused):
        await postgres_backend.catalogue.change(refuse)
    await put(postgres_backend.catalogue, rows.upload())
    assert caplog.records == []


async def in_the_end(call: Callable[[], Awaitable[T]]) -> T:
    """What an impatient catalogue may refuse as long as the machine is busy."""
    async with asyncio.timeout(DEADLINE):
        while True:
            with suppress(Unavailable):
                return await call()


async def test_a_change_that_waits_too_long_for_a_lock_is_unavailable(
    postgres_backend: PostgresBackend,
) -> None:
    await put(postgres_backend.catalogue, rows.blob())
    impatient = await in_the_end(
        lambda: postgres_backend.open(patience=timedelta(milliseconds=200))
    )
    async with await AsyncConnection.connect(postgres_backend.conninfo) as rival:
        await rival.execute("SELECT FROM lucius_artifacts_blobs FOR UPDATE")
        with pytest.raises(Unavailable, match="lock"):
            await put(impatient, rows.blob(BlobState.TOMBSTONED))
        assert await in_the_end(lambda: ask(impatient).blob(DIGEST)) == rows.blob()
    await in_the_end(lambda: put(impatient, rows.blob(BlobState.TOMBSTONED)))
    await impatient.close()


async def test_who_gets_no_connection_in_time_is_told_so(
    postgres_backend: PostgresBackend,
) -> None:
    catalogue = await in_the_end(
        lambda: postgres_backend.open(pool_size=1, patience=timedelta(milliseconds=100))
    )
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def hog(_: Reader) -> None:
        begun.set()
        await go_on.wait()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(in_the_end(lambda: catalogue.read(hog)))
        await begun.wait()
        with pytest.raises(Unavailable):
            await catalogue.check()
        go_on.set()
    await in_the_end(catalogue.check)
    await catalogue.close()


async def test_a_database_that_is_away_is_named_so(tmp_path: Any) -> None:
    with pytest.raises(Unavailable, match="PostgreSQL"):
        await PostgresCatalogue.open(f"host={tmp_path} dbname=nothing")


async def test_a_database_that_went_away_is_unavailable_until_it_is_back(
    postgres_backend: PostgresBackend,
) -> None:
    catalogue = await postgres_backend.open(patience=timedelta(seconds=5))
    await put(catalogue, rows.upload())

    async def lose_it(transaction: Transaction) -> None:
        await transaction.put_blob(rows.blob())
        await terminate(postgres_backend)
        await transaction.put_version(rows.version())

    with pytest.raises(Unavailable):
        await catalogue.change(lose_it)
    async with asyncio.timeout(DEADLINE):
        for verb in VERBS.values():
            while True:
                with suppress(Unavailable):
                    await verb(catalogue)
                    break
    assert await ask(catalogue).blob(DIGEST) is None
    await catalogue.close()


async def terminate(backend: PostgresBackend) -> None:
    await backend.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
        backend.schema,
    )


async def test_a_connection_that_is_lost_at_the_commit_commits_nothing(
    postgres_backend: PostgresBackend,
) -> None:
    async def lose_it(transaction: Transaction) -> None:
        await transaction.put_blob(rows.blob())
        await terminate(postgres_backend)

    with pytest.raises(Unavailable):
        await postgres_backend.catalogue.change(lose_it)
    other = await postgres_backend.reopen()
    assert await ask(other).blob(DIGEST) is None


async def test_changes_that_were_abandoned_leave_every_connection_usable(
    postgres_backend: PostgresBackend,
) -> None:
    catalogue = await postgres_backend.open(pool_size=2)
    for turns in range(30):
        hold = Hold(f"job_{turns}", "acme", DIGEST, NOW)
        tasks = [asyncio.create_task(put(catalogue, hold, rows.upload())) for _ in range(3)]
        await asyncio.wait(tasks, timeout=turns / 5000)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    open_ones = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE application_name = %s AND state <> 'idle' AND backend_type = 'client backend'"
    )
    assert await postgres_backend.execute(open_ones, postgres_backend.schema) == [(0,)]
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(*(put(catalogue, rows.upload()) for _ in range(4)))
    await catalogue.close()


@pytest.mark.parametrize(("prefix", "version"), [("lucius_artifacts", 2), ("lucius_outbox", 2)])
async def test_a_schema_of_a_newer_release_is_refused(
    postgres_backend: PostgresBackend, prefix: str, version: int
) -> None:
    await postgres_backend.execute(f"INSERT INTO {prefix}_schema VALUES (99, 'later')")
    expected = (
        f"the schema {prefix} has version 99, not {version}: install the release that made it"
    )
    with pytest.raises(Unavailable, match=expected):
        await postgres_backend.open()
    with pytest.raises(Unavailable, match=expected):
        await postgres_backend.catalogue.check()


async def test_a_database_without_the_tables_is_named_so(postgres_backend: PostgresBackend) -> None:
    await postgres_backend.execute("DROP TABLE lucius_artifacts_uploads, lucius_artifacts_schema")
    for verb in VERBS.values():
        with pytest.raises(Unavailable):
            await verb(postgres_backend.catalogue)


async def test_processes_that_start_together_migrate_in_turn(postgres_uri: str) -> None:
    backend = PostgresBackend(postgres_uri, "catalogues_together")
    await backend.execute(f"CREATE SCHEMA {backend.schema}")
    catalogues = await asyncio.gather(*(backend.open() for _ in range(3)))
    for catalogue in catalogues:
        await catalogue.check()
        await catalogue.close()
    await backend.stop()


async def test_the_tables_lie_beside_those_of_the_ledger(
    postgres_backend: PostgresBackend,
) -> None:
    ledger = await PostgresLedger.open(postgres_backend.conninfo)
    await put(postgres_backend.catalogue, rows.upload())
    await ledger.check()
    await postgres_backend.catalogue.check()
    await ledger.close()


async def test_settings_of_the_database_make_no_difference(
    postgres_backend: PostgresBackend,
) -> None:
    options = (
        f"-c search_path={postgres_backend.schema} -c timezone=Asia/Tokyo"
        " -c default_transaction_isolation=serializable -c datestyle=German"
    )
    conninfo = make_conninfo(postgres_backend.conninfo, options=options)
    catalogue = await PostgresCatalogue.open(conninfo)
    await put(catalogue, rows.upload())
    found = await ask(catalogue).upload("up_1")
    assert found == rows.upload()
    assert found is not None
    assert found.created_at.utcoffset() == timedelta()
    await catalogue.close()


async def test_text_in_an_index_is_sorted_by_its_characters(
    postgres_backend: PostgresBackend,
) -> None:
    """And not as the database's language has it."""
    collations = """
    SELECT c.relname, l.collname FROM pg_class AS c JOIN pg_index AS i ON i.indexrelid = c.oid
        JOIN pg_collation AS l ON l.oid = ANY(i.indcollation::oid[])
    WHERE c.relname LIKE 'lucius_artifacts_%%' AND relnamespace = current_schema()::regnamespace
    """
    found = await postgres_backend.execute(collations)
    assert len(found) > 10
    assert {collation for _, collation in found} == {"C"}


async def test_no_verb_reads_a_whole_table(postgres_backend: PostgresBackend) -> None:
    """Neither with fresh statistics nor with those of an empty table: every index is entered by its
    first column."""
    await plans.fill(postgres_backend.catalogue)
    columns = dict(await postgres_backend.execute(FIRST_COLUMNS))
    connections = Connections(postgres_backend.conninfo, 1, timedelta(seconds=5))
    await connections.open()
    for statistics in ("SELECT 1", "ANALYZE"):
        await postgres_backend.execute(statistics)
        async with connections.connection() as connection:
            for name, statement in plans.statements().items():
                explain = b"EXPLAIN (FORMAT JSON) " + _translation(statement)
                cursor = await connection.execute(explain, plans.values())
                ((answer,),) = await cursor.fetchall()
                whole = [scan for scan in _scans(answer[0]["Plan"]) if _reads_all(scan, columns)]
                assert not whole or name in plans.WHOLE, f"{name}: {whole}"
    await connections.close()


FIRST_COLUMNS = """
SELECT relname, pg_get_indexdef(oid, 1, true) FROM pg_class
WHERE relkind = 'i' AND relnamespace = current_schema()::regnamespace
"""


def _scans(plan: dict[str, Any]) -> list[dict[str, Any]]:
    below = [scan for each in plan.get("Plans", ()) for scan in _scans(each)]
    is_scan = "Relation Name" in plan and plan["Node Type"] != "ModifyTable"
    return [plan, *below] if is_scan else below


def _reads_all(scan: dict[str, Any], columns: dict[str, str]) -> bool:
    index = scan.get("Index Name", "")
    holds_one = index == "lucius_artifacts_runs_current"
    return not holds_one and f"({columns.get(index)} " not in scan.get("Index Cond", "")
