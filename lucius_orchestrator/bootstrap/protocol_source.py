"""Where protocols come from, by what the settings name: files, or Azure App Configuration."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import NamedTuple

from lucius_orchestrator.adapters.registry.app_configuration import AppConfigurationRegistry, Store
from lucius_orchestrator.adapters.registry.entries import Keys
from lucius_orchestrator.adapters.registry.last_good import LastGoodCopy
from lucius_orchestrator.adapters.registry.problems import RegistryUnavailable
from lucius_orchestrator.adapters.registry.yaml_registry import YamlRegistry
from lucius_orchestrator.ports.registry import Snapshot, WatchedRegistry
from lucius_orchestrator.settings import Settings
from lucius_settings.app_configuration import endpoint_of

FILES_INTERVAL = timedelta(seconds=5)
START_PAUSES = (timedelta(seconds=1), timedelta(seconds=3))
"""Between the tries of a start: a short failure of App Configuration shall not end it."""


class OpenRegistry(NamedTuple):
    """`interval` is how often the source is looked at."""

    registry: WatchedRegistry
    interval: timedelta


class Found(NamedTuple):
    """`has_sentinel` is false where changes would never be noticed."""

    snapshot: Snapshot
    has_sentinel: bool = True


@asynccontextmanager
async def open_registry(
    settings: Settings, clock: Callable[[], datetime]
) -> AsyncIterator[OpenRegistry]:
    """For a process that serves: loaded, from the last good copy if need be. `RegistryError`."""
    if not settings.uses_app_configuration:
        files = YamlRegistry(settings.protocols_dir, settings.step_policy)
        files.load()
        yield OpenRegistry(files, FILES_INTERVAL)
        return
    async with _open_store(settings) as store:
        registry = AppConfigurationRegistry(
            store, clock, settings.step_policy, copy=copy_of(settings), pauses=START_PAUSES
        )
        await registry.load()
        yield OpenRegistry(registry, settings.app_configuration_refresh)


async def read_once(settings: Settings, clock: Callable[[], datetime]) -> Found:
    """What the source holds now; no copy is used, and none is made. `RegistryError`."""
    if not settings.uses_app_configuration:
        return Found(YamlRegistry(settings.protocols_dir, settings.step_policy).load())
    async with _open_store(settings) as store:
        registry = AppConfigurationRegistry(store, clock, settings.step_policy)
        return Found(await registry.load(), registry.has_sentinel)


def place_of(settings: Settings) -> str:
    """Where protocols come from, for people."""
    if settings.uses_app_configuration:
        label = settings.app_configuration_label
        return _address(settings) + (f" (label {label})" if label else "")
    return "shipped" if settings.protocols_dir is None else str(settings.protocols_dir)


def copy_of(settings: Settings) -> LastGoodCopy:
    origin = (
        _address(settings),
        settings.app_configuration_prefix,
        settings.app_configuration_label or "",
    )
    return LastGoodCopy(settings.data_dir / "app-configuration.json", origin)


@asynccontextmanager
async def _open_store(settings: Settings) -> AsyncIterator[Store]:
    try:
        from lucius_azure.app_configuration import open_app_configuration
        from lucius_orchestrator.adapters.registry.app_configuration_store import (
            CLIENT_OPTIONS,
            AppConfigurationStore,
        )
    except ModuleNotFoundError as error:
        reason = "App Configuration needs: pip install 'lucius-sdk[azure]'"
        raise RegistryUnavailable(_address(settings), reason) from error
    keys = Keys(settings.app_configuration_prefix, settings.app_configuration_sentinel)
    async with open_app_configuration(
        settings.app_configuration_connection,
        settings.app_configuration_endpoint,
        **CLIENT_OPTIONS,
    ) as client:
        yield AppConfigurationStore(
            client, _address(settings), keys, settings.app_configuration_label
        )


def _address(settings: Settings) -> str:
    if settings.app_configuration_connection is not None:
        return endpoint_of(settings.app_configuration_connection)
    assert settings.app_configuration_endpoint is not None, "App Configuration is used"
    return settings.app_configuration_endpoint
