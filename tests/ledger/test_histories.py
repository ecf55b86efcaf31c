"""What two processes do to one store in any order is what the model says."""

import itertools
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.azurite import Azurite
from tests.ledger.backends import (
    AzureTablesBackend,
    Backend,
    Clock,
    MemoryBackend,
    PostgresBackend,
    SqliteBackend,
)
from tests.ledger.histories import Histories, Opener
from tests.names import unique
from tests.runner.tiers import examples


def play(open_backend: Opener, in_full: int) -> None:
    machine = type("LedgerHistories", (Histories,), {"open_backend": staticmethod(open_backend)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples(in_full),
            stateful_step_count=30,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_random_histories_on_memory() -> None:
    async def open_backend(clock: Clock) -> Backend:
        backend = MemoryBackend(clock)
        await backend.start()
        return backend

    play(open_backend, 60)


def test_random_histories_on_sqlite() -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = itertools.count(1)

        async def open_backend(clock: Clock) -> Backend:
            place = Path(folder, str(next(names)))
            place.mkdir()
            backend = SqliteBackend(clock, place)
            await backend.start()
            return backend

        play(open_backend, 40)


def test_random_histories_on_postgres(postgres_uri: str) -> None:
    async def open_backend(clock: Clock) -> Backend:
        backend = PostgresBackend(clock, postgres_uri, unique("histories"))
        await backend.start()
        return backend

    play(open_backend, 15)


def test_random_histories_on_azure_tables(azure_storage: Azurite) -> None:
    async def open_backend(clock: Clock) -> Backend:
        name = unique("histories")
        backend = AzureTablesBackend(clock, azure_storage.connection, name)
        await backend.start()
        return backend

    play(open_backend, 3)
