"""The registry of a process: what the environment sets counts over what its source says, and what
changes there is taken up while it runs."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from lucius_contract.routing import Mode
from lucius_orchestrator.ports.registry import Registry, Snapshot, WatchedRegistry
from lucius_orchestrator.settings import Settings


class LimitedRegistry:
    """The snapshots of another registry, with the limits that the settings name."""

    def __init__(self, registry: Registry, settings: Settings) -> None:
        self._registry = registry
        self._limits = _limits_of(settings)
        self._per_mode = _per_mode(settings)
        self._seen: Snapshot | None = None
        self._limited: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        snapshot = self._registry.snapshot()
        if self._limited is None or snapshot is not self._seen:
            per_mode = {**snapshot.defaults.max_inflight_per_mode, **self._per_mode}
            defaults = replace(snapshot.defaults, max_inflight_per_mode=per_mode, **self._limits)
            self._seen, self._limited = snapshot, replace(snapshot, defaults=defaults)
        return self._limited


class RegistryWatch:
    """Takes up what has changed, and says so: a new service needs its subscriptions."""

    def __init__(
        self,
        registry: WatchedRegistry,
        changed: Callable[[Snapshot], Awaitable[None]],
        interval: timedelta,
    ) -> None:
        self._registry = registry
        self._changed = changed
        self._interval = interval
        self._stopping = asyncio.Event()

    async def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(self._watch())
            await self._stopping.wait()
            watching.cancel()

    async def _watch(self) -> None:
        async for snapshot in self._registry.watch(self._interval):
            await self._changed(snapshot)


def _limits_of(settings: Settings) -> dict[str, Any]:
    limits = {
        "max_inflight": settings.max_inflight,
        "max_inflight_per_tenant": settings.max_inflight_per_tenant,
    }
    return {name: limit for name, limit in limits.items() if limit is not None}


def _per_mode(settings: Settings) -> dict[Mode, int]:
    limits = {Mode.DEFAULT: settings.max_inflight_default, Mode.BURST: settings.max_inflight_burst}
    return {mode: limit for mode, limit in limits.items() if limit is not None}
