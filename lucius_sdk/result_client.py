"""Delivers the RESULT that was stored, until somebody has decided about it.

The orchestrator is the fence: it knows whether the attempt still counts. So what was stored is sent
also after the deadline, and for as long as it takes.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import datetime

from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.clock import Clock
from lucius_sdk.replies.answers import Answer, ReplyError, ReplyUnauthorised, Verdict
from lucius_sdk.replies.outgoing import Outgoing, outgoing_result
from lucius_sdk.replies.port import ReplyChannel
from lucius_sdk.replies.retrying import Pace, Retried, Retries, ignore


class ResultClient:
    def __init__(
        self,
        replies: ReplyChannel,
        clock: Clock,
        chance: Callable[[], float],
        *,
        retried: Retried = ignore,
        pace: Pace | None = None,
    ) -> None:
        self._clock = clock
        self._retries = Retries(replies, clock, chance, retried, pace)

    async def report(
        self,
        address: ReplyAddress,
        body: bytes,
        stop: asyncio.Event | None,
        deadline: datetime,
    ) -> Answer | None:
        """The final answer; None once `stop` is set, which also cuts off a try that is under way. A
        token that is not accepted is REFUSED after the deadline, when it is not going to be.
        `ContractError` if the bytes are no RESULT."""
        reply = outgoing_result(body)
        if stop is None:
            return await self._decided(address, reply, deadline)
        if stop.is_set():
            return None
        try:
            return await _unless(stop, self._decided(address, reply, deadline))
        except TimeoutError:
            if stop.is_set():
                return None
            raise

    async def _decided(self, address: ReplyAddress, reply: Outgoing, deadline: datetime) -> Answer:
        def left(error: ReplyError) -> float:
            if isinstance(error, ReplyUnauthorised):
                return (deadline - self._clock.now()).total_seconds()
            return math.inf

        try:
            return await self._retries.send(address, reply, left)
        except ReplyUnauthorised as error:
            return Answer(Verdict.REFUSED, detail=str(error))


async def _unless(stop: asyncio.Event, decided: Awaitable[Answer]) -> Answer | None:
    """A timeout without a time: the event makes it end now."""
    async with asyncio.timeout(None) as limit:

        def end(_: object) -> None:
            limit.reschedule(0)

        stopping = asyncio.create_task(stop.wait())
        stopping.add_done_callback(end)
        try:
            return await decided
        finally:
            stopping.remove_done_callback(end)
            stopping.cancel()
