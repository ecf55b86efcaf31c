"""The webhooks that a deployment delivers are those of its ledger."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lucius_orchestrator.bootstrap.parts import real_world
from lucius_orchestrator.bootstrap.stores import open_ledger, open_webhook_store
from lucius_orchestrator.settings import load_settings
from tests.azurite import Azurite
from tests.ledger.backends import Clock
from tests.ledger.jobs import World
from tests.names import unique
from tests.webhooks.stage import claims


def named_tables(connection: str) -> dict[str, str]:
    name = unique("opening")
    return {
        "LUCIUS_TABLE_CONNECTION": connection,
        "LUCIUS_LEDGER_TABLE": name,
        "LUCIUS_IDEMPOTENCY_TABLE": f"{name}entries",
        "LUCIUS_JOB_INDEX_TABLE": f"{name}index",
        "LUCIUS_INFLIGHT_TABLE": f"{name}flight",
    }


@pytest.mark.parametrize("storage", ["memory", "sqlite", "azure_tables"])
async def test_a_job_that_ends_on_the_ledger_of_a_deployment_is_told(
    tmp_path: Path, request: pytest.FixtureRequest, storage: str
) -> None:
    variables = {"LUCIUS_STORAGE_BACKEND": storage, "LUCIUS_DATA_DIR": str(tmp_path)}
    if storage == "azure_tables":
        azurite: Azurite = request.getfixturevalue("azure_storage")
        variables |= named_tables(azurite.connection)
    settings, clock = load_settings(variables), Clock()
    clock.now = datetime.now(UTC) - timedelta(minutes=1)
    async with open_ledger(settings, real_world()) as ledger:
        job = await World(ledger, clock).create(callback_urls=("https://a.example",))
        await job.succeeds()
        async with open_webhook_store(settings, ledger) as store:
            (claimed,) = await claims(store)
            assert claimed.topic == "a.example"
            await store.ack([claimed])
