"""What keeps house among artifacts: collections, the delivery of events, gauges."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from lucius_artifacts.events import NAMESPACE
from lucius_orchestrator.bootstrap.artifacts import catalogue_file
from lucius_orchestrator.bootstrap.collecting import Collections
from lucius_orchestrator.bootstrap.parts import After, Part
from lucius_orchestrator.bootstrap.process import Process
from lucius_orchestrator.bootstrap.stores import conninfo_of
from lucius_orchestrator.outbox.artifact_events import SETTINGS, to_nobody, to_topic
from lucius_orchestrator.settings import CatalogueBackend, Settings
from lucius_outbox.dispatcher import Dispatcher
from lucius_outbox.sqlite.store import SqliteStore
from lucius_outbox.store import Store

_POOL_SIZE = 4


@asynccontextmanager
async def open_artifact_parts(process: Process) -> AsyncIterator[Sequence[Part]]:
    artifacts, settings = process.artifacts, process.settings
    if artifacts is None:
        yield ()
        return
    parts: list[Part] = [process.observation.artifact_gauges(artifacts.catalogue)]
    if settings.artifacts.interval:
        parts.append(
            Collections(artifacts.collector, artifacts.telemetry, settings.artifacts.interval)
        )
    if settings.artifacts.catalogue is CatalogueBackend.MEMORY:
        yield parts
        return
    async with _open_events(settings) as store:
        yield [*parts, _delivery(process, store)]


def _open_events(settings: Settings) -> AbstractAsyncContextManager[Store]:
    """What transactions of the catalogue have enqueued."""
    if settings.artifacts.catalogue is CatalogueBackend.SQLITE:
        return SqliteStore(catalogue_file(settings), NAMESPACE)
    return _open_postgres(settings)


@asynccontextmanager
async def _open_postgres(settings: Settings) -> AsyncIterator[Store]:
    from psycopg_pool import AsyncConnectionPool

    from lucius_outbox.postgres.store import PostgresStore

    pool = AsyncConnectionPool(
        conninfo_of(settings),
        kwargs={"autocommit": True},
        min_size=1,
        max_size=_POOL_SIZE,
        open=False,
    )
    async with pool:
        yield PostgresStore(pool, NAMESPACE)


def _delivery(process: Process, store: Store) -> Part:
    topic, metrics = process.settings.artifacts.events_topic, process.observation.metrics
    if topic is None or process.bus is None:
        return Dispatcher(store, to_nobody, SETTINGS, metrics)
    publish = to_topic(process.bus.opened.bus, topic)
    # A topic that is not there yet would refuse them.
    return After(process.bus.keeper.settled, Dispatcher(store, publish, SETTINGS, metrics))
