"""Threads and an event loop that nobody has to wait for, and word between them and the runtime.

Between two threads a call is a note in a box and one wake-up of the other's event loop; notes that
are added before it has looked need no further one.
"""

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, ParamSpec, TypeVar

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError, StepError, described

P = ParamSpec("P")
R = TypeVar("R")


def _contained(error: BaseException) -> Exception:
    """What can be raised in the runtime's loop without ending it."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    contained = NonRetryableError(ErrorCode.INTERNAL, described(error))
    contained.__cause__ = error
    return contained


class Mailbox:
    """Calls for the thread of another event loop. The loop is woken once for many of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._calls: deque[Callable[[], object]] = deque()
        self._is_woken = False

    def post(self, call: Callable[[], object]) -> None:
        """From any thread. After the loop has ended nobody is there to call, and none is."""
        self._calls.append(call)
        if self._is_woken:
            return
        self._is_woken = True
        try:
            self.loop.call_soon_threadsafe(self._empty)
        except RuntimeError:
            self._calls.clear()

    def _empty(self) -> None:
        # First, so that whoever posts from here on wakes the loop again.
        self._is_woken = False
        for _ in range(len(self._calls)):
            self._calls.popleft()()


class Promise(Generic[R]):
    """A future of the runtime's loop that another thread keeps."""

    __slots__ = ("_box", "future")

    def __init__(self, box: Mailbox) -> None:
        self._box = box
        self.future: asyncio.Future[R] = box.loop.create_future()

    def keep(self, value: R) -> None:
        self._box.post(partial(self._settle, value, None))

    def fail(self, error: BaseException) -> None:
        self._box.post(partial(self._settle, None, _contained(error)))

    def _settle(self, value: Any, error: Exception | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)


def fulfil(promise: Promise[R], function: Callable[[], R]) -> None:
    if promise.future.cancelled():
        return
    try:
        promise.keep(function())
    except BaseException as error:
        promise.fail(error)


class DaemonThreads:
    """At most `limit` of them, begun when there is work and kept for more. An executor of the
    standard library would be joined at the end of the process, stuck or not."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._open = 0

    def start(self, work: Callable[[], object]) -> None:
        """`work` raises nothing."""
        with self._lock:
            if len(self._threads) < min(self._open + 1, self._limit):
                self._add()
            self._open += 1
        self._work.put(work)

    def close(self) -> list[threading.Thread]:
        """Each ends after what is queued already; those that may still run."""
        with self._lock:
            for _ in self._threads:
                self._work.put(None)
            return [thread for thread in self._threads if thread.is_alive()]

    def _add(self) -> None:
        name = f"{self._name}-{len(self._threads) + 1}"
        thread = threading.Thread(target=self._serve, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _serve(self) -> None:
        while True:
            work = self._work.get()
            if work is None:
                return
            work()
            del work  # or the last work would be remembered until the next
            with self._lock:
                self._open -= 1


class _Executor(ThreadPoolExecutor):
    """Gives `asyncio.to_thread` of the handlers' loop daemon threads."""

    def __init__(self, threads: DaemonThreads) -> None:
        super().__init__(1)
        self._daemons = threads

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        future: Future[R] = Future()
        self._daemons.start(partial(_complete, future, partial(fn, *args, **kwargs)))
        return future


def _complete(future: Future[R], function: Callable[[], R]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(function())
    except BaseException as error:
        future.set_exception(error)


class LoopWork(Generic[R]):
    """An `async def` on its way."""

    def __init__(self, promise: Promise[R], box: Mailbox, check: Callable[[], None] | None) -> None:
        self.future = promise.future
        self._promise = promise
        self._box = box
        self._check = check
        self._task: asyncio.Task[R] | None = None
        self.future.add_done_callback(self._no_longer_awaited)

    def cancel(self) -> None:
        """From the runtime's thread."""
        if not self.future.done():
            self._box.post(self._cancel)

    def begin(self, task: asyncio.Task[R]) -> None:
        self._task = task
        task.add_done_callback(self._end)

    def _no_longer_awaited(self, future: asyncio.Future[R]) -> None:
        if future.cancelled():
            self._box.post(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _end(self, task: asyncio.Task[R]) -> None:
        error = self._why_cancelled() if task.cancelled() else task.exception()
        if error is None:
            self._promise.keep(task.result())
        else:
            self._promise.fail(error)

    def _why_cancelled(self) -> Exception:
        try:
            if self._check is not None:
                self._check()
        except StepError as error:
            return error
        return NonRetryableError(ErrorCode.INTERNAL, "the handler cancelled itself")


class HandlerLoop:
    """An event loop in a daemon thread."""

    def __init__(self, helpers: DaemonThreads) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_Executor(helpers))
        self._box = Mailbox(self._loop)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ending: asyncio.Task[None] | None = None
        self._has_ended = False
        self._thread = threading.Thread(target=self._serve, name="lucius-handlers", daemon=True)
        self._thread.start()

    def start(
        self,
        promise: Promise[R],
        function: Callable[[], Coroutine[Any, Any, R]],
        check: Callable[[], None] | None,
    ) -> LoopWork[R]:
        work = LoopWork(promise, self._box, check)
        context = contextvars.copy_context()
        self._box.post(partial(self._begin, work, function, context))
        return work

    def close(self) -> threading.Thread:
        self._box.post(self._wind_down)
        return self._thread

    def _begin(
        self,
        work: LoopWork[R],
        function: Callable[[], Coroutine[Any, Any, R]],
        context: contextvars.Context,
    ) -> None:
        task = self._loop.create_task(function(), context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        work.begin(task)

    def _serve(self) -> None:
        """A handler may raise SystemExit, which leaves the loop, or stop it: the others go on."""
        while not self._has_ended:
            with suppress(KeyboardInterrupt, SystemExit):
                self._loop.run_forever()
        self._loop.close()

    def _wind_down(self) -> None:
        if self._ending is None:
            self._ending = self._loop.create_task(self._end())

    async def _end(self) -> None:
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
        self._has_ended = True
        self._loop.stop()
