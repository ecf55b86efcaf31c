"""Each of the three services is killed in the middle of its work, and started again."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pypdfium2
import pytest

from lucius_cli.demo.places import SERVICES, Places
from lucius_cli.demo.stack import Stack
from tests.flow.flow import PROMPTS, Flow, Job, running
from tests.runner.deadlines import seconds, time_limit
from tests.sdk.process.yard import open_yard

pytestmark = [pytest.mark.check, time_limit(240)]

LOCK = timedelta(seconds=seconds(8))


@pytest.fixture
def desk(tmp_path: Path, documents: Path) -> Path:
    """Documents that keep a service at work for some seconds."""
    folder = tmp_path / "desk"
    folder.mkdir()
    scan = pypdfium2.PdfDocument(documents / "invoice-scan.pdf")
    long = pypdfium2.PdfDocument.new()
    for _ in range(4):
        long.import_pages(scan)
    long.save(folder / "long.pdf")
    (folder / "long.txt").write_text((documents / "invoice.txt").read_text() * 30)
    return folder


def work(desk: Path) -> dict[str, tuple[Path, dict[str, Any]]]:
    return {
        "ocr": (desk / "long.pdf", {}),
        "embedding": (desk / "long.txt", {}),
        "sis": (desk / "long.txt", {"prompt_set": PROMPTS}),
    }


async def test_killed_in_mid_work_every_step_has_one_result_in_its_first_attempt(
    places: Places, desk: Path, slow_engine: str, tmp_path: Path
) -> None:
    async with open_yard(tmp_path, SERVICES, LOCK) as yard:
        environ = {"LUCIUS_SERVICEBUS_CONNECTION": yard.emulator.connection_string}
        stack = Stack(
            places, tmp_path / "data", desk, bus_port=None, engine=slow_engine, environ=environ
        )
        async with running(stack) as flow:
            jobs = await asyncio.gather(*(killed(flow, name, desk) for name in SERVICES))
            for name in SERVICES:
                await asyncio.to_thread(stack.restart, name)
            for job in jobs:
                ended = await flow.finished(job)
                assert (ended["state"], ended["attempts_total"]) == ("SUCCEEDED", 1), ended
                assert was_taken_over(ended)
                assert await results(flow, job) == 1


async def killed(flow: Flow, name: str, desk: Path) -> str:
    """A job whose service was killed when it had begun."""
    document, payload = work(desk)[name]
    job = await flow.submit(name.upper(), document, payload)
    await flow.until(job, lambda found: found["steps"][0]["state"] == "IN_PROGRESS")
    await asyncio.to_thread(flow.stack.services[name].kill)
    return job


def was_taken_over(job: Job) -> bool:
    """The run that counts has a folder of its own, beside that of the dead one."""
    return all("/1/~2/" in artifact["uri"] for artifact in job["steps"][0]["artifacts"])


async def results(flow: Flow, job: str) -> int:
    return sum(each["cause"] == "RESULT_SUCCEEDED" for each in await flow.events(job))
