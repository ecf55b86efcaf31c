"""Says that a directive was taken up, and that it is still worked on."""

from collections.abc import Callable

from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.clock import Clock
from lucius_sdk.replies.answers import Answer, ReplyError
from lucius_sdk.replies.outgoing import Outgoing
from lucius_sdk.replies.port import ReplyChannel
from lucius_sdk.replies.retrying import Pace, Retried, Retries, ignore

Until = Callable[[], float]
"""The moment, on the monotonic clock, after which it is of no use any more. It may move, and is
asked for again and again."""


class AckClient:
    """Every failure is tried again, a token that was not accepted too, as long as there is time."""

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

    async def ack(self, address: ReplyAddress, reply: Outgoing, until: Until) -> Answer | None:
        """The final answer; None if `until` passed without one. Until the attempt's deadline."""
        return await self._answered(address, reply, until)

    async def heartbeat(
        self, address: ReplyAddress, reply: Outgoing, until: Until
    ) -> Answer | None:
        """As `ack`, but only until the next heartbeat is due: that one says more."""
        return await self._answered(address, reply, until)

    async def _answered(
        self, address: ReplyAddress, reply: Outgoing, until: Until
    ) -> Answer | None:
        def left(_: ReplyError | None = None) -> float:
            return until() - self._clock.monotonic()

        if left() <= 0:
            return None
        try:
            return await self._retries.send(address, reply, left)
        except ReplyError:
            return None
