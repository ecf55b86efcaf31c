"""What is Azure's own about the ledger on its tables: names, sizes, faults, time."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from azure.data.tables.aio import TableServiceClient
from hypothesis import given
from hypothesis import strategies as st

from lucius_azure.storage import StorageAccount, open_tables
from lucius_azure.table_names import physical_name
from lucius_contract.messages import DIRECTIVE_LIMIT, REPLY_LIMIT
from lucius_contract.refs import URI_LIMIT
from lucius_contract.states import JobState
from lucius_orchestrator.adapters.ledger.azure_tables import AzureTablesLedger, TableNames
from lucius_orchestrator.adapters.ledger.azure_tables import properties as spelling
from lucius_orchestrator.adapters.ledger.azure_tables.clock import ServiceClock
from lucius_orchestrator.adapters.ledger.azure_tables.tables import AzureTables
from lucius_orchestrator.adapters.ledger.tables.partition import JOB, JOBS
from lucius_orchestrator.adapters.ledger.tables.store import (
    EntityExists,
    Insert,
    Merge,
    Operation,
    Replace,
    StoreUnavailable,
)
from lucius_orchestrator.domain.aggregate import StepPolicy
from lucius_orchestrator.domain.creation import StepPlan
from lucius_orchestrator.ports.ledger import LedgerUnavailable, TooLarge, UnknownSchema
from lucius_settings.secret import Secret
from tests.azure_proxy import Fault, Refusal, StorageProxy, proxy_to
from tests.azurite import Azurite
from tests.ledger.backends import Clock
from tests.ledger.jobs import MANY, World
from tests.ledger.view import on_the_wire
from tests.names import unique

HERE = ("things", "p")
BUSY = Refusal(503, "ServerBusy", {"Retry-After": "7"})
LARGE_BODY = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")


def new_names() -> TableNames:
    name = unique("azure")
    return TableNames(*(f"{name}{kind}" for kind in TableNames._fields))


def account(connection: str) -> StorageAccount:
    return StorageAccount(Secret(connection))


@pytest.fixture
async def proxy(azure_storage: Azurite) -> AsyncIterator[StorageProxy]:
    async with proxy_to(azure_storage.table) as proxy:
        yield proxy


class Pauses:
    """Sleeps that take no time."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
async def tables(
    azure_storage: Azurite, proxy: StorageProxy, pauses: Pauses
) -> AsyncIterator[AzureTables]:
    """Reached through the proxy, whose faults are those of the service."""
    opened = open_tables(account(proxy.connection(azure_storage)), retry_total=0)
    tables = AzureTables(opened, {"things": unique("faulty")}, sleep=pauses)
    await tables.create()
    proxy.asked.clear()
    yield tables
    await tables.close()


def inserts(*rows: str) -> Sequence[Operation]:
    return [Insert(row, {"x": 1}) for row in rows]


@pytest.mark.parametrize(
    ("name", "physical"),
    [
        ("lucius_ledger", "luciusledger"),
        ("job-idempotency", "jobidempotency"),
        ("Job.Index!", "jobindex"),
        ("a1b", "a1b"),
        ("x" * 63, "x" * 63),
    ],
)
def test_a_name_is_made_legal_by_leaving_out_what_is_not(name: str, physical: str) -> None:
    assert physical_name(name) == physical


@pytest.mark.parametrize("name", ["", "ab", "1abc", "_-_", "tables", "Ta_bles", "x" * 64])
def test_a_name_that_leaves_nothing_legal_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="3 to 63 letters and digits"):
        physical_name(name)


def test_every_table_has_a_name_of_its_own() -> None:
    names = TableNames().physical()
    assert names["jobs"] == "luciusledger"
    assert names["idempotency"] == "jobidempotency"
    assert names["pending"] == "luciusledgerpending"
    assert len(set(names.values())) == len(names)
    with pytest.raises(ValueError, match="same name"):
        TableNames("a_bc", "ab-c").physical()


