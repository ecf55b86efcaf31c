"""Mistakes with how much is done at once, and with what is left to others."""

import asyncio
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from tests.conform.broken_services.attempts import Attempt
from tests.conform.broken_services.flaws.flaw import Flaw
from tests.conform.broken_services.lanes import Delivery, Room
from tests.conform.broken_services.program import Settings
from tests.conform.broken_services.sound import Service


class LimitsEachLane(Service):
    """Each lane has slots of its own."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.slots_of: dict[int, asyncio.Semaphore] = {}

    def room_of(self, _lane: int) -> Room:
        return Room(self.settings.concurrency)

    def slot(self, attempt: Attempt) -> AbstractAsyncContextManager[Any]:
        slots = asyncio.Semaphore(self.settings.concurrency)
        return self.slots_of.setdefault(attempt.delivery.lane, slots)


class TakesOneMore(Service):
    """One directive is fetched ahead, and worked on too."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(replace(settings, concurrency=settings.concurrency + 1))


class TakesTurns(Service):
    """A lock around the handler lets one directive through at a time."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(replace(settings, concurrency=1))


class FetchesAhead(Service):
    """Each lane takes all that it is given, and it waits locked for a slot."""

    def room_of(self, _lane: int) -> Room:
        return Room(sys.maxsize)


class FetchesAheadAndLetsLocksRunOut(FetchesAhead):
    """What waits for a slot is locked, and its lock is not renewed before its work is begun."""

    async def renew_lock(self, attempt: Attempt) -> None:
        if attempt.is_at_work:
            await super().renew_lock(attempt)


class AcknowledgesWhatItReceives(FetchesAhead):
    """The ACK is sent on arrival, whenever the work may begin."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.acks: dict[Attempt, asyncio.Task[None]] = {}

    async def perform(self, attempt: Attempt) -> bytes | None:
        if self.is_expired(attempt, 0.0):
            return None
        self.acks[attempt] = asyncio.create_task(super().acknowledge(attempt))
        try:
            return await super().perform(attempt)
        finally:
            self.acks.pop(attempt).cancel()

    async def acknowledge(self, attempt: Attempt) -> None:
        await asyncio.shield(self.acks[attempt])


class DropsWhatItsQueueCannotHold(FetchesAhead):
    """What waits for a slot is in a queue of fixed length, and what comes then is completed."""

    async def attend(self, delivery: Delivery) -> None:
        if len(self.attempts) < 3 * self.settings.concurrency:
            await super().attend(delivery)
        else:
            await delivery.complete()


class _Busy(Service):
    def is_busy(self) -> bool:
        at_work = sum(attempt.is_at_work for attempt in self.attempts.values())
        return at_work >= self.settings.concurrency


class LeavesAcksOutWhenBusy(_Busy):
    """With all slots at work there is no ACK, since the RESULT implies it."""

    async def acknowledge(self, attempt: Attempt) -> None:
        if not self.is_busy():
            await super().acknowledge(attempt)


class ReportsTwiceWhenBusy(_Busy):
    """With all slots at work a RESULT is sent once more, in case the first one was overlooked."""

    async def report(self, attempt: Attempt, raw: bytes) -> None:
        if self.is_busy():
            await self.send_until_answered(attempt, "RESULT", raw)
        await super().report(attempt, raw)


_AT_ONCE = ("concurrency",)
FLAWS = (
    Flaw(
        "LC-22",
        LimitsEachLane,
        _AT_ONCE,
        said="directives were worked on at once; its concurrency is 3",
    ),
    Flaw(
        "LC-22",
        TakesOneMore,
        _AT_ONCE,
        said="4 directives were worked on at once; its concurrency is 3",
    ),
    Flaw("LC-22", TakesTurns, said="fewer than its 3 directives were worked on at once"),
    Flaw(
        "LC-22",
        AcknowledgesWhatItReceives,
        ("backlog",),
        said="12 directives were acknowledged and not finished at once; its concurrency is 3",
    ),
    Flaw("LC-22", LeavesAcksOutWhenBusy, ("backlog",), said="under a backlog no ACK of job"),
    Flaw(
        "LC-22",
        DropsWhatItsQueueCannotHold,
        ("backlog",),
        said="of a backlog of 12 directives 3 were not begun",
    ),
    Flaw("LC-22", ReportsTwiceWhenBusy, ("backlog",), said="2 RESULTs of job"),
    Flaw(
        "LC-22",
        FetchesAhead,
        ("second-instance",),
        said="a second instance got 0 of the 3 directives that the first had no room for",
    ),
    Flaw(
        "LC-22",
        FetchesAheadAndLetsLocksRunOut,
        ("second-instance",),
        said="ran out before its work was begun",
    ),
)
