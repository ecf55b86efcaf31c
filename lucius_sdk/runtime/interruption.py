"""Ending what a task waits for, with a reason, where the task allows it.

A step is stopped from outside: by a newer attempt, by an answer, by the clock, by a shutdown. What
must not be torn in the middle, as a write to the dedup store, is let through first.
"""

import asyncio
from types import TracebackType

from lucius_sdk.context import StopReason


class StepStopped(Exception):
    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Interruption:
    """Of one task. The first reason counts.

    Used in a `with` statement: what the task waits for within may be given up, and then
    `StepStopped` comes out of it.
    """

    __slots__ = ("_waiting", "reason")

    def __init__(self) -> None:
        self.reason: StopReason | None = None
        self._waiting: asyncio.Task[object] | None = None

    def stop(self, reason: StopReason) -> None:
        if self.reason is None:
            self.reason = reason
            if self._waiting is not None:
                self._waiting.cancel()

    def check(self) -> None:
        if self.reason is not None:
            raise StepStopped(self.reason)

    def __enter__(self) -> None:
        self.check()
        self._waiting = asyncio.current_task()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        task, self._waiting = self._waiting, None
        if self.reason is None:
            return
        if kind is asyncio.CancelledError and task is not None:
            task.uncancel()
            raise StepStopped(self.reason) from None
        if kind is None:
            raise StepStopped(self.reason)
