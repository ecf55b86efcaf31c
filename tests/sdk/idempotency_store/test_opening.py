"""A store from its address."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from lucius_azure.storage import StorageAccount
from lucius_contract.timeouts import ATTEMPT_CEILING, JOB_SLA
from lucius_sdk.idempotency_store import RETENTION, MemoryStore, StoreUnusable, open_store
from lucius_sdk.idempotency_store.azure_blob import AzureBlobStore
from lucius_sdk.idempotency_store.azure_table import AzureTableStore
from lucius_sdk.idempotency_store.redis import RedisStore
from lucius_sdk.idempotency_store.sqlite import SqliteStore
from lucius_settings.secret import Secret
from tests.sdk.idempotency_store.steps import KEY, record


def test_memory_is_opened() -> None:
    assert isinstance(open_store("memory:"), MemoryStore)


@pytest.mark.parametrize("slashes", ["sqlite://", "sqlite:///", "sqlite:"])
async def test_a_sqlite_file_is_opened_by_its_absolute_path(tmp_path: Path, slashes: str) -> None:
    """With three slashes as in a uri, with four as other tools write it, and with one."""
    store = open_store(f"{slashes}{tmp_path}/a/dedup.db")
    assert isinstance(store, SqliteStore)
    await store.write(KEY, record(), None)
    await store.close()
    assert (tmp_path / "a" / "dedup.db").exists()


@pytest.mark.parametrize("url", ["sqlite:data/dedup.db", "sqlite:./data/dedup.db"])
async def test_a_sqlite_file_is_opened_by_its_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(url)
    await store.check()
    await store.close()
    assert (tmp_path / "data" / "dedup.db").exists()


@pytest.mark.parametrize(
    "url", ["redis://host:6379/0", "rediss://:secret@host:6380", "unix:///run/redis.sock?db=2"]
)
async def test_redis_is_opened_without_being_there(url: str) -> None:
    store = open_store(url)
    assert isinstance(store, RedisStore)
    await store.close()


ACCOUNT = StorageAccount(Secret("AccountName=acme;AccountKey=c2VjcmV0"))


@pytest.mark.parametrize("table", ["dedup", "Dedup4ocr", "a" * 63])
async def test_a_table_is_opened_without_being_there(table: str) -> None:
    store = open_store(f"aztable:{table}", tables=ACCOUNT)
    assert isinstance(store, AzureTableStore)
    await store.close()


@pytest.mark.parametrize("place", ["dedup", "lucius-dedup/ocr", "a1b/of/v1.2_x/-", "a" * 63])
async def test_blobs_are_opened_without_being_there(place: str) -> None:
    store = open_store(f"azblob:{place}", blobs=ACCOUNT)
    assert isinstance(store, AzureBlobStore)
    await store.close()


async def test_an_account_may_be_one_of_identities() -> None:
    tables = StorageAccount(endpoint="https://acme.table.core.windows.net")
    blobs = StorageAccount(endpoint="https://acme.blob.core.windows.net")
    for url in ("aztable:dedup", "azblob:dedup"):
        await open_store(url, tables=tables, blobs=blobs).close()


@pytest.mark.parametrize(
    "table", ["", "ab", "a" * 64, "1abc", "a_b_c", "a-b-c", "tables", "Tables", "a/b", "a b", "äbc"]
)
def test_what_cannot_be_a_table_is_refused(table: str) -> None:
    with pytest.raises(ValueError, match="3 to 63 letters and digits, a letter first"):
        open_store(f"aztable:{table}", tables=ACCOUNT)


@pytest.mark.parametrize(
    "place",
    [
        "",
        "ab",
        "a" * 64,
        "Dedup",
        "-abc",
        "abc-",
        "a--b",
        "a_b",
        "$root",
        "/ocr",
        "dedup/",
        "dedup//a",
        "dedup/a/",
        "dedup/..",
        "dedup/./a",
        "dedup/a./b",
        "dedup/.a",
        "dedup/a b",
        "dedup/a?sig=secret",
        "dedup/" + "a" * 257,
    ],
)
def test_what_cannot_be_a_container_and_its_folder_is_refused(place: str) -> None:
    with pytest.raises(ValueError, match="3 to 63 lower-case letters") as refused:
        open_store(f"azblob:{place}", blobs=ACCOUNT)
    assert "secret" not in str(refused.value)


def test_an_account_that_is_missing_is_told_by_its_variables() -> None:
    with pytest.raises(ValueError, match="LUCIUS_TABLE_CONNECTION or LUCIUS_TABLE_ENDPOINT"):
        open_store("aztable:dedup", blobs=ACCOUNT)
    with pytest.raises(ValueError, match="LUCIUS_BLOB_CONNECTION or LUCIUS_BLOB_ENDPOINT"):
        open_store("azblob:dedup", tables=ACCOUNT)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "memory",
        "memory:x",
        "sqlite:",
        "sqlite://",
        "sqlite:///",
        "sqlite:////",
        "sqlite://relative/path",
        "sqlite:folder/",
        "sqlite::memory:",
        "redis:host",
        "postgres://:secret@host",
        "/data/dedup.db",
        "aztables:dedup",
    ],
)
def test_any_other_address_is_refused_with_what_is_allowed(url: str) -> None:
    with pytest.raises(ValueError, match=r"sqlite:///.*redis://.*aztable:.*azblob:") as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


def test_a_package_that_is_missing_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    monkeypatch.delitem(sys.modules, "lucius_sdk.idempotency_store.redis")
    with pytest.raises(StoreUnusable, match=r"lucius-sdk\[redis\]"):
        open_store("redis://host")


@pytest.mark.parametrize(
    ("url", "module", "package"),
    [
        ("aztable:dedup", "azure_table", "azure.data.tables"),
        ("azblob:dedup", "azure_blob", "azure.storage.blob"),
    ],
)
def test_a_package_of_azure_that_is_missing_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, url: str, module: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"lucius_sdk.idempotency_store.{module}")
    with pytest.raises(StoreUnusable, match=r"lucius-sdk\[azure\]"):
        open_store(url, tables=ACCOUNT, blobs=ACCOUNT)


def test_the_package_loads_no_driver() -> None:
    script = (
        "import sys, lucius_sdk.idempotency_store; print({'redis', 'azure'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


def test_records_are_kept_for_longer_than_any_directive_of_their_job() -> None:
    assert JOB_SLA + ATTEMPT_CEILING + timedelta(days=1) <= RETENTION
