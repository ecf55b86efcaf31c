"""A service whose handlers are watched, and whose work is cancelled if that is to be tested."""

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any

from lucius_contract.messages import Progress
from lucius_sdk.context import StepContext, WorkState
from lucius_sdk.service import Returned, Service, StepHandler


class Watch:
    """Of one run, in the event loop that it is made in. `service` is the one to run: it has the
    handlers and hooks of the one that is watched."""

    def __init__(self, watched: Service, *, cancel: bool) -> None:
        self.service = Service(watched.name)
        self._cancel = cancel
        self._loop = asyncio.get_running_loop()
        self._state: WorkState | None = None
        for handler in watched.handlers.values():
            self._register(handler)
        for hook in watched.start_hooks:
            self.service.on_start(hook)
        for hook in reversed(watched.stop_hooks):
            self.service.on_stop(hook)

    @property
    def progress(self) -> Progress | None:
        """As a heartbeat would tell it now."""
        return None if self._state is None else self._state.latest_progress()

    def _register(self, handler: StepHandler[Any]) -> None:
        def begin(ctx: StepContext[Any]) -> Returned | Awaitable[Returned]:
            self._begun(ctx.state)
            return handler.function(ctx)

        async def begin_async(ctx: StepContext[Any]) -> Returned:
            self._begun(ctx.state)
            returned: Any = handler.function(ctx)
            return await returned  # type: ignore[no-any-return]

        step = self.service.step
        name, payload = handler.step_type, handler.payload
        register = step(name) if payload is None else step(name, payload=payload)
        register(begin_async if handler.is_async else begin)

    def _begun(self, state: WorkState) -> None:
        """In the handler's thread, which goes on when the runtime has told everybody."""
        self._state = state
        if self._cancel:
            told = threading.Event()
            self._loop.call_soon_threadsafe(_request_cancel, state, told)
            told.wait()


def _request_cancel(state: WorkState, told: threading.Event) -> None:
    state.request_cancel()
    told.set()
