"""The emulator under the real client: messages of 1 kB that are sent, received and completed.

One process sends in batches of a hundred, one receives and completes each message, the emulator
runs in a third. The ratio is the CPU time of the emulator beside that of the two clients, of the
same run: whoever tests against the emulator pays for the client in any case. It must not exceed
40 %. Also printed: how many messages a second went all the way, with the journal and without.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.bus_client import QUEUE
from benchmarks.report import report
from servicebus_emulator.broker import QueueSettings
from servicebus_emulator.journal import Journal
from servicebus_emulator.server import Emulator

TARGET = 0.40
MESSAGES, ROUNDS = 10_000, 5


def main() -> None:
    in_memory = [asyncio.run(_round(None)) for _ in range(ROUNDS)]
    with tempfile.TemporaryDirectory() as folder:
        kept = [asyncio.run(_round(Path(folder) / str(n))) for n in range(ROUNDS)]
    report(
        "bus",
        median(server / clients for server, clients, _ in in_memory),
        TARGET,
        at_most=True,
        messages_per_second=median(rate for _, _, rate in in_memory),
        server_us_per_message=median(server for server, _, _ in in_memory) / MESSAGES * 1e6,
        clients_us_per_message=median(clients for _, clients, _ in in_memory) / MESSAGES * 1e6,
        ratio_with_journal=median(server / clients for server, clients, _ in kept),
        messages_per_second_with_journal=median(rate for _, _, rate in kept),
    )


async def _round(folder: Path | None) -> tuple[float, float, float]:
    """CPU seconds of the server and of the clients, and messages a second."""
    async with _emulator(folder) as (connection, server):
        sender, receiver = await _client("send", connection), await _client("receive", connection)
        before = _cpu_of(server)
        for client in (sender, receiver):
            assert client.stdin is not None
            client.stdin.write(b"go\n")
        sent, received = await _said(sender), await _said(receiver)
        used = _cpu_of(server) - before
    clients = sent["cpu"] + received["cpu"]
    rate = MESSAGES / (received["ended"] - sent["began"])
    print(f"{rate:.0f}/s, server {used / clients:.0%} of the clients", file=sys.stderr)
    return used, clients, rate


async def _client(task: str, connection: str) -> asyncio.subprocess.Process:
    process = await _python("-m", "benchmarks.bus_client", task, connection, str(MESSAGES))
    assert process.stdout is not None
    assert (await process.stdout.readline()).strip() == b"ready"
    return process


async def _said(client: asyncio.subprocess.Process) -> dict[str, Any]:
    output, _ = await client.communicate()
    said: dict[str, Any] = json.loads(output)
    return said


@asynccontextmanager
async def _emulator(folder: Path | None) -> AsyncIterator[tuple[str, int]]:
    process = await _python("-m", "benchmarks.bench_bus", "serve", str(folder or ""))
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip(), process.pid
    finally:
        process.kill()
        await process.wait()


async def _python(*arguments: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=pipe, stdout=pipe)


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _serve(folder: str) -> None:
    emulator = Emulator(journal=Journal(Path(folder)) if folder else None)
    emulator.broker.create_queue(QUEUE, QueueSettings())
    await emulator.start()
    print(emulator.connection_string, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        import uvloop

        uvloop.run(_serve(sys.argv[2]))
    else:
        main()
