"""Sending one reply as often as it takes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from lucius_contract.messages import MessageType
from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.clock import Clock
from lucius_sdk.replies.answers import Answer, ReplyError, ReplyUnavailable
from lucius_sdk.replies.outgoing import Outgoing
from lucius_sdk.replies.port import ReplyChannel

Left = Callable[[ReplyError], float]
"""For how many more seconds a reply that met this error is worth sending."""

Retried = Callable[[MessageType, ReplyError], object]
"""Is told of each failure after which there will be another try."""

_MOST_DOUBLINGS = 32
_NO_TIME = 0.001


def ignore(type: MessageType, error: ReplyError) -> None:
    """For those who do not ask."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between tries: from `first`, doubled each time, to `longest`, of which chance takes
    away up to one half. A server that asks for more time gets it, up to `longest_asked`, and up to
    a quarter more, so that those whom it sent away together do not come back together."""

    first: float = 0.2
    longest: float = 30.0
    longest_asked: float = 300.0

    def wait(self, failures: int, asked: float | None, chance: float) -> float:
        doubled = self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)
        backoff = min(doubled, self.longest) * (1 - chance / 2)
        if asked is None:
            return backoff
        return max(backoff, min(asked, self.longest_asked) * (1 + chance / 4))


class Retries:
    """`chance` gives numbers from 0 to 1."""

    def __init__(
        self,
        replies: ReplyChannel,
        clock: Clock,
        chance: Callable[[], float],
        retried: Retried = ignore,
        pace: Pace | None = None,
    ) -> None:
        self._replies = replies
        self._clock = clock
        self._chance = chance
        self._retried = retried
        self._pace = pace or Pace()

    async def send(self, address: ReplyAddress, reply: Outgoing, left: Left) -> Answer:
        """The final answer, or the last error when there is no time left. A try that is under way
        then is still waited for: it ends soon, and what it says may be good to know."""
        one_try = partial(self._replies.send, address, reply)
        try:
            return await one_try()  # nearly always enough, and far cheaper than a series
        except ReplyError as error:
            series = _Series(one_try, left, error)
        retrying = AsyncRetrying(
            sleep=self._clock.sleep,
            retry=retry_if_exception_type(ReplyError),
            wait=partial(self._wait, series),
            stop=lambda _: series.is_over(),
            before_sleep=lambda _: self._tell(reply, series),
            reraise=True,
        )
        return await retrying(series.next)

    def _wait(self, series: "_Series", state: RetryCallState) -> float:
        asked = series.failed.retry_after if isinstance(series.failed, ReplyUnavailable) else None
        wait = self._pace.wait(state.attempt_number, asked, self._chance())
        return min(wait, max(series.left(), 0.0))

    def _tell(self, reply: Outgoing, series: "_Series") -> None:
        self._retried(reply.type, series.failed)


class _Series:
    """Tries of which the first was made already. `failed` is what the last one met."""

    def __init__(
        self, one_try: Callable[[], Awaitable[Answer]], left: Left, failed: ReplyError
    ) -> None:
        self._one_try = one_try
        self._left = left
        self.failed = failed
        self._is_first = True

    def left(self) -> float:
        return self._left(self.failed)

    def is_over(self) -> bool:
        return self.left() < _NO_TIME

    async def next(self) -> Answer:
        """Nothing is sent if the time ran out while it was waited."""
        if self._is_first or self.is_over():
            self._is_first = False
            raise self.failed
        try:
            return await self._one_try()
        except ReplyError as error:
            self.failed = error
            raise
