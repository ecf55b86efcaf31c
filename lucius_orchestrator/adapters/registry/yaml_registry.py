"""The registry in a folder: `protocols/*.yaml`, `defaults.yaml`, `tenants.yaml`.

What the folder does not have is taken from what is shipped; a folder `protocols/` replaces all of
the shipped protocols. The files count together or not at all: while one of them is wrong, the last
good set stays.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from lucius_orchestrator.adapters.registry.problems import RegistryError
from lucius_orchestrator.adapters.registry.snapshots import read_snapshot
from lucius_orchestrator.adapters.registry.sources import Sources, read_sources
from lucius_orchestrator.domain.aggregate import StepPolicy
from lucius_orchestrator.ports.registry import Snapshot

_log = logging.getLogger("lucius_orchestrator.registry")


class YamlRegistry:
    """`load()` once, then `refresh()` whenever it suits, or `watch()`.

    `default_policy` counts where a step says nothing. The same problems are told once.
    """

    def __init__(self, folder: Path | None, default_policy: StepPolicy | None = None) -> None:
        self._folder = folder
        self._default_policy = default_policy or StepPolicy()
        self._tried: Sources | None = None
        self._snapshot: Snapshot | None = None
        self._own_protocols = False
        self._error: RegistryError | None = None

    def load(self) -> Snapshot:
        """Read all files; RegistryError names everything that is wrong with any of them."""
        return self._take(self._read())

    def snapshot(self) -> Snapshot:
        if self._snapshot is None:
            raise RuntimeError("nothing was loaded yet")
        return self._snapshot

    @property
    def error(self) -> RegistryError | None:
        """Why the files, as they last were, are not in force; None when they are."""
        return self._error

    def reload(self) -> RegistryError | None:
        """Read all files again. If they are wrong, answer why and keep the last good set."""
        return self._try(self._read())

    def refresh(self) -> bool:
        """Reload if a file has changed since the last try; whether there is a new set."""
        sources = self._read()
        return sources != self._tried and self._try(sources) is None

    async def watch(
        self,
        interval: timedelta,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> AsyncIterator[Snapshot]:
        """Every new set, from now on.

        Files that changed are taken up once two looks in a row found them the same: who writes
        several of them, or replaces one, is not caught in the middle.
        """
        before = self._tried
        while True:
            await sleep(interval.total_seconds())
            sources = self._read()
            stable, before = sources == before, sources
            if stable and sources != self._tried and self._try(sources) is None:
                yield self.snapshot()

    def _read(self) -> Sources:
        return read_sources(self._folder, self._own_protocols)

    def _take(self, sources: Sources) -> Snapshot:
        self._tried = sources
        self._snapshot = read_snapshot(sources.files, self._default_policy)
        self._own_protocols = sources.own_protocols
        self._error = None
        _log.info("registry.loaded", extra={"protocols": sorted(self._snapshot.protocols)})
        return self._snapshot

    def _try(self, sources: Sources) -> RegistryError | None:
        told = self._error
        try:
            self._take(sources)
        except RegistryError as error:
            self._error = error
            if told is None or told.problems != error.problems:
                _log.error("registry.refused", extra={"problems": list(map(str, error.problems))})
        return self._error
