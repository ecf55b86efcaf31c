"""`run_step`: what a team sees of its handler without a bus and an orchestrator."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from lucius_sdk import Service, StepCancelled, StepContext
from lucius_sdk.testing import arun_step, run_step
from tests.runner.deadlines import DEADLINE

Plain = StepContext[dict[str, Any]]


class Seen:
    """What handlers did, in their order."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def tell(self, what: str) -> None:
        self.done.append(what)


@pytest.fixture
def seen() -> Seen:
    return Seen()


def test_a_plain_function_that_is_cancelled_has_begun_and_cleans_up(seen: Seen) -> None:
    service = Service("ocr")

    @service.step("OCR")
    def execute(ctx: Plain) -> None:
        seen.tell(f"begun, cancelled={ctx.cancelled}")
        try:
            ctx.check()
        finally:
            seen.tell("cleaned up")

    done = run_step(service, cancel=True)
    assert (done.status, done.code) == ("FAILED_FINAL", "CANCELLED")
    assert seen.done == ["begun, cancelled=True", "cleaned up"]


def test_an_async_function_is_cancelled_once_where_it_waits(seen: Seen) -> None:
    service = Service("ocr")

    @service.step("OCR")
    async def execute(ctx: Plain) -> None:
        seen.tell("begun")
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            seen.tell("cleaned up")
            raise
        seen.tell("worked on")

    assert run_step(service, cancel=True).code == "CANCELLED"
    assert seen.done == ["begun", "cleaned up"]


def test_a_function_may_finish_although_it_is_cancelled() -> None:
    service = Service("ocr")

    @service.step("OCR")
    def execute(ctx: Plain) -> None:
        try:
            ctx.wait(DEADLINE)
        except StepCancelled:
            return

    assert run_step(service, cancel=True).status == "SUCCEEDED"


def test_without_a_cancel_nobody_is_cancelled() -> None:
    service = Service("ocr")

    @service.step("OCR")
    def execute(ctx: Plain) -> None:
        ctx.workspace.write("output.txt", str(ctx.cancelled))

    assert run_step(service).text("output.txt") == "False"


async def test_hooks_are_called_around_the_handler_in_their_order(seen: Seen) -> None:
    service = Service("ocr")
    for number in (1, 2):
        service.on_start(lambda number=number: seen.tell(f"start {number}"))
        service.on_stop(lambda number=number: seen.tell(f"stop {number}"))

    @service.step("OCR")
    async def execute(ctx: Plain) -> None:
        seen.tell("work")

    await arun_step(service)
    assert seen.done == ["start 1", "start 2", "work", "stop 2", "stop 1"]


class OcrPayload(BaseModel):
    dpi: int = 300


def test_payload_models_and_choices_of_artifacts_are_as_in_production() -> None:
    service = Service("ocr")

    @service.step("OCR", payload=OcrPayload)
    def execute(ctx: StepContext[OcrPayload]) -> Any:
        ctx.workspace.write("scratch.txt", "not reported")
        yield ctx.workspace.write("output.txt", str(ctx.payload.dpi))

    done = run_step(service, {"dpi": 70})
    assert (list(done.files), done.text("output.txt")) == (["output.txt"], "70")
    assert run_step(service, {"dpi": "low"}, cancel=True).code == "PAYLOAD_INVALID"


def test_progress_is_what_was_told_last() -> None:
    service = Service("ocr")

    @service.step("OCR")
    def execute(ctx: Plain) -> None:
        ctx.progress(0.5, "half")
        ctx.progress(1.2)

    progress = run_step(service).progress
    assert progress is not None
    assert (progress.fraction, progress.note) == (1.0, "half")


def test_a_handler_that_tells_no_progress_has_none() -> None:
    service = Service("ocr")

    @service.step("OCR")
    async def execute(ctx: Plain) -> None: ...

    assert run_step(service).progress is None


@pytest.mark.parametrize("tenant_id", ["Acme & Söhne", "a/b", "..", "a%2Fb"])
def test_any_tenant_has_a_workspace(tenant_id: str) -> None:
    service = Service("ocr")

    @service.step("OCR")
    def execute(ctx: Plain) -> None:
        ctx.workspace.write("output.txt", ctx.tenant_id)

    assert run_step(service, tenant_id=tenant_id).text("output.txt") == tenant_id
