"""A job is paused, resumed and cancelled in the middle of its flow. The second service is frozen
meanwhile, so that the middle is where the test says."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lucius_cli.demo.stack import Stack
from tests.flow.flow import SIS, Flow, Job, connected, states, step
from tests.runner.deadlines import time_limit

pytestmark = [pytest.mark.check, time_limit(240)]

PAYLOAD = {"ocr": {}, "embedding": {}, "sis": SIS}


@contextmanager
def frozen(stack: Stack, name: str) -> Iterator[None]:
    stack.services[name].send(signal.SIGSTOP)
    try:
        yield
    finally:
        stack.services[name].send(signal.SIGCONT)


async def in_the_second_step(flow: Flow, documents: Path) -> str:
    job = await flow.submit("OCR_EMBEDDING_SIS", documents / "invoice.pdf", PAYLOAD)
    await flow.until(job, lambda found: step(found, "EMBEDDING")["state"] == "AWAITING_ACK")
    return job


async def test_a_paused_job_finishes_its_step_and_goes_on_when_it_is_resumed(
    stack: Stack, documents: Path
) -> None:
    async with connected(stack) as flow:
        with frozen(stack, "embedding"):
            job = await in_the_second_step(flow, documents)
            await flow.command(job, "pause")
            assert (await flow.job(job))["state"] == "PAUSING"
        paused = await flow.until(job, lambda found: found["state"] == "PAUSED")
        assert states(paused) == {"OCR": "SUCCEEDED", "EMBEDDING": "SUCCEEDED", "SIS": "PENDING"}
        await flow.command(job, "resume")
        assert (await flow.finished(job))["state"] == "SUCCEEDED"


async def test_a_job_that_is_resumed_before_it_paused_was_never_held_up(
    stack: Stack, documents: Path
) -> None:
    async with connected(stack) as flow:
        with frozen(stack, "embedding"):
            job = await in_the_second_step(flow, documents)
            await flow.command(job, "pause")
            await flow.command(job, "resume")
        ended = await flow.finished(job)
        assert (ended["state"], ended["attempts_total"]) == ("SUCCEEDED", 3)


async def test_a_job_that_is_cancelled_in_mid_flow_begins_no_further_step(
    stack: Stack, documents: Path
) -> None:
    async with connected(stack) as flow:
        with frozen(stack, "embedding"):
            job = await in_the_second_step(flow, documents)
            await flow.command(job, "cancel")
            assert (await flow.job(job))["state"] == "CANCELLING"
        ended = await flow.finished(job)
        assert ended["state"] == "CANCELLED"
        assert states(ended) == {"OCR": "SUCCEEDED", "EMBEDDING": "CANCELLED", "SIS": "CANCELLED"}
        assert said_by_the_service(ended) == "CANCELLED"


def said_by_the_service(job: Job) -> str:
    code: str = step(job, "EMBEDDING")["attempts"][0]["error"]["code"]
    return code


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel"])
async def test_a_job_that_has_ended_cannot_be_steered(
    stack: Stack, documents: Path, verb: str
) -> None:
    async with connected(stack) as flow:
        job = await flow.submit("SIS", documents / "invoice.txt", SIS)
        await flow.finished(job)
        refused = await flow.try_command(job, verb)
        assert (refused.status_code, refused.json()["code"]) == (409, "STATE_CONFLICT")
