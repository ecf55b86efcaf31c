"""A store from its address."""

from datetime import timedelta
from pathlib import Path

from lucius_sdk.idempotency_store.errors import StoreUnusable
from lucius_sdk.idempotency_store.memory import MemoryStore
from lucius_sdk.idempotency_store.port import DedupStore
from lucius_sdk.idempotency_store.records import RETENTION

_ALLOWED = (
    "memory: (for tests), sqlite:///absolute/path, sqlite:relative/path, "
    "redis://host:6379/0, rediss://host:6380/0 or unix:///path/to/redis.sock"
)


def open_store(url: str, *, retention: timedelta = RETENTION) -> DedupStore:
    """Nothing is read or connected before the first verb. `ValueError` for an address that is none
    of these; `StoreUnusable` where a package is missing."""
    scheme, _, rest = url.partition(":")
    if url == "memory:":
        return MemoryStore()
    if scheme == "sqlite":
        return _sqlite(rest, retention)
    if scheme in ("redis", "rediss", "unix") and rest.startswith("//"):
        return _redis(url, retention)
    # The address may hold a password in a place that nobody foresaw, so it is not repeated.
    raise ValueError(f"the address of a dedup store is one of {_ALLOWED}")


def _sqlite(rest: str, retention: timedelta) -> DedupStore:
    from lucius_sdk.idempotency_store.sqlite import SqliteStore

    # Some tools write four slashes for an absolute path; a path that begins with two is none.
    path = f"/{rest.lstrip('/')}" if rest.startswith("///") else rest
    if path in ("", ":memory:") or path.startswith("//") or path.endswith("/"):
        raise ValueError(f"sqlite: wants the path of a file: {_ALLOWED}")
    return SqliteStore(Path(path), retention)


def _redis(url: str, retention: timedelta) -> DedupStore:
    try:
        from lucius_sdk.idempotency_store.redis import RedisStore
    except ModuleNotFoundError as error:
        raise StoreUnusable("a Redis store needs: pip install 'lucius-sdk[redis]'") from error
    return RedisStore(url, retention)
