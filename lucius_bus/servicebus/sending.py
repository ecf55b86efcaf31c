"""Publishing to one topic: one sender, one owner."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from azure.servicebus import ServiceBusMessage, ServiceBusMessageBatch
from azure.servicebus.exceptions import MessageSizeExceededError

from lucius_bus.port import (
    BusError,
    BusMessage,
    BusUnavailable,
    PublishRefused,
    Unpublished,
)
from lucius_bus.servicebus.client import Sender
from lucius_bus.servicebus.errors import Failure, Meaning
from lucius_bus.servicebus.link import Link
from lucius_bus.servicebus.messages import outgoing
from lucius_bus.servicebus.pacing import Quiet


class Letter(NamedTuple):
    message: BusMessage
    outgoing: ServiceBusMessage

    @property
    def key(self) -> str | None:
        """By which a partitioned topic chooses the partition."""
        return self.message.session_id or self.message.partition_key


class _Job(NamedTuple):
    messages: Sequence[BusMessage]
    future: asyncio.Future[list[Unpublished]]


class Transfer:
    """As many of the first letters as fit into one transfer. `count`: how many these were."""

    def __init__(self, letters: Sequence[Letter]) -> None:
        self._letters = letters
        self.count = 1

    async def send(self, sender: Sender) -> None:
        if len(self._letters) == 1:  # in a batch it would be encoded three times
            await sender.send_messages(self._letters[0].outgoing)
            return
        batch = await sender.create_message_batch()
        self.count = max(_filled(batch, self._letters), 1)
        # One that is too large for a batch may still be allowed by itself.
        await sender.send_messages(batch if self.count > 1 else self._letters[0].outgoing)


class TopicSender:
    """A publish that is given up goes on; only one that has not begun is left out."""

    def __init__(
        self,
        topic: str,
        link: Link[Sender],
        quiet: Quiet,
        clock: Callable[[], datetime],
        *,
        is_partitioned: bool,
    ) -> None:
        self._topic = topic
        self._link = link
        self._quiet = quiet
        self._clock = clock
        self._is_partitioned = is_partitioned
        self._jobs: asyncio.Queue[_Job | None] = asyncio.Queue()
        self._is_closing = False
        self._owner = asyncio.create_task(self._run())

    async def publish(self, messages: Sequence[BusMessage]) -> list[Unpublished]:
        if self._is_closing or self._owner.done():
            error = BusUnavailable("the bus is closed")
            return [Unpublished(message, error) for message in messages]
        job = _Job(messages, asyncio.get_running_loop().create_future())
        self._jobs.put_nowait(job)
        return await job.future

    async def close(self) -> None:
        self._is_closing = True
        self._link.stop()
        self._jobs.put_nowait(None)
        await self._owner

    async def _run(self) -> None:
        try:
            while (job := await self._jobs.get()) is not None:
                if not job.future.done():
                    await self._do(job)
        finally:
            self._fail_waiting(BusUnavailable("the bus is closed"))
            await self._link.close()

    async def _do(self, job: _Job) -> None:
        """Whatever goes wrong is the caller's to know: the owner goes on."""
        try:
            _answer(job, await self._publish(job.messages))
        except Exception as error:
            if not job.future.done():
                job.future.set_exception(error)

    async def _publish(self, messages: Sequence[BusMessage]) -> list[Unpublished]:
        letters, unpublished = self._prepared(messages)
        groups = deque(self._groups(letters))
        while groups:
            group = groups.popleft()
            transfer = Transfer(group)
            try:
                self._check()
                await self._link.use(transfer.send)
            except Failure as failure:
                if failure.meaning is not Meaning.REFUSED:
                    rest = [group, *groups]
                    return unpublished + self._given_up(failure, rest)
                if transfer.count == 1:
                    unpublished.append(Unpublished(group[0].message, self._error(failure)))
                else:
                    groups.extendleft(reversed(self._apart(group[: transfer.count])))
            groups.extend(self._groups(group[transfer.count :]))
        return unpublished

    def _check(self) -> None:
        if self._is_closing:
            raise Failure(Meaning.AWAY, "the bus is closed")
        try:
            self._quiet.check()
        except BusUnavailable as error:
            raise Failure(Meaning.AWAY, str(error)) from error

    def _prepared(self, messages: Sequence[BusMessage]) -> tuple[list[Letter], list[Unpublished]]:
        letters, unpublished, now = [], [], self._clock()
        for message in messages:
            try:
                letters.append(Letter(message, outgoing(message, now)))
            except (ValueError, TypeError) as error:
                refused = PublishRefused(f"topic {self._topic}: {error}")
                unpublished.append(Unpublished(message, refused))
        return letters, unpublished

    def _groups(self, letters: Sequence[Letter]) -> list[list[Letter]]:
        """What may be in one batch: for a partitioned topic, letters of one key."""
        if not self._is_partitioned:
            return [list(letters)] if letters else []
        groups: dict[str | None, list[Letter]] = {}
        for letter in letters:
            groups.setdefault(letter.key, []).append(letter)
        return list(groups.values())

    def _apart(self, refused: Sequence[Letter]) -> list[list[Letter]]:
        """A batch is refused as a whole. Because of its keys, or because of one of its letters:
        which one is found by sending each alone."""
        if not self._is_partitioned and len({letter.key for letter in refused}) > 1:
            self._is_partitioned = True
            return self._groups(refused)
        return [[letter] for letter in refused]

    def _given_up(self, failure: Failure, groups: Iterable[list[Letter]]) -> list[Unpublished]:
        """The others would fare no better. Those who come after need not find out again."""
        if failure.meaning is Meaning.BUSY:
            self._quiet.begin()
        error = self._error(failure)
        if failure.meaning is Meaning.AWAY:
            self._fail_waiting(error)
        return [Unpublished(letter.message, error) for group in groups for letter in group]

    def _fail_waiting(self, error: BusError) -> None:
        for _ in range(self._jobs.qsize()):
            job = self._jobs.get_nowait()
            if job is None:
                self._jobs.put_nowait(None)
            else:
                _answer(job, [Unpublished(message, error) for message in job.messages])

    def _error(self, failure: Failure) -> BusError:
        return failure.as_error(f"topic {self._topic}", PublishRefused)


def _filled(batch: ServiceBusMessageBatch, letters: Sequence[Letter]) -> int:
    """How many of the first letters fit."""
    for count, letter in enumerate(letters):
        try:
            batch.add_message(letter.outgoing)
        except MessageSizeExceededError:
            return count
        except Exception as error:  # a value that cannot be encoded
            if count:
                return count
            raise Failure(Meaning.REFUSED, f"it cannot be encoded: {error}") from error
    return len(letters)


def _answer(job: _Job, unpublished: list[Unpublished]) -> None:
    if not job.future.done():
        job.future.set_result(unpublished)