@given(st.text(max_size=40), st.integers(0, 3))
def test_a_text_of_any_length_is_read_back_though_a_longer_one_stood_there(
    text: str, pieces: int
) -> None:
    long = text + "x" * (pieces * spelling.PIECE)
    exact = "y" * (spelling.PIECE - 2)  # with its quotes it fills one piece
    stored: dict[str, str] = {}
    for value in (long + "z" * spelling.PIECE, long, exact, text):
        stored |= spelling.to_properties({"error": value}, whole=False)
        assert spelling.to_values("pending", "row", stored) == {"error": value}


def test_no_property_is_longer_than_azure_allows() -> None:
    text = "😀" * 40_000
    found = spelling.to_properties({"error": text}, whole=True)
    assert all(len(piece.encode("utf-16-le")) <= 64 * 1024 for piece in found.values())


async def test_members_of_a_later_release_are_passed_over(azure_storage: Azurite) -> None:
    names, clock = new_names(), Clock()
    ledger = await AzureTablesLedger.open(account(azure_storage.connection), names, clock=clock)
    job = await World(ledger, clock).create()
    async with TableServiceClient.from_connection_string(azure_storage.connection) as service:
        jobs = service.get_table_client(names.physical()[JOBS])
        await jobs.update_entity({"PartitionKey": job.job_id, "RowKey": JOB, "later": "{}"})
    stored = await ledger.load(job.job_id)
    assert stored is not None
    assert stored.aggregate == job.aggregate
    await ledger.close()


