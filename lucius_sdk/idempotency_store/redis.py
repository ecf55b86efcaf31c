"""The store on Redis: shared by the processes of many machines."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from lucius_sdk.idempotency_store.errors import Conflict, StoreUnavailable
from lucius_sdk.idempotency_store.port import Stored, microseconds, next_version, system_now
from lucius_sdk.idempotency_store.records import (
    RETENTION,
    ClaimState,
    Record,
    StepKey,
    decode,
    encode,
)

_PATIENCE = timedelta(seconds=5)
_CONNECTIONS = 32
_PREFIX = "{lucius}:dedup"  # the braces keep all keys on one node of a cluster
_INDEX = f"{_PREFIX}:unreported"

_WRITE = """
local version = redis.call('HGET', KEYS[1], 'version')
if (version or '') ~= ARGV[1] then
    return 0
end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'record', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
if ARGV[6] == '' then
    redis.call('ZREM', KEYS[2], ARGV[5])
else
    redis.call('ZADD', KEYS[2], ARGV[6], ARGV[5])
end
return 1
"""


class RedisStore:
    """A record is a hash, which expires after `retention`; results that wait to be reported are in
    a sorted set beside them.

    It is as durable as its Redis: that wants `appendonly yes`, `appendfsync always` and
    `maxmemory-policy noeviction`, and a failover to a replica may lose the last writes.
    """

    def __init__(
        self,
        url: str,
        retention: timedelta = RETENTION,
        *,
        now: Callable[[], datetime] = system_now,
        patience: timedelta = _PATIENCE,
    ) -> None:
        self._client = Redis(connection_pool=_pool(url, patience.total_seconds()))
        self._write = self._client.register_script(_WRITE)
        self._retention = retention
        self._now = now
        self._is_closed = False

    async def read(self, key: StepKey) -> Stored | None:
        with self._answering():
            found = await self._client.hmget(_record_key(_member(key)), ["record", "version"])
        document, version = found
        if document is None or version is None:
            return None
        return Stored(decode(document), _text(version))

    async def write(self, key: StepKey, record: Record, expected: str | None) -> str:
        member, version = _member(key), next_version(expected, self._now())
        until = microseconds(record.until) if record.state is ClaimState.COMPLETED else ""
        kept = int(self._retention.total_seconds() * 1000)
        with self._answering():
            is_written = await self._write(
                keys=[_record_key(member), _INDEX],
                args=[expected or "", version, encode(record), kept, member, until],
            )
        if not is_written:
            raise Conflict(f"step {key.step_id} of {key.job_id} was written by another")
        return version

    async def lapsed_results(self, before: datetime, limit: int) -> list[StepKey]:
        """Forgets those whose records have expired."""
        expired = microseconds(self._now() - self._retention)
        with self._answering():
            async with self._client.pipeline(transaction=False) as pipeline:
                pipeline.zremrangebyscore(_INDEX, "-inf", f"({expired}")
                pipeline.zrangebyscore(_INDEX, "-inf", f"({microseconds(before)}", 0, limit)
                _, found = await pipeline.execute()
        return [StepKey(*json.loads(member)) for member in found]

    async def check(self) -> None:
        with self._answering():
            await self._client.ping()

    async def close(self) -> None:
        self._is_closed = True
        await self._client.aclose(close_connection_pool=True)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        if self._is_closed:
            raise StoreUnavailable("the store is closed")
        try:
            yield
        except (RedisError, OSError) as error:
            raise StoreUnavailable(f"Redis: {type(error).__name__}: {error}") from error


def _pool(url: str, patience: float) -> BlockingConnectionPool:
    """Nothing is tried again: a second try of a write that had landed would seem a conflict."""
    try:
        return BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=patience,
            socket_timeout=patience,
            socket_connect_timeout=patience,
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError:
        # What cannot be parsed may be a part of the password, so no word of it is repeated.
        raise ValueError("the address of the Redis store cannot be read") from None


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode()


def _member(key: StepKey) -> str:
    return json.dumps(key, separators=(",", ":"))


def _record_key(member: str) -> str:
    return f"{_PREFIX}:{member}"
