"""Where the team's code runs: apart from the runtime, which must never wait for it.

A plain `def` runs in one of a few daemon threads, an `async def` in an event loop of its own in
another. Whatever a handler does, blocks or raises, the runtime's loop goes on turning; and as the
threads are daemons, a handler that never ends does not keep the process from ending.
"""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, TypeVar

from lucius_contract.documents import Artifact
from lucius_sdk.context import StepContext
from lucius_sdk.handler_threads import (
    DaemonThreads,
    HandlerLoop,
    LoopWork,
    Mailbox,
    Promise,
    fulfil,
)
from lucius_sdk.service import Hook, StepHandler, is_async

HandlerReturn = tuple[Artifact, ...] | None
"""The artifacts that a handler chose to report; None for all that it has written."""

_FEWEST_HELPERS = 32

R = TypeVar("R")


class HandlerPool:
    """Belongs to the event loop that first uses it."""

    def __init__(self, concurrency: int) -> None:
        self._workers = DaemonThreads("lucius-handler", concurrency)
        self._helpers = DaemonThreads("lucius-helper", max(concurrency, _FEWEST_HELPERS))
        self._loop: HandlerLoop | None = None
        self._home: Mailbox | None = None
        self._is_closed = False

    def submit(
        self, handler: StepHandler[Any], ctx: StepContext[Any]
    ) -> asyncio.Future[HandlerReturn]:
        """Start the handler. The future has what it returns or raises when it really has ended.

        What it raises is always an `Exception`: KeyboardInterrupt, SystemExit and the like become a
        NonRetryableError with the original as its cause. When there is a reason to stop, an
        `async def` is cancelled, and ends with StepCancelled or WorkStopped unless it finishes all
        the same; a plain `def` stops when it asks its context. With a reason to stop before the
        start, nothing is run. To cancel the future is to wait no more, and cancels an `async def`.
        """
        if not handler.is_async:
            return self._in_thread(partial(_do, handler, ctx))
        work = self._in_loop(partial(_ado, handler, ctx), ctx.check)
        ctx.state.on_stop(work.cancel)
        return work.future

    async def run(self, handler: StepHandler[Any], ctx: StepContext[Any]) -> HandlerReturn:
        """As `submit`, to its end."""
        return await self.submit(handler, ctx)

    async def call(self, hook: Hook) -> None:
        """Call a hook where handlers run."""
        if is_async(hook):
            await self._in_loop(partial(_acall, hook)).future
        else:
            await self._in_thread(hook)

    async def close(self, timeout: float) -> bool:
        """Start nothing any more, cancel every `async def`, and wait for all that runs, but not
        longer than `timeout` seconds. False if something still runs then."""
        self._is_closed = True
        threads = self._workers.close()
        if self._loop is not None:
            threads.append(self._loop.close())
        ended = Promise[None](self._mailbox())
        closing = partial(_join, threads, self._helpers, ended)
        threading.Thread(target=closing, name="lucius-close", daemon=True).start()
        try:
            async with asyncio.timeout(timeout):
                await ended.future
        except TimeoutError:
            return False
        return True

    def _in_thread(self, function: Callable[[], R]) -> asyncio.Future[R]:
        promise: Promise[R] = self._promise()
        context = contextvars.copy_context()
        self._workers.start(partial(fulfil, promise, partial(context.run, function)))
        return promise.future

    def _in_loop(
        self,
        function: Callable[[], Coroutine[Any, Any, R]],
        check: Callable[[], None] | None = None,
    ) -> LoopWork[R]:
        """`check` raises why it was cancelled, if it was for a reason."""
        promise: Promise[R] = self._promise()
        if self._loop is None:
            self._loop = HandlerLoop(self._helpers)
        return self._loop.start(promise, function, check)

    def _promise(self) -> Promise[Any]:
        if self._is_closed:
            raise RuntimeError("the pool of handlers is closed")
        return Promise(self._mailbox())

    def _mailbox(self) -> Mailbox:
        if self._home is None:
            self._home = Mailbox(asyncio.get_running_loop())
        return self._home


def _do(handler: StepHandler[Any], ctx: StepContext[Any]) -> HandlerReturn:
    ctx.check()
    return _artifacts(handler.function(ctx))


async def _ado(handler: StepHandler[Any], ctx: StepContext[Any]) -> HandlerReturn:
    ctx.check()
    begun: Any = handler.function(ctx)
    return _artifacts(await begun)


async def _acall(hook: Hook) -> None:
    begun: Any = hook()
    await begun


def _artifacts(returned: object) -> HandlerReturn:
    """A tuple, made where the handler runs: a generator does its work only now."""
    if returned is None:
        return None
    if isinstance(returned, Artifact):
        return (returned,)
    if inspect.iscoroutine(returned):
        returned.close()
    found = tuple(returned) if isinstance(returned, Iterable) else (returned,)
    for one in found:
        if not isinstance(one, Artifact):
            raise TypeError(f"a handler returns artifacts or None, not {type(one).__name__}")
    return found


def _join(threads: list[threading.Thread], helpers: DaemonThreads, ended: Promise[None]) -> None:
    for thread in threads:
        thread.join()
    helpers.close()
    ended.keep(None)
