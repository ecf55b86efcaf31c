"""Handlers run apart from the runtime: whatever they do, its loop goes on."""

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lucius_contract.documents import Artifact
from lucius_sdk import NonRetryableError, RetryableError, Service, StepCancelled, StepContext
from lucius_sdk.context import StopReason, WorkState
from lucius_sdk.error_model import WorkStopped, classify
from lucius_sdk.handlers import HandlerPool
from lucius_sdk.service import StepHandler
from tests.runner.deadlines import DEADLINE, PROCESS_DEADLINE, seconds
from tests.sdk.service.samples import STEP_DEADLINE, artifact, context

Ctx = StepContext[Any]
FIELD: contextvars.ContextVar[str] = contextvars.ContextVar("FIELD", default="none")


@pytest.fixture
async def pool() -> AsyncIterator[HandlerPool]:
    pool = HandlerPool(4)
    async with asyncio.timeout(seconds(60)):
        yield pool
    assert await pool.close(DEADLINE)


def handler(function: Callable[[Ctx], Any]) -> StepHandler[Any]:
    service = Service()
    service.step("OCR")(function)
    return service.handlers["OCR"]


class Blocked:
    """A plain handler that ends when it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.released = threading.Event()

    def __call__(self, _: Ctx) -> None:
        self.begun.set()
        if not self.released.wait(DEADLINE):
            raise AssertionError("was never let go")


@contextmanager
def a_blocked_handler() -> Iterator[Blocked]:
    blocked = Blocked()
    try:
        yield blocked
    finally:
        blocked.released.set()


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, DEADLINE)


async def test_a_plain_handler_runs_in_another_thread(pool: HandlerPool) -> None:
    threads: list[threading.Thread] = []
    await pool.run(handler(lambda _: threads.append(threading.current_thread())), context())
    assert threads[0] is not threading.current_thread()
    assert threads[0].daemon


async def test_an_async_handler_runs_in_another_loop(pool: HandlerPool) -> None:
    loops: list[object] = []

    async def work(ctx: Ctx) -> None:
        loops.append(asyncio.get_running_loop())

    await pool.run(handler(work), context())
    await pool.run(handler(work), context())
    assert loops[0] is not asyncio.get_running_loop()
    assert loops[0] is loops[1]


async def test_what_a_handler_writes_may_be_chosen_from(pool: HandlerPool) -> None:
    def generator(ctx: Ctx) -> Iterator[Artifact]:
        yield artifact("a")
        yield artifact("b")

    async def single(ctx: Ctx) -> Artifact:
        return artifact("a")

    both = (artifact("a"), artifact("b"))
    assert await pool.run(handler(generator), context()) == both
    assert await pool.run(handler(lambda _: list(both)), context()) == both
    assert await pool.run(handler(single), context()) == both[:1]
    assert await pool.run(handler(lambda _: []), context()) == ()
    assert await pool.run(handler(lambda _: None), context()) is None


@pytest.mark.parametrize("returned", [3, "text", {"a": 1}, [None]])
async def test_a_handler_that_returns_something_else_has_a_defect(
    pool: HandlerPool, returned: object
) -> None:
    with pytest.raises(TypeError, match="artifacts or None, not"):
        await pool.run(handler(lambda _: returned), context())


async def test_a_plain_function_that_gives_a_coroutine_has_a_defect(pool: HandlerPool) -> None:
    async def work(ctx: Ctx) -> None: ...

    with pytest.raises(TypeError, match="not coroutine"):
        await pool.run(handler(lambda ctx: work(ctx)), context())


def _raises(error: BaseException) -> Callable[[Ctx], None]:
    def work(ctx: Ctx) -> None:
        raise error

    return work


def _araises(error: BaseException) -> Callable[[Ctx], Any]:
    async def work(ctx: Ctx) -> None:
        await asyncio.sleep(0)
        raise error

    return work


@pytest.mark.parametrize("kind", [_raises, _araises])
@pytest.mark.parametrize(
    "error", [RetryableError("OCR_X", "why"), ValueError("bad"), ExceptionGroup("g", [OSError()])]
)
async def test_what_a_handler_raises_comes_out(
    pool: HandlerPool, kind: Callable[[BaseException], Callable[[Ctx], Any]], error: Exception
) -> None:
    with pytest.raises(type(error)) as caught:
        await pool.run(handler(kind(error)), context())
    assert caught.value is error


class _Own(BaseException):
    def __str__(self) -> str:
        raise RuntimeError("unprintable")


@pytest.mark.parametrize("kind", [_raises, _araises])
@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        SystemExit(3),
        GeneratorExit(),
        _Own(),
        BaseExceptionGroup("g", [KeyboardInterrupt()]),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_would_end_a_program_ends_one_handler(
    pool: HandlerPool, kind: Callable[[BaseException], Callable[[Ctx], Any]], error: BaseException
) -> None:
    with pytest.raises(NonRetryableError) as caught:
        await pool.run(handler(kind(error)), context())
    assert caught.value.__cause__ is error
    assert classify(caught.value, "ocr").code == "INTERNAL"
    assert await pool.run(handler(lambda _: [artifact()]), context()) == (artifact(),)


async def test_a_plain_handler_that_raises_stop_iteration_has_a_defect(pool: HandlerPool) -> None:
    with pytest.raises(NonRetryableError, match="StopIteration"):
        await pool.run(handler(_raises(StopIteration())), context())


async def test_a_task_of_a_handler_that_raises_system_exit_leaves_others_alone(
    pool: HandlerPool,
) -> None:
    async def die() -> None:
        sys.exit(3)

    async def work(ctx: Ctx) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(die())

    async def other(ctx: Ctx) -> Artifact:
        async with asyncio.timeout(DEADLINE):
            await asyncio.to_thread(released.wait)
        return artifact()

    released = threading.Event()
    beside = asyncio.create_task(pool.run(handler(other), context()))
    with pytest.raises(NonRetryableError, match="SystemExit"):
        await pool.run(handler(work), context())
    released.set()
    assert await beside == (artifact(),)


async def test_a_handler_that_stops_its_loop_leaves_others_alone(pool: HandlerPool) -> None:
    async def work(ctx: Ctx) -> None:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)

    await pool.run(handler(work), context())
    await pool.run(handler(work), context())


async def test_the_runtime_goes_on_while_handlers_block(pool: HandlerPool) -> None:
    async def block(ctx: Ctx) -> None:
        blocked(ctx)

    with a_blocked_handler() as blocked:
        running = asyncio.create_task(pool.run(handler(block), context()))
        await until(blocked.begun)
        assert await pool.run(handler(lambda _: [artifact()]), context()) == (artifact(),)
        assert not running.done()
    await running


async def test_plain_handlers_run_in_parallel_up_to_the_room_of_the_pool() -> None:
    pool, lock, pairs = HandlerPool(2), threading.Lock(), threading.Barrier(2)
    running, most = 0, 0

    def work(_: Ctx) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        pairs.wait(DEADLINE)
        with lock:
            running -= 1

    await asyncio.gather(*(pool.run(handler(work), context()) for _ in range(40)))
    assert most == 2
    assert await pool.close(DEADLINE)


async def test_threads_are_used_again(pool: HandlerPool) -> None:
    names: set[str] = set()
    for _ in range(20):
        await pool.run(handler(lambda _: names.add(threading.current_thread().name)), context())
    assert names <= {f"lucius-handler-{number}" for number in range(1, 5)}


async def test_fields_of_the_log_go_along(pool: HandlerPool) -> None:
    seen: list[str] = []

    async def work(ctx: Ctx) -> None:
        seen.append(FIELD.get())
        FIELD.set("changed inside")
        seen.append(await asyncio.to_thread(FIELD.get))

    FIELD.set("job_1")
    await pool.run(handler(lambda _: seen.append(FIELD.get())), context())
    await pool.run(handler(work), context())
    assert seen == ["job_1", "job_1", "changed inside"]
    assert FIELD.get() == "job_1"


async def test_handlers_that_start_together_have_each_their_own_fields(pool: HandlerPool) -> None:
    async def block(ctx: Ctx) -> None:
        blocked(ctx)

    async def work(ctx: Ctx) -> None:
        seen[ctx.state.deadline.minute] = FIELD.get()

    seen: dict[int, str] = {}
    with a_blocked_handler() as blocked:
        running = [pool.submit(handler(block), context())]
        await until(blocked.begun)
        for number in range(3):
            FIELD.set(f"job_{number}")
            state = WorkState(STEP_DEADLINE.replace(minute=number))
            running.append(pool.submit(handler(work), context(state)))
    await asyncio.gather(*running)
    assert seen == {number: f"job_{number}" for number in range(3)}


async def test_an_async_handler_of_a_cancelled_job_is_cancelled(pool: HandlerPool) -> None:
    state, begun, cleaned = WorkState(STEP_DEADLINE), threading.Event(), threading.Event()

    async def work(ctx: Ctx) -> None:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cleaned.set()

    running = asyncio.create_task(pool.run(handler(work), context(state)))
    await until(begun)
    state.request_cancel()
    with pytest.raises(StepCancelled):
        await running
    assert cleaned.is_set()


async def test_an_async_handler_without_a_lease_is_stopped(pool: HandlerPool) -> None:
    state, begun = WorkState(STEP_DEADLINE), threading.Event()

    async def work(ctx: Ctx) -> None:
        begun.set()
        await asyncio.get_running_loop().create_future()

    running = asyncio.create_task(pool.run(handler(work), context(state)))
    await until(begun)
    state.stop(StopReason.LEASE_LOST)
    with pytest.raises(WorkStopped):
        await running


async def test_an_async_handler_may_finish_although_it_was_cancelled(pool: HandlerPool) -> None:
    state, begun = WorkState(STEP_DEADLINE), threading.Event()

    async def work(ctx: Ctx) -> Artifact:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return artifact()
        raise AssertionError

    running = asyncio.create_task(pool.run(handler(work), context(state)))
    await until(begun)
    state.request_cancel()
    assert await running == (artifact(),)


async def test_a_handler_that_cancels_itself_has_a_defect(pool: HandlerPool) -> None:
    async def work(ctx: Ctx) -> None:
        raise asyncio.CancelledError

    with pytest.raises(NonRetryableError, match="cancelled itself"):
        await pool.run(handler(work), context())
    with pytest.raises(NonRetryableError, match="CancelledError"):
        await pool.run(handler(_raises(asyncio.CancelledError())), context())


async def test_a_plain_handler_stops_when_it_asks(pool: HandlerPool) -> None:
    state, begun = WorkState(STEP_DEADLINE), threading.Event()

    def work(ctx: Ctx) -> None:
        begun.set()
        while True:
            ctx.wait(DEADLINE)

    running = asyncio.create_task(pool.run(handler(work), context(state)))
    await until(begun)
    state.request_cancel()
    with pytest.raises(StepCancelled):
        await running


@pytest.mark.parametrize("is_async", [False, True])
async def test_with_a_reason_to_stop_nothing_is_begun(pool: HandlerPool, is_async: bool) -> None:
    state, ran = WorkState(STEP_DEADLINE), threading.Event()

    async def work(ctx: Ctx) -> None:
        ran.set()

    state.stop(StopReason.SUPERSEDED)
    chosen = handler(work if is_async else lambda _: ran.set())
    with pytest.raises(WorkStopped):
        await pool.run(chosen, context(state))
    assert not ran.is_set()


async def test_a_stop_between_submission_and_start_is_seen(pool: HandlerPool) -> None:
    async def work(ctx: Ctx) -> None:
        await asyncio.get_running_loop().create_future()

    async def once() -> None:
        state = WorkState(STEP_DEADLINE)
        running = pool.submit(handler(work), context(state))
        state.stop(StopReason.SHUTTING_DOWN)
        with pytest.raises(WorkStopped):
            await running

    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(*(once() for _ in range(200)))


async def test_who_waits_no_more_cancels_an_async_handler(pool: HandlerPool) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def work(ctx: Ctx) -> None:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    running = asyncio.create_task(pool.run(handler(work), context()))
    await until(begun)
    running.cancel()
    await until(cancelled)
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_plain_handler_that_nobody_waits_for_is_not_begun() -> None:
    pool, ran = HandlerPool(1), threading.Event()
    with a_blocked_handler() as blocked:
        first = asyncio.create_task(pool.run(handler(blocked), context()))
        await until(blocked.begun)
        queued = pool.submit(handler(lambda _: ran.set()), context())
        queued.cancel()
    await first
    assert await pool.close(DEADLINE)
    assert not ran.is_set()


async def test_hooks_run_where_handlers_run(pool: HandlerPool) -> None:
    loops: list[object] = []

    async def connect() -> None:
        loops.append(asyncio.get_running_loop())

    async def work(ctx: Ctx) -> None:
        loops.append(asyncio.get_running_loop())

    await pool.call(connect)
    await pool.run(handler(work), context())
    assert loops[0] is loops[1]

    def load() -> None:
        loops.append(threading.current_thread())

    await pool.call(load)
    assert loops[2] is not threading.current_thread()


async def test_what_a_hook_raises_comes_out(pool: HandlerPool) -> None:
    def fail() -> None:
        raise OSError("no model")

    async def afail() -> None:
        raise OSError("no model")

    for hook in (fail, afail):
        with pytest.raises(OSError, match="no model"):
            await pool.call(hook)


async def test_an_async_handler_starts_programs(pool: HandlerPool) -> None:
    codes: list[int] = []

    async def work(ctx: Ctx) -> None:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", "raise SystemExit(3)")
        codes.append(await process.wait())

    await pool.run(handler(work), context())
    assert codes == [3]


async def test_closing_an_unused_pool_is_quick() -> None:
    assert await HandlerPool(4).close(DEADLINE)


async def test_closing_cancels_async_handlers_and_those_they_began() -> None:
    pool, begun = HandlerPool(4), threading.Event()
    cleaned: list[str] = []

    async def rest(name: str) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cleaned.append(name)

    async def work(ctx: Ctx) -> None:
        beside = asyncio.create_task(rest("beside"))
        begun.set()
        await rest("work")
        await beside

    running = asyncio.create_task(pool.run(handler(work), context()))
    await until(begun)
    assert await pool.close(DEADLINE)
    assert await pool.close(DEADLINE)
    with pytest.raises(NonRetryableError):
        await running
    assert sorted(cleaned) == ["beside", "work"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_closing_does_not_wait_for_a_handler_that_is_stuck(is_async: bool) -> None:
    pool = HandlerPool(4)
    with a_blocked_handler() as blocked:

        async def block(ctx: Ctx) -> None:
            blocked(ctx)

        chosen = handler(block if is_async else blocked)
        running = asyncio.create_task(pool.run(chosen, context()))
        await until(blocked.begun)
        assert not await pool.close(0.01)
        blocked.released.set()
        await running
    assert await pool.close(DEADLINE)


async def test_a_closed_pool_runs_nothing() -> None:
    pool = HandlerPool(4)
    await pool.close(DEADLINE)
    with pytest.raises(RuntimeError, match="closed"):
        await pool.run(handler(lambda _: None), context())


def test_a_stuck_handler_may_end_after_the_runtime() -> None:
    with a_blocked_handler() as blocked:

        async def runtime() -> None:
            pool = HandlerPool(4)
            running = asyncio.create_task(pool.run(handler(blocked), context()))
            await until(blocked.begun)
            running.cancel()
            assert not await pool.close(0.01)

        before = set(threading.enumerate())
        asyncio.run(runtime())
        left = [thread for thread in threading.enumerate() if thread not in before]
        assert "lucius-handler-1" in [thread.name for thread in left]
        blocked.released.set()
        for thread in left:
            thread.join(DEADLINE)
        assert not [thread for thread in left if thread.is_alive()]


def test_a_stuck_handler_does_not_keep_the_process() -> None:
    program = """
import asyncio, threading
from lucius_sdk.handlers import HandlerPool
from tests.sdk.service.test_handlers import context, handler

begun = threading.Barrier(3)

def stick(ctx):
    begun.wait()
    threading.Event().wait()

async def astick(ctx):
    await asyncio.to_thread(stick, ctx)

async def main():
    pool = HandlerPool(2)
    pool.submit(handler(stick), context())
    pool.submit(handler(astick), context())
    await asyncio.to_thread(begun.wait)
    print(await pool.close(0.01))

asyncio.run(main())
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PROCESS_DEADLINE,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "False\n"), run.stderr


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_is_done_is_forgotten(pool: HandlerPool, is_async: bool) -> None:
    async def work(_: Ctx) -> None: ...

    async def run() -> "weakref.ref[WorkState]":
        state = WorkState(STEP_DEADLINE)
        await pool.run(handler(work if is_async else lambda _: None), context(state))
        return weakref.ref(state)

    remembered = await run()
    async with asyncio.timeout(DEADLINE):
        while remembered() is not None:
            gc.collect()
            await asyncio.sleep(0)
