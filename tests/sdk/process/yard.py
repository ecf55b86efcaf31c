"""An emulator with short locks in this process, and services in others."""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from lucius_bus.topology import Topology, lane_topology
from lucius_contract.routing import LANES, directive_topic
from lucius_orchestrator.adapters.bus.embedded import EmbeddedBus
from servicebus_emulator.broker import Record
from servicebus_emulator.server import Emulator
from tests.runner.deadlines import PROCESS_DEADLINE

SERVICE = Path(__file__).with_name("service.py")
ROOT = Path(__file__).parents[3]


@dataclass(slots=True)
class RunningService:
    process: asyncio.subprocess.Process
    health: str
    log: Path

    async def ended(self) -> int:
        async with asyncio.timeout(PROCESS_DEADLINE):
            return await self.process.wait()

    async def line(self) -> str:
        """Return the next line that it prints."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PROCESS_DEADLINE):
            return (await self.process.stdout.readline()).decode()

    async def stop(self) -> int:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        return await self.ended()


class Changes:
    """In the place of a journal: it keeps nothing, and tells when there is something to keep."""

    wants_compaction = False

    def __init__(self) -> None:
        self.came = asyncio.Event()

    def load(self) -> Iterable[Record]:
        return ()

    def record(self, _record: Record, /) -> None:
        self.came.set()

    def flush(self) -> None: ...

    def compact(self, _records: Iterable[Record], /) -> None: ...


class Yard:
    def __init__(self, folder: Path, emulator: Emulator, changes: Changes) -> None:
        self.folder = folder
        self._changed = changes.came
        self.emulator = emulator
        self.bus = EmbeddedBus(emulator)
        self.runs_file = folder / "runs"
        self.workspace = folder / "workspace"
        self._count = 0

    @property
    def runs(self) -> Counter[str]:
        """How often each job was worked on."""
        if not self.runs_file.exists():
            return Counter()
        return Counter(self.runs_file.read_text().split())

    async def empty(self, name: str, deadline: float = PROCESS_DEADLINE) -> None:
        """Wait until the service has settled all its directives."""
        broker = self.emulator.broker
        addresses = [f"{directive_topic(lane)}/Subscriptions/{name}" for lane in range(LANES)]
        async with asyncio.timeout(deadline):
            while any(broker.counts(address).active for address in addresses):
                self._changed.clear()
                await self._changed.wait()

    async def start(self, name: str, **environ: str) -> tuple[asyncio.subprocess.Process, Path]:
        """A service, and its log."""
        self._count += 1
        log = self.folder / f"{name}-{self._count}.log"
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("LUCIUS_", "OTEL_"))}
        given = {
            "LUCIUS_SERVICE": name,
            "LUCIUS_SERVICEBUS_CONNECTION": self.emulator.connection_string,
            "LUCIUS_WORKSPACE_ROOT": str(self.workspace),
            "LUCIUS_DEDUP_STORE": f"sqlite://{self.folder}/{name}.db",
            "LUCIUS_HEALTH_PORT": "0",
            "LUCIUS_MAX_CLOCK_SKEW": "0.5",
            "TEST_RUNS": str(self.runs_file),
            "PYTHONPATH": str(ROOT),
        }
        with log.open("w") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                SERVICE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env={**inherited, **given, **environ},
                start_new_session=True,
            )
        return process, log

    @asynccontextmanager
    async def service(self, name: str, **environ: str) -> AsyncIterator[RunningService]:
        """Started, and ready to take directives; killed in the end if it still runs."""
        process, log = await self.start(name, **environ)
        try:
            assert process.stdout is not None
            async with asyncio.timeout(PROCESS_DEADLINE):
                line = (await process.stdout.readline()).decode()
            assert line.startswith("ready "), line + log.read_text()
            health = dict(part.split("=", 1) for part in line.split()[1:])["health"]
            yield RunningService(process, health, log)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()


def short_locks(services: Iterable[str], lock: timedelta) -> Topology:
    topics = lane_topology(services).topics
    return Topology(
        {
            topic: tuple(replace(each, lock_duration=lock) for each in subscriptions)
            for topic, subscriptions in topics.items()
        }
    )


@asynccontextmanager
async def open_yard(folder: Path, services: Iterable[str], lock: timedelta) -> AsyncIterator[Yard]:
    changes = Changes()
    emulator = Emulator(journal=changes)
    await emulator.start()
    try:
        yard = Yard(folder, emulator, changes)
        yard.bus.apply(short_locks(services, lock))
        yield yard
    finally:
        await emulator.stop()
