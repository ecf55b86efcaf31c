"""Registries on the double of App Configuration, with the real client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from lucius_azure.app_configuration import open_app_configuration
from lucius_orchestrator.adapters.registry.app_configuration import AppConfigurationRegistry
from lucius_orchestrator.adapters.registry.app_configuration_store import (
    CLIENT_OPTIONS,
    AppConfigurationStore,
)
from lucius_orchestrator.adapters.registry.entries import Keys
from lucius_orchestrator.domain.aggregate import StepPolicy
from lucius_settings.secret import Secret
from tests.registry.app_configuration_double import AppConfiguration

KEYS = Keys("lucius:", "lucius:sentinel")
NOW = datetime(2026, 11, 16, 9, 0, 0, tzinfo=UTC)
LIMIT = timedelta(seconds=20)


@asynccontextmanager
async def opened(
    double: AppConfiguration,
    policy: StepPolicy | None = None,
    *,
    label: str | None = None,
    keys: Keys = KEYS,
    limit: timedelta = LIMIT,
    **more: Any,
) -> AsyncIterator[AppConfigurationRegistry]:
    """Not yet loaded; `more` is the registry's."""
    connection = Secret(double.connection)
    async with open_app_configuration(connection, None, **CLIENT_OPTIONS) as client:
        store = AppConfigurationStore(client, double.endpoint, keys, label, limit)
        yield AppConfigurationRegistry(store, lambda: NOW, policy, **more)


@asynccontextmanager
async def loaded(double: AppConfiguration, **how: Any) -> AsyncIterator[AppConfigurationRegistry]:
    async with opened(double, **how) as registry:
        await registry.load()
        yield registry


def put(double: AppConfiguration, *protocols: str, label: str | None = None) -> None:
    """Each below its own id, and the sentinel after all of them."""
    for text in protocols:
        double.put(f"{KEYS.protocols}{id_of(text)}", text, label)
    double.touch(label=label)


def id_of(protocol: str) -> str:
    """What stands in its first line, right or wrong."""
    return protocol.partition("\n")[0].partition("protocol_id: ")[2] or "nameless"
