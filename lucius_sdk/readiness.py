"""Whether what a service needs is there, looked at in the background: who asks never waits."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from lucius_logs.masking import shown_text
from lucius_outbox.telemetry import EventInfo
from lucius_sdk.clock import Clock

_log = logging.getLogger("lucius_sdk")

INTERVAL = 2.0
PATIENCE = 3.0
_FAREWELL = 1.0
EVENTS: tuple[EventInfo, ...] = (
    EventInfo("health.lost", "WARNING", ("check", "detail"), "Something needed does not answer."),
    EventInfo("health.found", "INFO", ("check",), "It answers, for the first time or again."),
)

Look = Callable[[], Awaitable[None]]


class Check(NamedTuple):
    """One thing that the service cannot work without."""

    name: str
    ok: bool
    detail: str


class Readiness:
    """Looks at each thing every `INTERVAL` seconds. What raises is not there; what has not answered
    for `PATIENCE` seconds counts as away until it does: it is not asked a second time meanwhile,
    since the first question may hold a thread or a connection."""

    def __init__(self, looks: Mapping[str, Look], clock: Clock) -> None:
        self._looks = looks
        self._clock = clock
        self._checks = {name: Check(name, False, "not looked at yet") for name in looks}
        self._told: dict[str, bool] = {}
        self._asked: dict[str, asyncio.Task[None]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def checks(self) -> list[Check]:
        return list(self._checks.values())

    def start(self) -> None:
        watching = (self._watch(name, look) for name, look in self._looks.items())
        self._tasks = [asyncio.create_task(each) for each in watching]

    async def stop(self) -> None:
        tasks = [*self._tasks, *self._asked.values()]
        for task in tasks:
            task.cancel()
        # What does not let itself be cancelled is left behind: stopping must not wait for it.
        if tasks:
            await asyncio.wait(tasks, timeout=_FAREWELL)

    async def _watch(self, name: str, look: Look) -> None:
        while True:
            self._take(await self._look(name, look))
            await self._clock.sleep(INTERVAL)

    async def _look(self, name: str, look: Look) -> Check:
        asked = self._asked.get(name)
        if asked is None:
            asked = self._asked[name] = asyncio.create_task(_asking(look))
        late = asyncio.create_task(self._clock.sleep(PATIENCE))
        try:
            await asyncio.wait({asked, late}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            late.cancel()
        if not asked.done():
            return Check(name, False, f"no answer for {PATIENCE:g} s")
        del self._asked[name]
        return _result(name, asked)

    def _take(self, check: Check) -> None:
        self._checks[check.name] = check
        if self._told.get(check.name) != check.ok:
            self._told[check.name] = check.ok
            _tell(check)


async def _asking(look: Look) -> None:
    await look()


def _result(name: str, asked: "asyncio.Task[None]") -> Check:
    if asked.cancelled():
        return Check(name, False, "the look was cancelled")
    error = asked.exception()
    if error is None:
        return Check(name, True, "answers")
    return Check(name, False, shown_text(f"{type(error).__name__}: {error}"))


def _tell(check: Check) -> None:
    if check.ok:
        _log.info("health.found", extra={"check": check.name})
    else:
        _log.warning("health.lost", extra={"check": check.name, "detail": check.detail})
