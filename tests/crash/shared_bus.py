"""A memory bus that processes reach over a socket, so that it outlives those that are killed."""

import asyncio
import itertools
import pickle
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from lucius_bus.memory import MemoryBus
from lucius_bus.port import BusMessage, BusUnavailable, Delivery, Unpublished

_LENGTH = 4


@asynccontextmanager
async def served(bus: MemoryBus, path: str) -> AsyncIterator[None]:
    """Answer whoever connects to the socket until the body ends."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held: dict[int, Delivery] = {}
        try:
            async with asyncio.TaskGroup() as tasks:
                while (request := await _read(reader)) is not None:
                    tasks.create_task(_answer(bus, held, writer, request))
        except (ConnectionError, ExceptionGroup):
            pass  # the other side was killed
        finally:
            writer.close()

    serving: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(serve(reader, writer))
        serving.add(task)
        task.add_done_callback(serving.discard)

    server = await asyncio.start_unix_server(accept, path)
    try:
        yield
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


_numbers = itertools.count()


async def _answer(
    bus: MemoryBus, held: dict[int, Delivery], writer: asyncio.StreamWriter, request: Any
) -> None:
    number, verb, args = request
    if verb == "receive":
        deliveries = await bus.receive(*args)
        keys = [next(_numbers) for _ in deliveries]
        held.update(zip(keys, deliveries, strict=True))
        value: Any = [
            Delivery(d.message, d.topic, d.subscription, d.delivery_count, d.locked_until, key)
            for key, d in zip(keys, deliveries, strict=True)
        ]
    elif verb == "publish":
        value = await bus.publish(*args)
    else:
        key, *rest = args
        try:
            value = await getattr(bus, verb)(held[key], *rest)
        except Exception as error:
            value = error
        if verb == "renew" and isinstance(value, Delivery):
            held[key], value = value, value.locked_until
    _write(writer, (number, value))


class SharedBus:
    """The port, as a process on the other side of the socket has it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def connect(cls, path: str) -> "SharedBus":
        return cls(*await asyncio.open_unix_connection(path))

    async def publish(self, topic: str, messages: Sequence[BusMessage]) -> list[Unpublished]:
        unpublished: list[Unpublished] = await self._ask("publish", topic, messages)
        return unpublished

    async def receive(
        self, topic: str, subscription: str, limit: int, wait: timedelta
    ) -> list[Delivery]:
        deliveries: list[Delivery] = await self._ask("receive", topic, subscription, limit, wait)
        return deliveries

    async def complete(self, delivery: Delivery) -> None:
        await self._ask("complete", delivery.token)

    async def abandon(self, delivery: Delivery) -> None:
        await self._ask("abandon", delivery.token)

    async def dead_letter(self, delivery: Delivery, reason: str, description: str) -> None:
        await self._ask("dead_letter", delivery.token, reason, description)

    async def renew(self, delivery: Delivery) -> Delivery:
        await self._ask("renew", delivery.token)
        return delivery

    async def check(self) -> None:
        """Whoever has the socket has the bus."""

    async def close(self) -> None:
        self._listening.cancel()
        self._writer.close()

    async def _ask(self, verb: str, *args: Any) -> Any:
        number = next(_numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        _write(self._writer, (number, verb, args))
        value = await answer
        if isinstance(value, Exception):
            raise value
        return value

    async def _listen(self) -> None:
        while (answer := await _read(self._reader)) is not None:
            number, value = answer
            waiting = self._waiting.pop(number)
            if not waiting.done():
                waiting.set_result(value)
        for waiting in self._waiting.values():
            waiting.set_exception(BusUnavailable("the socket was closed"))


async def _read(reader: asyncio.StreamReader) -> Any:
    try:
        size = int.from_bytes(await reader.readexactly(_LENGTH))
        return pickle.loads(await reader.readexactly(size))  # noqa: S301 - our own processes
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _write(writer: asyncio.StreamWriter, value: Any) -> None:
    if writer.is_closing():
        return
    data = pickle.dumps(value)
    writer.write(len(data).to_bytes(_LENGTH) + data)
