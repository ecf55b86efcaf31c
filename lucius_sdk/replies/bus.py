"""Replies on the reply topic of the directive's lane.

What waits for a lane leaves together: while one batch is on its way, the next one gathers.
"""

import asyncio
from typing import NamedTuple

from lucius_bus.port import Bus, BusError, BusMessage, PublishRefused
from lucius_contract.routing import reply_topic
from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.replies.answers import Answer, ReplyUnavailable, Verdict
from lucius_sdk.replies.outgoing import Outgoing

_SENT = Answer(Verdict.SENT)
_Errors = dict[tuple[str, bytes], BusError]


class _Letter(NamedTuple):
    message: BusMessage
    answer: asyncio.Future[Answer]


class _Lane:
    """One task publishes for as long as letters come, so that a lane at rest costs nothing."""

    def __init__(self, bus: Bus, topic: str) -> None:
        self._bus = bus
        self._topic = topic
        self._waiting: list[_Letter] = []
        self._sending: asyncio.Task[None] | None = None

    async def send(self, message: BusMessage) -> Answer:
        """A letter whose sender has given up before it left stays here."""
        letter = _Letter(message, asyncio.get_running_loop().create_future())
        self._waiting.append(letter)
        if self._sending is None:
            self._sending = asyncio.create_task(self._run())
        return await letter.answer

    async def drain(self) -> None:
        if self._sending is not None:
            await asyncio.wait({self._sending})

    async def _run(self) -> None:
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                batch = [letter for letter in waiting if not letter.answer.done()]
                await self._publish(batch)
        finally:
            self._sending = None

    async def _publish(self, batch: list[_Letter]) -> None:
        """Every letter is answered, whatever happens: somebody waits for it."""
        try:
            errors = await self._errors_of(batch)
        except BaseException as error:
            _fail(batch, error)
            if not isinstance(error, Exception):
                _fail(self._waiting, error)
                raise
            return
        for letter in batch:
            if not letter.answer.done():
                _answer(letter, errors)

    async def _errors_of(self, batch: list[_Letter]) -> _Errors:
        """Of equal messages in a batch, if one was not published, none was."""
        if not batch:
            return {}
        unpublished = await self._bus.publish(self._topic, [letter.message for letter in batch])
        return {(message.message_id, message.body): error for message, error in unpublished}


class BusReplies:
    """The bus is closed by whoever made it, after this."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._lanes: dict[int, _Lane] = {}
        self._is_closed = False

    async def send(self, address: ReplyAddress, reply: Outgoing) -> Answer:
        """SENT when the bus has it, REFUSED if the bus will never take it."""
        if self._is_closed:
            raise ReplyUnavailable("replies are closed")
        lane = self._lanes.get(address.lane)
        if lane is None:
            lane = self._lanes[address.lane] = _Lane(self._bus, reply_topic(address.lane))
        # No time to live: a RESULT counts however late it is read.
        return await lane.send(
            BusMessage(reply.message_id, reply.body, reply.properties, address.partition_key)
        )

    async def check(self) -> None:
        try:
            await self._bus.check()
        except BusError as error:
            raise ReplyUnavailable(str(error)) from error

    async def close(self) -> None:
        self._is_closed = True
        for lane in self._lanes.values():
            await lane.drain()


def _answer(letter: _Letter, errors: _Errors) -> None:
    error = errors and errors.get((letter.message.message_id, letter.message.body))
    if not error:
        letter.answer.set_result(_SENT)
    elif isinstance(error, PublishRefused):
        letter.answer.set_result(Answer(Verdict.REFUSED, detail=str(error)))
    else:
        letter.answer.set_exception(_unavailable(error))


def _fail(letters: list[_Letter], error: BaseException) -> None:
    """A bus that raises is away; anything but its own errors is a defect, which its senders see."""
    for letter in letters:
        if letter.answer.done():
            continue
        if isinstance(error, BusError) or not isinstance(error, Exception):
            letter.answer.set_exception(_unavailable(error))
        else:
            letter.answer.set_exception(error)


def _unavailable(error: BaseException) -> ReplyUnavailable:
    unavailable = ReplyUnavailable(str(error) or "sending was stopped")
    unavailable.__cause__ = error
    return unavailable
