"""One event of a job at a time within a process.

Nothing depends on it: the ledger's versions decide between processes. It saves the work of
decisions that would lose, since a service's ACK and RESULT often arrive together.
"""

import asyncio
from collections import deque
from types import TracebackType


class Turns:
    """`async with turns.of(job_id)`: others of the same job wait, in order."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def of(self, job_id: str) -> "Turn":
        return Turn(self._waiting, job_id)


class Turn:
    __slots__ = ("_job_id", "_waiting")

    def __init__(self, waiting: dict[str, deque[asyncio.Future[None]]], job_id: str) -> None:
        self._waiting = waiting
        self._job_id = job_id

    async def __aenter__(self) -> None:
        queue = self._waiting.get(self._job_id)
        if queue is None:
            self._waiting[self._job_id] = deque()
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._pass_on()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        queue = self._waiting[self._job_id]
        while queue:
            following = queue.popleft()
            if not following.done():
                following.set_result(None)
                return
        del self._waiting[self._job_id]
