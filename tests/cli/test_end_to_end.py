"""The command, a real control plane behind it, and a service that the test plays."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from fastapi import FastAPI

from lucius_contract.messages import Directive
from lucius_orchestrator.bootstrap.plane import ControlPlane
from tests.api.serving import address, served
from tests.bootstrap.planes import OCR, client, next_directive, plane, reply
from tests.cli.shell import Run
from tests.runner.deadlines import PROCESS_DEADLINE


class Stage:
    def __init__(self, made: ControlPlane, url: str) -> None:
        self._made = made
        self._url = url

    async def lucius(self, *arguments: str, stdin: object = None) -> Run:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("LUCIUS_")}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "lucius_cli", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**inherited, "LUCIUS_URL": self._url},
        )
        async with asyncio.timeout(PROCESS_DEADLINE):
            out, err = await process.communicate(json.dumps(stdin).encode())
        return Run(cast(int, process.returncode), out.decode(), err.decode())

    async def play(self, **result: Any) -> None:
        """Take the next directive, acknowledge it and report the result."""
        directive = await next_directive(self._made)
        await self._answer(directive, "ACK", status="ACKED")
        await self._answer(directive, "RESULT", **result)

    async def _answer(self, directive: Directive, kind: str, **said: Any) -> None:
        bearer = {"Authorization": f"Bearer {directive.callback_token}"}
        async with client(self._made) as http:
            path, body = f"/v1/callbacks/{kind.lower()}", reply(directive, kind, **said)
            (await http.post(path, json=body, headers=bearer)).raise_for_status()


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Stage]:
    async with plane(folder) as made, served(cast(FastAPI, made.app)) as port:
        yield Stage(made, address(port))


async def test_waiting_ends_when_the_service_has_answered(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(on.lucius("submit", "-", "--wait", "--json", stdin=OCR))
            output = {"uri": "az://outbox/a.txt"}
            tasks.create_task(on.play(status="SUCCEEDED", output_ref=output))
        run = waiting.result()
        assert run.code == 0, run.err
        assert (run.json["state"], run.json["final_output"]) == ("SUCCEEDED", "az://outbox/a.txt")
        assert "IN_PROGRESS -> SUCCEEDED" in run.err

        watched = await on.lucius("jobs", "watch", run.json["jobId"])
        assert watched.code == 0
        assert "QUEUED -> DISPATCHING" in watched.out
        assert watched.out.splitlines()[-1].split()[1:5] == [
            "job",
            "IN_PROGRESS",
            "->",
            "SUCCEEDED",
        ]


async def test_a_job_that_failed_is_found_among_the_dead_letters_and_redriven(
    tmp_path: Path,
) -> None:
    error = {"code": "ocr.NO_TEXT", "message": "no text on page 1"}
    async with stage(tmp_path) as on:
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(on.lucius("submit", "-", "--wait", stdin=OCR))
            tasks.create_task(
                on.play(status="FAILED_FINAL", failure_class="NON_RETRYABLE", error=error)
            )
        failed = waiting.result()
        assert failed.code == 1, failed.err
        assert "ocr.NO_TEXT: no text on page 1" in failed.out

        (letter,) = (await on.lucius("dead-letters", "--kind", "STEP", "--json")).json["items"]
        assert letter["code"] == "ocr.NO_TEXT"
        redriven = await on.lucius("jobs", "redrive", letter["jobId"])
        assert redriven.code == 0, redriven.err
        job_id = redriven.out.strip()
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(on.lucius("jobs", "watch", job_id, "--json"))
            tasks.create_task(on.play(status="SUCCEEDED"))
        assert watching.result().code == 0, watching.result().err
        last = json.loads(watching.result().out.splitlines()[-1])
        assert last["data"]["redrive_of"] == letter["jobId"]
