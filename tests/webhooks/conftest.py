from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lucius_orchestrator.webhooks import WebhookPolicy, WebhookSender
from tests.azurite import Azurite
from tests.ledger.backends import BACKENDS, AzureTablesBackend, Clock, MemoryBackend
from tests.names import unique
from tests.webhooks.receiver import (
    HOST,
    KEY,
    LOOPBACK,
    Certificate,
    Names,
    Receiver,
    new_certificate,
)
from tests.webhooks.stage import PostgresStage, SqliteStage, Stage, TableStage


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return new_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
async def sqlite_stage(tmp_path: Path) -> AsyncIterator[Stage]:
    stage = SqliteStage(tmp_path)
    await stage.start()
    yield stage
    await stage.backend.stop()


@pytest.fixture
async def postgres_stage(postgres_uri: str) -> AsyncIterator[Stage]:
    stage = PostgresStage(postgres_uri, unique("webhooks"))
    await stage.start()
    yield stage
    await stage.backend.stop()


@pytest.fixture
async def memory_stage() -> AsyncIterator[Stage]:
    stage = TableStage(MemoryBackend(Clock()))
    await stage.start()
    yield stage
    await stage.backend.stop()


@pytest.fixture
async def azure_tables_stage(azure_storage: Azurite) -> AsyncIterator[Stage]:
    name = unique("webhooks")
    stage = TableStage(AzureTablesBackend(Clock(), azure_storage.connection, name))
    await stage.start()
    yield stage
    await stage.backend.stop()


@pytest.fixture(params=BACKENDS)
def stage(request: pytest.FixtureRequest) -> Stage:
    stage: Stage = request.getfixturevalue(f"{request.param}_stage")
    return stage


@pytest.fixture
async def receiver(stage: Stage, certificate: Certificate) -> AsyncIterator[Receiver]:
    async with Receiver(stage.clock).running(certificate) as receiver:
        yield receiver


@pytest.fixture
async def sender(stage: Stage, certificate: Certificate) -> AsyncIterator[WebhookSender]:
    policy = WebhookPolicy(frozenset({HOST}), allow_private=True)
    names = Names(LOOPBACK)
    async with WebhookSender(
        lambda _: [KEY], policy, stage.clock, ca_file=certificate.file, resolver=names
    ) as sender:
        yield sender
