"""A receiver that waits."""

import asyncio

from lucius_orchestrator.adapters.bus.embedded.errors import unreceived
from servicebus_emulator.broker import BrokerError, Delivery, Source


class Waiter:
    """The broker calls it when there is a message, or when the entity is gone; it takes at once.
    `ends` is when the wait is over by the broker's clock."""

    def __init__(self, source: Source, limit: int, ends: int) -> None:
        self.ends = ends
        self._source = source
        self._limit = limit
        self._future: asyncio.Future[list[Delivery]] = asyncio.get_running_loop().create_future()

    def __call__(self) -> None:
        if self._future.done():
            return
        try:
            found = self._source.take(self._limit)
            if not found:
                self._source.await_message(self)  # another one was quicker
                return
        except BrokerError as error:
            self._future.set_exception(unreceived(error))
        else:
            self._future.set_result(found)

    def end(self) -> None:
        if not self._future.done():
            self._future.set_result([])

    def fail(self, error: Exception) -> None:
        if not self._future.done():
            self._future.set_exception(error)

    async def found(self, seconds: float) -> list[Delivery]:
        """What it took; nothing when the wait is over. What a cancelled receiver took is as if it
        had not been delivered."""
        timer = asyncio.get_running_loop().call_later(seconds, self.end)
        self._source.await_message(self)
        self._source.await_deletion(self)
        try:
            return await self._future
        except asyncio.CancelledError:
            self._give_back()
            raise
        finally:
            timer.cancel()
            self._source.forget(self)

    def _give_back(self) -> None:
        if self._future.cancelled() or self._future.exception() is not None:
            return
        for delivery in self._future.result():
            self._source.release(delivery.token)
