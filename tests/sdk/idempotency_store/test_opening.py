"""A store from its address."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from lucius_contract.timeouts import ATTEMPT_CEILING, JOB_SLA
from lucius_sdk.idempotency_store import RETENTION, MemoryStore, StoreUnusable, open_store
from lucius_sdk.idempotency_store.redis import RedisStore
from lucius_sdk.idempotency_store.sqlite import SqliteStore
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
    ],
)
def test_any_other_address_is_refused_with_what_is_allowed(url: str) -> None:
    with pytest.raises(ValueError, match=r"sqlite:///.*redis://") as refused:
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


def test_the_package_loads_no_driver() -> None:
    script = "import sys, lucius_sdk.idempotency_store; print('redis' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_records_are_kept_for_longer_than_any_directive_of_their_job() -> None:
    assert JOB_SLA + ATTEMPT_CEILING + timedelta(days=1) <= RETENTION
