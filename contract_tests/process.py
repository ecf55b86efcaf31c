"""The service under test, as a process: started, killed, frozen, told to stop."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import aiohttp

from contract_tests.contract import LoadedContract
from contract_tests.verdicts import HarnessFault
from orchestrator_mock import Recording, What

_LOOK = 0.05
_TAIL = 4000
_HIDDEN = ("LUCIUS_", "OTEL_")
_REQUEST = aiohttp.ClientTimeout(total=3)


class ServiceProcess:
    """In a session of its own, so that whatever it starts ends with it."""

    def __init__(
        self,
        loaded: LoadedContract,
        environment: Mapping[str, str],
        log: Path,
        recording: Recording,
    ) -> None:
        self._loaded = loaded
        self._environment = environment
        self._log = log
        self._recording = recording
        self._process: asyncio.subprocess.Process | None = None
        port = environment["LUCIUS_HEALTH_PORT"]
        self.health = loaded.contract.health.replace("{health_port}", port).rstrip("/")

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode if self._process else None

    async def start(self) -> None:
        """Returns when it is ready. `HarnessFault` if it does not become so."""
        await self.launch()
        await self._until_ready(self._loaded.contract.startup_seconds)

    async def launch(self) -> None:
        """Returns at once. `HarnessFault` if it cannot be started."""
        contract = self._loaded.contract
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(_HIDDEN)}
        command = [_filled(part, self._environment) for part in contract.command]
        extra = {k: _filled(v, self._environment) for k, v in contract.environment.items()}
        given = {k: v for k, v in self._environment.items() if k.startswith("LUCIUS_")}
        try:
            with self._log.open("ab") as log:
                self._process = await asyncio.create_subprocess_exec(
                    *command,
                    cwd=self._loaded.folder / contract.working_directory,
                    env={**inherited, **extra, **given},
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:
            raise HarnessFault(f"{' '.join(command)} cannot be started: {error}") from error
        self._note("the service is started")

    async def is_ready(self) -> bool:
        return await self.answer("/healthz/ready") == 200

    async def answer(self, path: str) -> int | None:
        """The status that its health server gives; None if it gives none."""
        try:
            async with (
                aiohttp.ClientSession(timeout=_REQUEST) as session,
                session.get(self.health + path) as response,
            ):
                return response.status
        except (aiohttp.ClientError, TimeoutError, OSError):
            return None

    async def until(self, is_so: bool, within: float) -> float | None:
        """Wait until it is ready, or is not; how long that took, None if it took longer."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while await self.is_ready() is not is_so:
            if loop.time() - began > within:
                return None
            await asyncio.sleep(_LOOK)
        return loop.time() - began

    async def kill(self) -> None:
        """SIGKILL, to all that it has started too."""
        if self._process is None:
            return
        if self.is_running:
            self._note("the service is killed")
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    def terminate(self) -> None:
        self._note("SIGTERM is sent to the service")
        self._signal(signal.SIGTERM)

    def freeze(self) -> None:
        self._note("the service is frozen")
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._note("the service goes on")
        self._signal_all(signal.SIGCONT)

    async def ended(self, within: float) -> int | None:
        """Its exit code; None if it did not end in that time."""
        if self._process is None:
            return None
        try:
            async with asyncio.timeout(within):
                code = await self._process.wait()
        except TimeoutError:
            return None
        self._note(f"the service ended with exit code {code}")
        return code

    def log_tail(self) -> str:
        try:
            return self._log.read_bytes()[-_TAIL:].decode(errors="replace")
        except OSError:
            return ""

    async def _until_ready(self, within: float) -> None:
        loop = asyncio.get_running_loop()
        ends = loop.time() + within
        while not await self.is_ready():
            if not self.is_running:
                raise HarnessFault(
                    f"the service ended with exit code {self.exit_code} before it was ready:\n"
                    + self.log_tail()
                )
            if loop.time() > ends:
                raise HarnessFault(
                    f"{self.health}/healthz/ready was not answered 200 within {within:g} s:\n"
                    + self.log_tail()
                )
            await asyncio.sleep(_LOOK)
        self._note("the service is ready")

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def _signal_all(self, number: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _note(self, text: str) -> None:
        self._recording.add(What.NOTE, detail=text)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Only the placeholders that are known: a command may have braces of its own."""
    known = {
        "{folder}": values["folder"],
        "{state}": values["state"],
        "{health_port}": values["LUCIUS_HEALTH_PORT"],
        "{python}": sys.executable,
    }
    for name, value in known.items():
        text = text.replace(name, value)
    return text
