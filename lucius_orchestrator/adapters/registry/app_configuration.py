"""The registry in Azure App Configuration: one entry per protocol, and a sentinel.

Nothing is taken up before the sentinel changes. Then all entries are read again and count together
or not at all: while one of them is wrong, or the store is away, the last good set stays. Whoever
writes entries therefore changes the sentinel last.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from lucius_orchestrator.adapters.registry.entries import Entry, Keys, read_entries
from lucius_orchestrator.adapters.registry.last_good import Kept, LastGoodCopy
from lucius_orchestrator.adapters.registry.problems import (
    FileProblem,
    RegistryError,
    RegistryUnavailable,
)
from lucius_orchestrator.domain.aggregate import StepPolicy
from lucius_orchestrator.ports.registry import Snapshot

_log = logging.getLogger("lucius_orchestrator.registry")


class Store(Protocol):
    """What `AppConfigurationStore` is to the registry."""

    keys: Keys

    async def tag(self, known: str | None) -> str | None: ...

    async def entries(self) -> list[Entry]: ...


class AppConfigurationRegistry:
    """`load()` once, then `refresh()` whenever it suits, or `watch()`.

    `default_policy` counts where a step says nothing. The load is tried again after each of the
    `pauses`. With a `copy` it works while the store is away, or holds what cannot be used.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], datetime],
        default_policy: StepPolicy | None = None,
        *,
        copy: LastGoodCopy | None = None,
        pauses: Sequence[timedelta] = (),
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._clock = clock
        self._default_policy = default_policy or StepPolicy()
        self._copy = copy
        self._pauses = pauses
        self._sleep = sleep
        self._snapshot: Snapshot | None = None
        self._tag: str | None = None
        self._has_read = False
        self._copied_at: datetime | None = None
        self._refusal: RegistryError | None = None
        self._absence: RegistryUnavailable | None = None

    async def load(self) -> Snapshot:
        """Read all entries; without them, the copy. RegistryError says why there is neither."""
        try:
            await self._read_patiently()
        except RegistryError as error:
            if self._copy is None:
                raise
            await self._fall_back(self._copy, error)
        return self.snapshot()

    def snapshot(self) -> Snapshot:
        if self._snapshot is None:
            raise RuntimeError("nothing was loaded yet")
        return self._snapshot

    @property
    def has_sentinel(self) -> bool:
        """Without one, no change would ever be taken up."""
        return self._tag is not None

    @property
    def error(self) -> RegistryError | None:
        """Why what the store holds is not in force, or not known to be; None when it is."""
        error = self._absence or self._refusal
        if error is None or self._copy is None or self._copied_at is None:
            return error
        at = self._copied_at.isoformat(timespec="seconds")
        return _with_copy(error, self._copy, f"the copy of {at} is in force")

    async def refresh(self) -> bool:
        """Reload if the sentinel has changed since the last try; whether there is a new set. What
        does not work leaves the last good set in force."""
        try:
            return await self._read()
        except RegistryUnavailable as error:
            self._is_away(error)
        except RegistryError as error:
            self._is_refused(error)
        return False

    async def watch(
        self,
        interval: timedelta,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> AsyncIterator[Snapshot]:
        """Every new set, from now on."""
        while True:
            await sleep(interval.total_seconds())
            if await self.refresh():
                yield self.snapshot()

    async def _read_patiently(self) -> None:
        for pause in self._pauses:
            try:
                await self._read()
            except RegistryUnavailable:
                await self._sleep(pause.total_seconds())
            else:
                return
        await self._read()

    async def _read(self) -> bool:
        """The sentinel is read first: a change that comes while the entries are read is seen at the
        next look."""
        tag = await self._store.tag(self._tag)
        is_new = tag != self._tag or not self._has_read
        entries = await self._store.entries() if is_new else []
        self._is_back()
        if is_new:
            self._tag, self._has_read = tag, True
            if tag is None:
                _log.warning("registry.unwatched", extra={"sentinel": self._store.keys.sentinel})
            await self._take(entries)
        return is_new

    async def _take(self, entries: Sequence[Entry]) -> None:
        kept = Kept(self._clock(), tuple(entries))
        self._snapshot = read_entries(kept.entries, self._store.keys, self._default_policy)
        self._refusal = self._copied_at = None
        _log.info("registry.loaded", extra={"protocols": sorted(self._snapshot.protocols)})
        if self._copy is not None:
            await asyncio.to_thread(self._copy.keep, kept)

    async def _fall_back(self, copy: LastGoodCopy, error: RegistryError) -> None:
        kept = await asyncio.to_thread(copy.read)
        if kept is None:
            raise _with_copy(error, copy, "there is no copy that could be used instead") from error
        try:
            self._snapshot = read_entries(kept.entries, self._store.keys, self._default_policy)
        except RegistryError as refusal:
            _log.warning("registry.copy_failed", extra={"error": str(refusal)})
            raise _with_copy(error, copy, "the copy cannot be used either") from error
        self._copied_at = kept.read_at
        _log.warning("registry.copy_used", extra={"read_at": kept.read_at.isoformat()})
        if isinstance(error, RegistryUnavailable):
            self._is_away(error)
        else:
            self._is_refused(error)

    def _is_away(self, error: RegistryUnavailable) -> None:
        if self._absence is None or self._absence.problems != error.problems:
            _log.warning("registry.away", extra={"error": str(error)})
        self._absence = error

    def _is_back(self) -> None:
        if self._absence is not None:
            _log.info("registry.back")
        self._absence = None

    def _is_refused(self, error: RegistryError) -> None:
        if self._refusal is None or self._refusal.problems != error.problems:
            _log.error("registry.refused", extra={"problems": list(map(str, error.problems))})
        self._refusal = error


def _with_copy(error: RegistryError, copy: LastGoodCopy, remark: str) -> RegistryError:
    """The error, with what is to be said of the copy."""
    return RegistryError([*error.problems, FileProblem(str(copy.file), None, "", remark)])
