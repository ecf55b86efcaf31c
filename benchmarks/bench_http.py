"""The API beside a bare FastAPI echo of the same bodies: submits and callbacks, durable.

The API role alone in a process of its own, on SQLite with `synchronous = FULL`; the echo in
another; both on uvicorn with the same loop. They take turns under the same load. The ratio is how
much of the echo's rate is left, in terms of what is asked for: 35 % of it for submits, 50 % for
callbacks. It depends on the load: commits are grouped, so that more connections at once cost each
of them less, which is not so for the echo. With half as many, submits are a tenth slower beside it.
"""

import asyncio
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median

import pydantic_core
import uvloop

from benchmarks.http_load import answers_per_second, post
from benchmarks.report import report
from lucius_orchestrator.adapters.ledger.sqlite import SqliteLedger
from lucius_orchestrator.domain.aggregate import Aggregate
from lucius_orchestrator.ports.ledger import JobQuery
from lucius_orchestrator.security.callback_tokens import CallbackTokens

OF_SUBMITS, OF_CALLBACKS = 0.35, 0.50
JOBS, ROUNDS = 1500, 7
_KEY = secrets.token_hex(32)
_ACCEPTED = 202


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, _echo() as echo, _api(Path(folder)) as api:
        rounds = uvloop.run(_measure(echo, api, Path(folder) / "ledger.db"))
    submits, submit_echo, callbacks, callback_echo = map(median, zip(*rounds, strict=True))
    of_submits = median(own / other for own, other, _, _ in rounds)
    of_callbacks = median(own / other for _, _, own, other in rounds)
    report(
        "http",
        min(of_submits / OF_SUBMITS, of_callbacks / OF_CALLBACKS),
        1.0,
        submits_of_echo=of_submits,
        callbacks_of_echo=of_callbacks,
        submits_per_second=submits,
        callbacks_per_second=callbacks,
        echo_of_submits_per_second=submit_echo,
        echo_of_callbacks_per_second=callback_echo,
    )


async def _measure(echo: str, api: str, ledger: Path) -> list[tuple[float, float, float, float]]:
    rounds = []
    for number in range(ROUNDS + 1):
        bodies = [_envelope(number * JOBS + job) for job in range(JOBS)]
        submits = [post("/v1/orchestrate", body) for body in bodies]
        own = await answers_per_second(api, submits, _ACCEPTED)
        other = await answers_per_second(echo, [post("/echo", body) for body in bodies])
        replies = await _replies(ledger)
        callbacks = await answers_per_second(api, [post(*reply) for reply in replies])
        plain = [post("/echo", body) for _, body, _ in replies]
        rounds.append((own, other, callbacks, await answers_per_second(echo, plain)))
        print(" ".join(f"{rate:.0f}/s" for rate in rounds[-1]), file=sys.stderr)
    return rounds[1:]  # the first warms up


def _envelope(number: int) -> bytes:
    return pydantic_core.to_json(
        {
            "tenant_id": f"tenant-{number % 50}",
            "request_type": "OCR",
            "input_ref": {"uri": f"az://inbox/{number}.pdf"},
            "output_ref": {"uri": f"az://outbox/{number}.json"},
            "payload": {"dpi": 300, "languages": ["eng"]},
            "schema_version": "1",
        }
    )


async def _replies(file: Path) -> Sequence[tuple[str, bytes, Mapping[str, str]]]:
    """An ACK and a RESULT for each of the newest jobs, all ACKs first."""
    tokens = CallbackTokens([_KEY.encode()], partial(datetime.now, UTC))
    ledger = await SqliteLedger.open(file)
    try:
        jobs = await _newest(ledger)
    finally:
        await ledger.close()
    acks = [_reply("ack", tokens, job, {"status": "ACKED"}) for job in jobs]
    results = [_reply("result", tokens, job, {"status": "SUCCEEDED"}) for job in jobs]
    return [*acks, *results]


async def _newest(ledger: SqliteLedger) -> list[Aggregate]:
    found: list[Aggregate] = []
    cursor = None
    while len(found) < JOBS:
        page = await ledger.jobs(JobQuery(limit=100, cursor=cursor))
        stored = [await ledger.load(job.job_id) for job in page.items]
        found += [one.aggregate for one in stored if one is not None]
        cursor = page.cursor
    return found[:JOBS]


def _reply(
    kind: str, tokens: CallbackTokens, job: Aggregate, said: Mapping[str, str]
) -> tuple[str, bytes, Mapping[str, str]]:
    step = job.active
    identity = (job.job.job_id, step.step_id, step.attempt_no, str(step.lease_id))
    body = {
        "type": kind.upper(),
        **dict(zip(("jobId", "stepId", "attempt_no", "lease_id"), identity, strict=True)),
        "tenant_id": job.job.tenant_id,
        "timestamp": "2026-11-16T09:00:00Z",
        "correlation_id": job.job.correlation_id,
        **said,
    }
    token = tokens.issue(*identity, datetime.now(UTC) + timedelta(hours=1))
    authorization = {"Authorization": f"Bearer {token}"}
    return f"/v1/callbacks/{kind}", pydantic_core.to_json(body), authorization


@contextmanager
def _echo() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with _running([sys.executable, "-m", "benchmarks.http_echo", str(port)]):
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _api(folder: Path) -> Iterator[str]:
    settings = {"LUCIUS_CALLBACK_KEYS": _KEY, "LUCIUS_DATA_DIR": str(folder), "LUCIUS_PORT": "0"}
    quiet = {"LUCIUS_LOG_LEVEL": "ERROR"}
    command = [sys.executable, "-m", "lucius_cli", "serve", "api"]
    with _running(command, {**os.environ, **settings, **quiet}) as server:
        assert server.stdout is not None, "it is a pipe"
        line = server.stdout.readline()
        yield next(word for word in line.split() if word.startswith("api=")).removeprefix("api=")


@contextmanager
def _running(
    command: Sequence[str], environ: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield server
        finally:
            server.terminate()


def _wait_for(port: int) -> None:
    for _ in range(500):
        with socket.socket() as probe:
            probe.settimeout(0.05)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
            asyncio.run(asyncio.sleep(0.05))
    raise TimeoutError("the echo did not start")


if __name__ == "__main__":
    main()