@LARGE_BODY
async def test_the_largest_job_that_the_contract_allows_fits(azure_storage: Azurite) -> None:
    """Thirty steps, the longest directives, and RESULTs as long as one may be."""
    clock = Clock()
    ledger = await AzureTablesLedger.open(
        account(azure_storage.connection), new_names(), clock=clock
    )
    world = World(ledger, clock)
    job = await world.create(plans=many_steps("ä" * (DIRECTIVE_LIMIT // 3)), **LONG_REFS)
    await job.acked()
    artifacts = [{"name": "ö" * 100, "uri": "az://x/" + "y" * 2000} for _ in range(25)]
    await job.happens(job.result(artifacts=tuple(artifacts), artifacts_bytes=REPLY_LIMIT))
    stored = await ledger.load(job.job_id)
    assert stored is not None
    assert stored.aggregate == job.aggregate
    claims = await world.claim()
    assert [on_the_wire(claim.row) for claim in claims] == list(map(on_the_wire, job.directives))
    await job.cancelled()
    await ledger.close()


LONG_REFS: dict[str, Any] = {
    name: {"uri": "az://container/" + "x" * (URI_LIMIT - 20)}
    for name in ("input_ref", "output_ref", "workspace_ref")
}


def many_steps(text: str) -> tuple[StepPlan, ...]:
    """The payload of a request may be this long in all."""
    kinds = [f"STEP_{number}" for number in range(30)]
    payloads = [{"text": text}, *({} for _ in kinds[1:])]
    return tuple(
        StepPlan(kind, kind.lower(), payload, StepPolicy())
        for kind, payload in zip(kinds, payloads, strict=True)
    )


@LARGE_BODY
async def test_a_job_that_azure_cannot_hold_is_refused_for_its_size(azure_storage: Azurite) -> None:
    clock = Clock()
    ledger = await AzureTablesLedger.open(
        account(azure_storage.connection), new_names(), clock=clock
    )
    world = World(ledger, clock)
    refs: dict[str, Any] = {
        "input_ref": {"uri": "az://x/y", "note": "n" * (DIRECTIVE_LIMIT - 20_000)}
    }
    with pytest.raises(TooLarge, match="4 MiB"):
        await world.create(plans=many_steps(""), **refs)
    assert (await ledger.in_flight()).total == 0
    assert await world.claim() == []
    assert await ledger.repair(MANY) == []
    await ledger.close()


async def test_a_row_that_azure_would_refuse_for_its_size_is_refused_clearly(
    tables: AzureTables,
) -> None:
    with pytest.raises(TooLarge, match="larger than the 1 MiB"):
        await tables.batch(*HERE, [Insert("a", {"x": "y" * 600_000})])
    assert await tables.get(*HERE, "a") is None


@pytest.mark.parametrize("rows", [["a"], ["a", "b"]])
@pytest.mark.parametrize("status", [429, 503, 500])
async def test_a_service_that_is_busy_is_asked_again_when_it_said(
    tables: AzureTables, proxy: StorageProxy, pauses: Pauses, rows: list[str], status: int
) -> None:
    proxy.writes_meet(Refusal(status, "ServerBusy", {"Retry-After": "7"}), Refusal(status))
    await tables.batch(*HERE, inserts(*rows))
    assert pauses.taken[0] == 7
    assert 0 <= pauses.taken[1] <= 3
    assert len(proxy.writes) == 3
    assert len(await tables.query(*HERE, "", "z", 10)) == len(rows)


async def test_who_is_asked_to_wait_for_too_long_does_not(
    tables: AzureTables, proxy: StorageProxy, pauses: Pauses
) -> None:
    proxy.all_meet(Refusal(503, "ServerBusy", {"Retry-After": "60"}))
    with pytest.raises(StoreUnavailable, match="503 ServerBusy"):
        await tables.batch(*HERE, inserts("a"))
    assert pauses.taken == []


@pytest.mark.parametrize("fault", [Fault.DROPPED, Fault.LOST, Fault.CUT])
async def test_a_write_whose_answer_never_came_is_made_again(
    tables: AzureTables, proxy: StorageProxy, fault: Fault
) -> None:
    """Who repeats it may find it done, and knows its own writes."""
    proxy.writes_meet(fault)
    is_done = fault is not Fault.DROPPED
    with pytest.raises(EntityExists) if is_done else nullcontext():
        await tables.batch(*HERE, inserts("a", "b"))
    assert len(await tables.query(*HERE, "", "z", 10)) == 2


async def test_a_commit_whose_answer_was_lost_is_made_once(
    azure_storage: Azurite, proxy: StorageProxy
) -> None:
    clock = Clock()
    connection = proxy.connection(azure_storage)
    ledger = await AzureTablesLedger.open(account(connection), new_names(), clock=clock)
    world = World(ledger, clock)
    job = await world.create(steps=2)

    async def lose_batches(asked: object) -> Fault | None:
        return Fault.LOST if "$batch" in str(asked) and next(batches) == 0 else None

    for verb in ("acked", "succeeds"):
        batches = itertools.count()
        proxy.rule = lose_batches
        await getattr(job, verb)()
        assert await ledger.load(job.job_id) == job.stored
    assert (await ledger.in_flight()).total == 0
    await ledger.close()


async def test_an_account_that_is_away_is_a_ledger_that_is_unavailable(
    azure_storage: Azurite, proxy: StorageProxy
) -> None:
    proxy.all_meet(Refusal(403, "AuthorizationFailure"))
    with pytest.raises(LedgerUnavailable, match="Storage Table Data Contributor"):
        await AzureTablesLedger.open(account(proxy.connection(azure_storage)), new_names())


async def test_a_table_that_is_missing_is_no_row_that_is_missing(
    azure_storage: Azurite, pauses: Pauses
) -> None:
    opened = open_tables(account(azure_storage.connection), retry_total=0)
    tables = AzureTables(opened, {"things": unique("nowhere")}, sleep=pauses)
    for call in (
        tables.batch(*HERE, inserts("a")),
        tables.batch(*HERE, inserts("a", "b")),
        tables.batch(*HERE, [Merge("a", {})]),
        tables.get(*HERE, "a"),
        tables.query(*HERE, "", "z", 10),
    ):
        with pytest.raises(StoreUnavailable, match="TableNotFound"):
            await call
    await tables.close()


async def test_who_may_not_make_tables_uses_those_that_are_there(
    azure_storage: Azurite, proxy: StorageProxy
) -> None:
    names = new_names()
    await (await AzureTablesLedger.open(account(azure_storage.connection), names)).close()

    async def no_tables(asked: object) -> Refusal | None:
        makes_one = getattr(asked, "method", "") == "POST" and "/Tables" in str(asked)
        return Refusal(403, "AuthorizationPermissionMismatch") if makes_one else None

    proxy.rule = no_tables
    ledger = await AzureTablesLedger.open(account(proxy.connection(azure_storage)), names)
    await ledger.check()
    await ledger.close()


async def test_tables_of_a_later_release_stop_the_start(azure_storage: Azurite) -> None:
    names = new_names()
    await (await AzureTablesLedger.open(account(azure_storage.connection), names)).close()
    opened = open_tables(account(azure_storage.connection))
    tables = AzureTables(opened, names.physical())
    row = await tables.get(JOBS, "!SCHEMA", "VERSION")
    assert row is not None
    await tables.batch(JOBS, "!SCHEMA", [Replace("VERSION", {"version": 99}, row.etag)])
    await tables.close()
    with pytest.raises(UnknownSchema, match="99"):
        await AzureTablesLedger.open(account(azure_storage.connection), names)


async def test_many_processes_may_make_the_tables_at_once(azure_storage: Azurite) -> None:
    names = new_names()
    opened = [AzureTablesLedger.open(account(azure_storage.connection), names) for _ in range(5)]
    for ledger in await asyncio.gather(*opened):
        await ledger.check()
        await ledger.close()


async def test_states_can_be_seen_in_the_table(azure_storage: Azurite) -> None:
    """Every field is a property, as JSON."""
    names, clock = new_names(), Clock()
    ledger = await AzureTablesLedger.open(account(azure_storage.connection), names, clock=clock)
    job = await (await World(ledger, clock).create()).succeeds()
    async with TableServiceClient.from_connection_string(azure_storage.connection) as service:
        jobs = service.get_table_client(names.physical()[JOBS])
        row = await jobs.get_entity(job.job_id, JOB)
    assert row["state"] == f'"{JobState.SUCCEEDED}"'
    assert row["error_code"] == "null"
    await ledger.close()


class OurClock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 27, 10, 0, 0, 500_000, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.mark.parametrize("wrong_by", [-90, -3, 3, 90])
def test_a_clock_that_is_wrong_is_put_right_by_the_answers(wrong_by: int) -> None:
    """To less than the second that answers tell."""
    ours = OurClock()
    clock = ServiceClock(ours)
    for tenths in range(25):
        there = ours.now + timedelta(seconds=wrong_by)
        clock.seen(ours.now, format_datetime(there.replace(microsecond=0), usegmt=True))
        ours.now += timedelta(milliseconds=100 + tenths)
    assert abs(clock() - ours.now - timedelta(seconds=wrong_by)) <= timedelta(milliseconds=200)


def test_a_clock_that_may_be_right_is_taken_to_be() -> None:
    ours = OurClock()
    clock = ServiceClock(ours)
    assert clock() == ours.now
    for date in (format_datetime(ours.now, usegmt=True), None, "nonsense"):
        clock.seen(ours.now, date)
        assert clock() == ours.now


def test_a_clock_that_was_set_is_followed() -> None:
    ours = OurClock()
    clock = ServiceClock(ours)
    for wrong_by in (timedelta(hours=1), -timedelta(hours=1)):
        clock.seen(ours.now, format_datetime(ours.now + wrong_by, usegmt=True))
        assert abs(clock() - ours.now - wrong_by) <= timedelta(seconds=1)
