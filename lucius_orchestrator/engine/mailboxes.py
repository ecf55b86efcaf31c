"""Events of one job wait for each other, and those that waited together are handled together.

A service's ACK and RESULT often arrive while the commit before them is on its way to the disk. Who
comes first works, with all that have gathered by then; the others are told the outcome. Nothing
depends on it: the ledger's versions decide, here as between processes.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

from lucius_orchestrator.domain.events import Event
from lucius_orchestrator.ports.ledger import Claim

Answer = TypeVar("Answer")
_AT_ONCE = 16


class _YourTurn:
    """Told to a letter that waited: nobody works for this job, so do it yourself."""


_YOUR_TURN: Final = _YourTurn()


class Letter(Generic[Answer]):
    """Events that one sender brings at once."""

    __slots__ = ("answer", "claim", "events")

    def __init__(self, events: Sequence[Event], claim: Claim | None) -> None:
        self.events = events
        self.claim = claim
        self.answer: asyncio.Future[Answer | _YourTurn] | None = None


Work = Callable[[str, Sequence[Letter[Answer]]], Awaitable[Sequence[Answer]]]


class Mailboxes(Generic[Answer]):
    """`work` gets the letters of one job in the order in which they came, at most one of them with
    a claim, and answers each. It is begun when `ready` returns: the later, the more are together.
    """

    def __init__(self, work: Work[Answer], ready: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._ready = ready
        self._boxes: dict[str, deque[Letter[Answer]]] = {}

    async def send(
        self, job_id: str, events: Sequence[Event], claim: Claim | None = None
    ) -> Answer:
        letter: Letter[Answer] = Letter(events, claim)
        box = self._boxes.get(job_id)
        if box is None:
            self._boxes[job_id] = deque()
        else:
            answer = await self._wait(job_id, box, letter)
            if not isinstance(answer, _YourTurn):
                return answer
        return await self._deliver(job_id, letter)

    async def _wait(
        self, job_id: str, box: deque[Letter[Answer]], letter: Letter[Answer]
    ) -> Answer | _YourTurn:
        letter.answer = asyncio.get_running_loop().create_future()
        box.append(letter)
        try:
            return await letter.answer
        except asyncio.CancelledError:
            if letter in box:
                box.remove(letter)
            elif _has_the_turn(letter):
                self._pass_on(job_id)
            raise

    async def _deliver(self, job_id: str, letter: Letter[Answer]) -> Answer:
        batch = [letter]
        try:
            await self._ready()
            batch = self._batch(job_id, letter)
            answers = await self._work(job_id, batch)
        except Exception as error:
            for other in batch[1:]:
                _tell(other, error)
            raise
        except BaseException:
            self._boxes[job_id].extendleft(reversed(batch[1:]))
            raise
        else:
            for other, answer in zip(batch[1:], answers[1:], strict=True):
                _tell(other, answer)
            return answers[0]
        finally:
            self._pass_on(job_id)

    def _batch(self, job_id: str, first: Letter[Answer]) -> list[Letter[Answer]]:
        box, batch, claims = self._boxes[job_id], [first], first.claim is not None
        while box and len(batch) < _AT_ONCE:
            if box[0].claim is not None:
                if claims:
                    break
                claims = True
            batch.append(box.popleft())
        return batch

    def _pass_on(self, job_id: str) -> None:
        box = self._boxes[job_id]
        while box:
            following = box.popleft()
            if following.answer is not None and not following.answer.done():
                following.answer.set_result(_YOUR_TURN)
                return
        del self._boxes[job_id]


def _has_the_turn(letter: Letter[Answer]) -> bool:
    answer = letter.answer
    if answer is None or not answer.done() or answer.cancelled():
        return False
    return answer.exception() is None and answer.result() is _YOUR_TURN


def _tell(letter: Letter[Answer], outcome: Answer | Exception) -> None:
    if letter.answer is None or letter.answer.done():  # its sender was cancelled
        return
    if isinstance(outcome, Exception):
        letter.answer.set_exception(outcome)
    else:
        letter.answer.set_result(outcome)
