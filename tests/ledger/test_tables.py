"""The tables that a ledger lies on, in memory and in Azure, and the names of its rows."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_azure.storage import StorageAccount, open_tables
from lucius_contract.ids import new_job_id
from lucius_orchestrator.adapters.ledger.azure_tables.tables import AzureTables
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.store import (
    BATCH_LIMIT,
    KEY_LIMIT,
    Call,
    Delete,
    EntityExists,
    EtagMismatch,
    Insert,
    MemoryTables,
    Merge,
    NotFound,
    Operation,
    Replace,
    StoreError,
    StoreUnavailable,
    Tables,
)
from lucius_settings.secret import Secret
from tests.azurite import Azurite
from tests.names import unique

HERE = ("things", "p")
NOBODY = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\""
MOMENT = datetime(2026, 1, 27, 10, 0, 0, 1, tzinfo=UTC)


@pytest.fixture
def memory() -> MemoryTables:
    return MemoryTables()


@pytest.fixture
async def azure(azure_storage: Azurite) -> AsyncIterator[AzureTables]:
    account = StorageAccount(Secret(azure_storage.connection))
    tables = AzureTables(open_tables(account), {"things": unique("things")})
    await tables.create()
    yield tables
    await tables.close()


@pytest.fixture(params=["memory", "azure"])
def tables(request: pytest.FixtureRequest) -> Tables:
    found: Tables = request.getfixturevalue(request.param)
    return found


async def insert(tables: Tables, *rows: str, partition: str = "p") -> None:
    await tables.batch("things", partition, [Insert(row, {"name": row}) for row in rows])


async def names(tables: Tables) -> list[str]:
    return [row.key for row in await tables.query(*HERE, "", keys.END, 1000)]


async def test_what_was_inserted_is_read(tables: Tables) -> None:
    (etag,) = await tables.batch(*HERE, [Insert("a", {"x": 1})])
    row = await tables.get(*HERE, "a")
    assert row is not None
    assert (row.partition, row.key, row.etag, row.values) == ("p", "a", etag, {"x": 1})
    assert await tables.get(*HERE, "b") is None
    assert await tables.get("things", "q", "a") is None


async def test_every_write_gives_a_row_a_new_etag(tables: Tables) -> None:
    """Rows that one batch writes may have the same one: on Azure it is the time of the write."""
    first_a, first_b = await tables.batch(*HERE, [Insert("a", {}), Insert("b", {})])
    merged_a, deleted_b = await tables.batch(*HERE, [Merge("a", {}), Delete("b")])
    deleted_a, second_b = await tables.batch(*HERE, [Delete("a"), Insert("b", {})])
    assert None not in (first_a, first_b, merged_a, second_b)
    assert first_a != merged_a
    assert first_b != second_b
    assert deleted_a is deleted_b is None


async def test_a_merge_keeps_the_other_values_and_a_replacement_does_not(
    tables: Tables,
) -> None:
    (etag,) = await tables.batch(*HERE, [Insert("a", {"x": 1, "y": 1})])
    (etag,) = await tables.batch(*HERE, [Merge("a", {"y": 2, "z": 2}, etag)])
    row = await tables.get(*HERE, "a")
    assert row is not None
    assert row.values == {"x": 1, "y": 2, "z": 2}
    assert etag is not None
    await tables.batch(*HERE, [Replace("a", {"z": 3}, etag)])
    row = await tables.get(*HERE, "a")
    assert row is not None
    assert row.values == {"z": 3}


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (Insert("b", {}), EntityExists),
        (Merge("b", {}, NOBODY), EtagMismatch),
        (Replace("b", {}, NOBODY), EtagMismatch),
        (Delete("b", NOBODY), EtagMismatch),
        (Merge("missing", {}), NotFound),
        (Replace("missing", {}, NOBODY), NotFound),
        (Delete("missing"), NotFound),
        (Delete("missing", NOBODY), NotFound),
    ],
)
async def test_a_batch_whose_condition_fails_names_the_row_and_writes_nothing(
    tables: Tables, operation: Operation, error: type[StoreError]
) -> None:
    await insert(tables, "a", "b")
    before = await tables.query(*HERE, "", keys.END, 10)
    with pytest.raises(error) as refusal:
        await tables.batch(*HERE, [Insert("c", {}), Delete("a"), operation])
    assert type(refusal.value) is error
    assert refusal.value.row == operation.row
    assert await tables.query(*HERE, "", keys.END, 10) == before


async def test_of_several_failing_conditions_the_first_is_named(tables: Tables) -> None:
    await insert(tables, "a")
    with pytest.raises(NotFound):
        await tables.batch(*HERE, [Merge("b", {}), Insert("a", {})])


async def test_a_batch_has_at_most_a_hundred_rows_and_each_once(tables: Tables) -> None:
    rows = [f"{number:03}" for number in range(BATCH_LIMIT + 1)]
    await insert(tables, *rows[:BATCH_LIMIT])
    refused: list[list[Operation]] = [
        [],
        [Merge(row, {}) for row in rows],
        [Merge("001", {}), Delete("001")],
    ]
    for operations in refused:
        with pytest.raises(ValueError, match="batch"):
            await tables.batch(*HERE, operations)


@pytest.mark.parametrize("key", ["a/b", "a\\b", "a#b", "a?b", "", "a\nb", "x" * (KEY_LIMIT + 1)])
async def test_keys_that_azure_refuses_are_refused(tables: Tables, key: str) -> None:
    with pytest.raises(ValueError, match="legal"):
        await tables.batch("things", "p", [Insert(key, {})])
    with pytest.raises(ValueError, match="legal"):
        await tables.batch("things", key, [Insert("a", {})])


async def test_a_range_is_read_in_order_without_its_end(tables: Tables) -> None:
    await insert(tables, "d", "b", "a", "c", "e")
    found = await tables.query(*HERE, "b", "e", 10)
    assert [row.key for row in found] == ["b", "c", "d"]
    assert [row.key for row in await tables.query(*HERE, "b", "e", 2)] == ["b", "c"]
    assert await tables.query(*HERE, "x", keys.END, 2) == []


async def test_a_scan_goes_from_partition_to_partition(tables: Tables) -> None:
    for partition in "qpr":
        await insert(tables, "a", "b", partition=partition)
    found = await tables.scan("things", ("p", "a"), "r", 10)
    assert [(row.partition, row.key) for row in found] == [("p", "b"), ("q", "a"), ("q", "b")]
    assert len(await tables.scan("things", ("", ""), keys.END, 4)) == 4


async def test_one_more_row_can_be_read_with_a_range(tables: Tables) -> None:
    await insert(tables, "a", "b", "c", "x")
    found = await tables.query(*HERE, "a", "c", 10, also="x")
    assert [row.key for row in found] == ["a", "b", "x"]
    assert len(await tables.query(*HERE, "a", "c", 10, also="b")) == 2
    assert len(await tables.query(*HERE, "a", "c", 10, also="missing")) == 2


async def test_a_null_is_a_value_like_any_other(tables: Tables) -> None:
    await tables.batch(*HERE, [Insert("a", {"x": 1, "y": 1})])
    await tables.batch(*HERE, [Merge("a", {"x": None})])
    row = await tables.get(*HERE, "a")
    assert row is not None
    assert row.values == {"x": None, "y": 1}


async def test_more_rows_than_a_page_holds_are_all_found(tables: Tables) -> None:
    rows = [f"{number:04}" for number in range(1050)]
    for first in range(0, len(rows), BATCH_LIMIT):
        await insert(tables, *rows[first : first + BATCH_LIMIT])
    assert await names_up_to(tables, 2000) == rows
    assert await names_up_to(tables, 1020) == rows[:1020]
    found = await tables.scan("things", ("", ""), keys.END, 2000)
    assert [row.key for row in found] == rows


async def names_up_to(tables: Tables, limit: int) -> list[str]:
    return [row.key for row in await tables.query(*HERE, "", keys.END, limit)]


async def test_a_row_that_was_read_does_not_change(tables: Tables) -> None:
    values = {"x": 1}
    await tables.batch(*HERE, [Insert("a", values)])
    values["x"] = 2
    row = await tables.get(*HERE, "a")
    await tables.batch(*HERE, [Merge("a", {"x": 3})])
    assert row is not None
    assert row.values == {"x": 1}


async def test_handles_share_their_rows_and_are_closed_one_by_one(memory: MemoryTables) -> None:
    tables, other = memory, memory.shared()
    await insert(other, "a")
    await other.close()
    await other.close()
    for call in (other.get(*HERE, "a"), other.batch(*HERE, [Delete("a")])):
        with pytest.raises(StoreUnavailable):
            await call
    assert await names(tables) == ["a"]


async def test_a_writer_can_be_stopped_before_a_call(memory: MemoryTables) -> None:
    tables, go, calls = memory, asyncio.Event(), list[Call]()

    async def before(call: Call) -> None:
        calls.append(call)
        await go.wait()

    writer = asyncio.create_task(insert(tables.shared(before), "a"))
    while not calls:
        await asyncio.sleep(0)
    assert await names(tables) == []
    go.set()
    await writer
    assert await names(tables) == ["a"]
    assert [(call.verb, call.table, call.partition) for call in calls] == [("batch", "things", "p")]


VECTORS = [
    (("acme", "key:a/b"), "acme!key~3Aa~2Fb"),
    (("täh/\\#?", "x"), "t~C3~A4h~2F~5C~23~3F!x"),
    (("SLOT", "job_1.step-2"), "SLOT!job_1.step-2"),
    (("~", "!"), "~7E!~21"),
    (("", "a"), "!a"),
]


@pytest.mark.parametrize(("parts", "expected"), VECTORS)
def test_keys_are_spelled_so(parts: tuple[str, ...], expected: str) -> None:
    assert keys.key(*parts) == expected


@given(st.lists(st.lists(st.text(), min_size=1, max_size=3), min_size=2, max_size=2))
def test_keys_are_equal_only_if_their_parts_are(lists: list[list[str]]) -> None:
    one, other = lists
    assert (keys.key(*one) == keys.key(*other)) == (one == other)


@given(st.text(max_size=400), st.text(max_size=400), st.text(max_size=400))
async def test_every_key_of_three_parts_is_legal(one: str, two: str, three: str) -> None:
    await MemoryTables().batch("things", "p", [Insert(keys.key(one, two, three) or "-", {})])


def test_a_part_that_is_too_long_becomes_its_hash() -> None:
    assert len(keys.key("ä" * 400)) == 66
    assert keys.key("ä" * 400) != keys.key("ä" * 401)
    assert keys.key("k" * keys.PART_LIMIT) == "k" * keys.PART_LIMIT
    assert keys.key("k" * (keys.PART_LIMIT + 1)).startswith("~~")


def test_a_range_holds_what_begins_with_its_parts_and_nothing_else() -> None:
    first, end = keys.below("acme")
    inside = ["acme!", keys.key("acme", "a"), keys.key("acme", "~")]
    outside = ["acme", "acme-1!a", "acme2!a", "acm!e", keys.key("acme~", "a")]
    assert all(first <= key < end for key in inside)
    assert not any(first <= key < end for key in outside)


@given(st.lists(st.timedeltas(timedelta(), timedelta(days=365 * 7000)), min_size=2))
def test_moments_sort_as_time_does(ages: list[timedelta]) -> None:
    moments = sorted(MOMENT + age for age in ages)
    ascending = [keys.moment(moment) for moment in moments]
    descending = [keys.moment_descending(moment) for moment in moments]
    assert ascending == sorted(ascending)
    assert descending == sorted(descending, reverse=True)


@given(st.lists(st.text(), min_size=2))
def test_a_descending_key_sorts_against_its_text(texts: list[str]) -> None:
    texts = [text for text in texts if text.isprintable()]
    in_order = sorted(texts, key=lambda text: text.encode())
    found = [keys.descending(text) for text in in_order]
    assert found == sorted(found, reverse=True)


def test_the_month_of_a_job_comes_from_its_id() -> None:
    ids = [new_job_id(MOMENT + timedelta(days=days), bytes(10)) for days in (0, 3, 5, 60)]
    months = [keys.month_of_job(job_id) for job_id in ids]
    assert months == ["797398", "797398", "797397", "797396"]
    for odd in ("job_1", "", "job_" + "f" * 12 + "7" + "f" * 19):
        assert keys.month_of_job(odd) == "999999"


def test_jobs_of_any_months_are_listed_newest_first() -> None:
    ids = [new_job_id(MOMENT + timedelta(days=9 * n), n.to_bytes(10)) for n in range(20)]
    places = [(keys.month_of_job(job_id), keys.descending(job_id)) for job_id in ids]
    assert all(later < earlier for earlier, later in itertools.pairwise(places))
