"""Ending what a task waits for, with a reason, where the task allows it.

A step is stopped from outside: by a newer attempt, by an answer, by the clock, by a shutdown. What
must not be torn in the middle, as a write to the dedup store, is let through first.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from lucius_sdk.context import StopReason


class StepStopped(Exception):
    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Interruption:
    """Of one task. The first reason counts."""

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

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """What the task waits for within may be given up: `StepStopped`."""
        self.check()
        task = self._waiting = asyncio.current_task()
        try:
            yield
        except asyncio.CancelledError:
            if self.reason is None or task is None:
                raise
            task.uncancel()
            raise StepStopped(self.reason) from None
        finally:
            self._waiting = None
        self.check()
