"""Delivers the RESULT that was stored, until somebody has decided about it.

The orchestrator is the fence: it knows whether the attempt still counts. So what was stored is sent
also after the deadline, and for as long as it takes.
"""

import math
from collections.abc import Callable
from datetime import datetime

from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.clock import Clock
from lucius_sdk.replies.answers import Answer, ReplyError, ReplyUnauthorised, Verdict
from lucius_sdk.replies.outgoing import outgoing_result
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

    async def report(self, address: ReplyAddress, body: bytes, deadline: datetime) -> Answer:
        """The final answer. Whoever must not wait any longer cancels it. A token that is not
        accepted is REFUSED after the deadline, when it is not going to be. `ContractError` if the
        bytes are no RESULT."""

        def left(error: ReplyError) -> float:
            if isinstance(error, ReplyUnauthorised):
                return (deadline - self._clock.now()).total_seconds()
            return math.inf

        reply = outgoing_result(body)
        try:
            return await self._retries.send(address, reply, left)
        except ReplyUnauthorised as error:
            return Answer(Verdict.REFUSED, detail=str(error))
