"""A service, as its team writes it: step types, the functions that do them, and hooks.

service = Service("ocr")

@service.step("OCR", payload=OcrPayload)
def execute(ctx: StepContext[OcrPayload]) -> None: ...

if __name__ == "__main__":
    service.run()
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, NoReturn, Protocol, TypeVar, overload

from pydantic import BaseModel

from lucius_contract.documents import Artifact
from lucius_contract.messages import Directive
from lucius_sdk.context import StepContext
from lucius_sdk.directive_model import StepTypeNotOwned

__all__ = ["Hook", "Registration", "Returned", "Service", "StepHandler"]

Returned = Artifact | Iterable[Artifact] | None
"""Which artifacts to report; None for all that were written."""

Hook = Callable[[], Awaitable[None] | None]

Model = TypeVar("Model", bound=BaseModel)
_P = TypeVar("_P")
_Answer = TypeVar("_Answer", bound=Returned | Awaitable[Returned])
_Hook = TypeVar("_Hook", bound=Hook)

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?")
_STEP_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Registration(Protocol[_P]):
    """Takes a handler and gives it back, so that it can still be called in a test."""

    def __call__(
        self, function: Callable[[StepContext[_P]], _Answer], /
    ) -> Callable[[StepContext[_P]], _Answer]: ...


@dataclass(frozen=True, slots=True)
class StepHandler(Generic[_P]):
    """A function that does one type of step."""

    step_type: str
    function: Callable[[StepContext[_P]], Returned | Awaitable[Returned]]
    payload: type[_P] | None
    """The model of the payload; None for a dict."""
    is_async: bool


class Service:
    """`name` is the service's subscription on the bus; None leaves it to LUCIUS_SERVICE."""

    def __init__(self, name: str | None = None) -> None:
        if name is not None and _NAME.fullmatch(name) is None:
            raise ValueError(
                f"{name!r} cannot name a service: 1 to 50 lower-case letters, digits, inner hyphens"
            )
        self.name = name
        self._handlers: dict[str, StepHandler[Any]] = {}
        self._start_hooks: list[Hook] = []
        self._stop_hooks: list[Hook] = []

    @overload
    def step(self, step_type: str) -> Registration[dict[str, Any]]: ...
    @overload
    def step(self, step_type: str, *, payload: type[Model]) -> Registration[Model]: ...
    def step(self, step_type: str, *, payload: type[BaseModel] | None = None) -> Registration[Any]:
        """Register the function below: it does the steps of this type.

        `payload` is the model of the step's parameters; without one the handler gets them as a
        dict. A plain `def` runs in a thread of its own, an `async def` in an event loop that only
        handlers use.
        """

        def register(
            function: Callable[[StepContext[Any]], _Answer],
        ) -> Callable[[StepContext[Any]], _Answer]:
            self._add(StepHandler(step_type, function, payload, is_async(function)))
            return function

        return register

    def _add(self, handler: StepHandler[Any]) -> None:
        if _STEP_TYPE.fullmatch(handler.step_type) is None:
            raise ValueError(
                f"{handler.step_type!r} cannot name a step type:"
                " 1 to 64 letters, digits, underscores or hyphens"
            )
        if handler.step_type in self._handlers:
            raise ValueError(f"the step type {handler.step_type} has a handler already")
        self._handlers[handler.step_type] = handler

    @property
    def handlers(self) -> Mapping[str, StepHandler[Any]]:
        """By step type."""
        return MappingProxyType(self._handlers)

    def handler_of(self, directive: Directive) -> StepHandler[Any]:
        handler = self._handlers.get(directive.step_type)
        if handler is None:
            raise StepTypeNotOwned(directive.step_type, self._handlers)
        return handler

    def on_start(self, hook: _Hook) -> _Hook:
        """Call it before the first directive is taken: load a model, open a pool. A hook that
        raises stops the start."""
        is_async(hook)
        self._start_hooks.append(hook)
        return hook

    def on_stop(self, hook: _Hook) -> _Hook:
        """Call it after the last handler has ended."""
        is_async(hook)
        self._stop_hooks.append(hook)
        return hook

    @property
    def start_hooks(self) -> tuple[Hook, ...]:
        """In the order in which they were registered."""
        return tuple(self._start_hooks)

    @property
    def stop_hooks(self) -> tuple[Hook, ...]:
        """The last registered first, as what it opened may build on the others."""
        return tuple(reversed(self._stop_hooks))

    def run(self) -> NoReturn:
        """Serve until a signal says to stop, with settings from the environment; then exit."""
        from lucius_sdk.runtime.program import run

        sys.exit(run(self, os.environ))


def is_async(function: Callable[..., object]) -> bool:
    """Also for a partial, a bound method and an object that can be called."""
    if inspect.isclass(function) or not callable(function):
        raise TypeError(f"{function!r} is not a function")
    is_plain = inspect.isroutine(function) or isinstance(function, functools.partial)
    called = function if is_plain else type(function).__call__
    if inspect.isasyncgenfunction(called):
        raise TypeError(f"{function!r} is an async generator; return a list of artifacts instead")
    return inspect.iscoroutinefunction(called)
