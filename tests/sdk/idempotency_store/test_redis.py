"""Redis: away, slow, behind a password, or without what it was told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import redis

from lucius_sdk.idempotency_store import (
    RETENTION,
    ClaimState,
    Conflict,
    StoreUnavailable,
)
from lucius_sdk.idempotency_store.redis import RedisStore
from lucius_sdk.testing.clock import FakeClock
from tests.runner.deadlines import DEADLINE
from tests.sdk.idempotency_store.backends import LONG, RedisBackend, redis_server
from tests.sdk.idempotency_store.steps import KEY, START, key, record

PASSWORD = "open sesame"  # noqa: S105
SOON = timedelta(milliseconds=50)


@asynccontextmanager
async def opened(url: str, retention: timedelta = RETENTION) -> AsyncIterator[RedisStore]:
    store = RedisStore(url, retention, now=FakeClock(START).now, patience=LONG)
    try:
        yield store
    finally:
        await store.close()


async def test_a_record_expires_after_its_retention(redis_backend: RedisBackend) -> None:
    async with opened(redis_backend.url) as store:
        await store.write(KEY, record(), None)
        with redis.Redis.from_url(redis_backend.url) as client:
            (name,) = client.keys("*job*")
            left = client.pttl(name)
    milliseconds = RETENTION.total_seconds() * 1000
    assert milliseconds - 60_000 < left <= milliseconds


async def test_every_write_keeps_the_record_for_longer(redis_backend: RedisBackend) -> None:
    async with opened(redis_backend.url) as store:
        version = await store.write(KEY, record(), None)
        with redis.Redis.from_url(redis_backend.url) as client:
            (name,) = client.keys("*job*")
            client.pexpire(name, 60_000)
            await store.write(KEY, record(epoch=2), version)
            assert client.pttl(name) > 60_000


async def test_results_whose_records_expired_are_forgotten(
    redis_backend: RedisBackend, clock: FakeClock
) -> None:
    store = redis_backend.open()
    await store.write(key(1), record(ClaimState.COMPLETED), None)
    clock.advance(60)
    await store.write(key(2), record(ClaimState.COMPLETED, until=clock.now()), None)
    clock.advance(RETENTION.total_seconds())
    assert await store.lapsed_results(clock.now(), 9) == [key(1), key(2)]
    clock.advance(0.001)
    assert await store.lapsed_results(clock.now(), 9) == []
    await store.close()


async def test_all_keys_are_on_one_node_of_a_cluster(redis_backend: RedisBackend) -> None:
    async with opened(redis_backend.url) as store:
        await store.write(KEY, record(ClaimState.COMPLETED), None)
        with redis.Redis.from_url(redis_backend.url) as client:
            names = client.keys("*")
    assert len(names) == 2
    assert all(name.startswith(b"{lucius}:") for name in names)


async def test_a_script_that_redis_has_forgotten_is_sent_again(
    redis_backend: RedisBackend,
) -> None:
    async with opened(redis_backend.url) as store:
        version = await store.write(KEY, record(), None)
        with redis.Redis.from_url(redis_backend.url) as client:
            client.script_flush()
        await store.write(KEY, record(epoch=2), version)


async def test_a_redis_that_is_away_is_unavailable_until_it_is_back(tmp_path: Path) -> None:
    socket = tmp_path / "redis.sock"
    async with opened(f"unix://{socket}") as store:
        with pytest.raises(StoreUnavailable):
            await store.check()
        with redis_server() as real:
            socket.symlink_to(real)
            await store.write(KEY, record(), None)
        with pytest.raises(StoreUnavailable):
            await store.read(KEY)
        with redis_server() as real:
            socket.unlink()
            socket.symlink_to(real)
            await store.check()


async def test_a_redis_that_hangs_is_unavailable_in_time(tmp_path: Path) -> None:
    hanging = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await hanging.wait()
        writer.close()

    server = await asyncio.start_unix_server(hang, tmp_path / "redis.sock")
    store = RedisStore(f"unix://{tmp_path}/redis.sock", patience=SOON)
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(StoreUnavailable):
            await store.write(KEY, record(), None)
        await store.close()
    hanging.set()
    server.close()
    await server.wait_closed()


async def test_a_write_is_tried_once(redis_backend: RedisBackend, tmp_path: Path) -> None:
    """A second try of one that had landed would seem a conflict."""
    sent = 0
    upstream = redis_backend.url.removeprefix("unix://")

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Cuts the connection when the script was run, before its answer."""
        nonlocal sent
        from_redis, to_redis = await asyncio.open_unix_connection(upstream)
        while asked := await reader.read(65536):
            to_redis.write(asked)
            answer = await from_redis.read(65536)
            if b"EVALSHA" in asked and not answer.startswith(b"-NOSCRIPT"):
                sent += 1
                break
            writer.write(answer)
        to_redis.close()
        writer.close()

    server = await asyncio.start_unix_server(forward, tmp_path / "proxy.sock")
    async with opened(f"unix://{tmp_path}/proxy.sock") as store:
        with pytest.raises(StoreUnavailable):
            await store.write(KEY, record(), None)
    server.close()
    assert sent == 1
    async with opened(redis_backend.url) as store:
        with pytest.raises(Conflict):
            await store.write(KEY, record(), None)


async def test_the_password_is_never_in_an_error() -> None:
    with redis_server("--requirepass", PASSWORD) as socket:
        async with opened(f"unix://:wrong-{PASSWORD.split()[0]}@{socket}") as store:
            with pytest.raises(StoreUnavailable) as caught:
                await store.check()
        assert "wrong-open" not in f"{caught.value!r} {caught.value.__cause__!r}"
        async with opened(f"unix://:open%20sesame@{socket}") as store:
            await store.write(KEY, record(), None)
    with pytest.raises(ValueError, match="cannot be read") as refused:
        RedisStore("redis://:open/sesame@redis:6379/0")
    assert "open" not in str(refused.value)
    assert refused.value.__cause__ is None
