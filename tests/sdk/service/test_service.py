"""How a team describes its service."""

import functools
import sys
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from lucius_sdk import Service, StepContext
from lucius_sdk.directive_model import StepTypeNotOwned
from tests.sdk.service.samples import context, directive


class OcrPayload(BaseModel):
    dpi: int = 300


def plain(ctx: StepContext[dict[str, Any]]) -> None: ...


async def asynchronous(ctx: StepContext[dict[str, Any]]) -> None: ...


class Recogniser:
    def method(self, ctx: StepContext[dict[str, Any]]) -> None: ...

    async def amethod(self, ctx: StepContext[dict[str, Any]]) -> None: ...

    async def __call__(self, ctx: StepContext[dict[str, Any]]) -> None: ...


def test_a_handler_is_registered_for_its_step_type() -> None:
    service = Service("ocr")

    @service.step("OCR", payload=OcrPayload)
    def execute(ctx: StepContext[OcrPayload]) -> None: ...

    handler = service.handler_of(directive(step_type="OCR"))
    assert (handler.step_type, handler.payload, handler.is_async) == ("OCR", OcrPayload, False)
    assert handler.function is execute
    assert service.handlers == {"OCR": handler}


def test_the_decorated_function_is_the_function_itself() -> None:
    service = Service()
    assert service.step("OCR")(plain) is plain
    service.handlers["OCR"].function(context())


def test_one_service_may_do_several_types_of_step() -> None:
    service = Service("text")
    service.step("OCR")(plain)
    service.step("SPLIT")(asynchronous)
    assert {name: one.is_async for name, one in service.handlers.items()} == {
        "OCR": False,
        "SPLIT": True,
    }


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (plain, False),
        (asynchronous, True),
        (Recogniser().method, False),
        (Recogniser().amethod, True),
        (Recogniser(), True),
        (functools.partial(asynchronous), True),
        (functools.partial(plain), False),
    ],
)
def test_what_is_async_is_seen_before_it_is_called(function: Any, expected: bool) -> None:
    service = Service()
    service.step("OCR")(function)
    assert service.handlers["OCR"].is_async is expected


def test_a_second_handler_for_a_step_type_is_refused() -> None:
    service = Service()
    service.step("OCR")(plain)
    with pytest.raises(ValueError, match="OCR has a handler already"):
        service.step("OCR")(asynchronous)


@pytest.mark.parametrize("name", ["", "a b", "../OCR", "O" * 65])
def test_a_step_type_that_no_protocol_can_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a step type"):
        Service().step(name)(plain)


@pytest.mark.parametrize("name", ["", "OCR", "o c r", "-ocr", "a" * 51])
def test_a_service_has_the_name_of_a_subscription(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a service"):
        Service(name)


@pytest.mark.parametrize("function", ["text", Recogniser, 3])
def test_what_is_no_function_is_refused(function: Any) -> None:
    with pytest.raises(TypeError, match="is not a function"):
        Service().step("OCR")(function)


def test_an_async_generator_is_refused() -> None:
    async def pages(ctx: Any) -> Any:
        yield ctx

    with pytest.raises(TypeError, match="async generator"):
        Service().step("OCR")(pages)


def test_directives_of_other_step_types_are_refused() -> None:
    service = Service("ocr")
    service.step("OCR")(plain)
    with pytest.raises(StepTypeNotOwned, match="SIS"):
        service.handler_of(directive(step_type="SIS"))


def test_the_spelling_of_a_step_type_counts() -> None:
    service = Service("ocr")
    service.step("ocr")(plain)
    with pytest.raises(StepTypeNotOwned):
        service.handler_of(directive(step_type="OCR"))


def test_handlers_are_added_by_registration_alone() -> None:
    with pytest.raises(TypeError):
        Service().handlers["OCR"] = None  # type: ignore[index]


def test_hooks_start_in_order_and_stop_in_reverse() -> None:
    service = Service()

    @service.on_start
    def load() -> None: ...

    @service.on_start
    async def connect() -> None: ...

    @service.on_stop
    def unload() -> None: ...

    @service.on_stop
    async def disconnect() -> None: ...

    assert service.start_hooks == (load, connect)
    assert service.stop_hooks == (disconnect, unload)


def test_the_program_ends_with_the_exit_code_of_the_runtime(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[object] = []

    def run(service: Service, environ: object) -> int:
        seen.append(service)
        return 3

    program = ModuleType("lucius_sdk.runtime.program")
    program.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lucius_sdk.runtime.program", program)
    service = Service("ocr")
    with pytest.raises(SystemExit) as caught:
        service.run()
    assert (caught.value.code, seen) == (3, [service])
