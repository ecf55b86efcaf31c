"""An upload beside what nobody can do without: reading a file to hash it, and copying it.

The API role in a process of its own, on SQLite and files. The client knows the digest of the
content before, as whoever copies knows where to; what is measured is everything from the
announcement to the commit: parts over HTTP, written and made durable, read back, hashed, committed.
The other side hashes the same file and copies it, and need not even make the copy durable; what one
that does would take is shown beside it. They take turns, and nothing of one round is left for the
next. Each begins with memory that was in use a moment ago: on a virtual machine, pages that are
touched for the first time cost more than all of the work.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import file_digest, sha256
from pathlib import Path
from shutil import copyfile
from statistics import median

from benchmarks.report import report
from lucius_artifacts.client import ArtifactsClient
from lucius_artifacts.client.sources import Count, FileSource, Measured

TARGET = 0.60
BLOCK = 1024**2
BLOCKS = 512
ROUNDS = 7


class Known(FileSource):
    """A file whose digest was known before."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._measured = super().measure(lambda _: None)

    def measure(self, count: Count) -> Measured:  # noqa: ARG002 - nothing is read
        return self._measured


def main() -> None:
    rounds = [_round() for _ in range(ROUNDS + 1)][1:]  # the first warms up
    own, plain, durable = map(median, zip(*rounds, strict=True))
    report(
        "artifacts",
        median(ours / theirs for ours, theirs, _ in rounds),
        TARGET,
        upload_mb_per_second=own,
        hash_and_copy_mb_per_second=plain,
        hash_and_durable_copy_mb_per_second=durable,
        of_a_durable_copy=median(ours / theirs for ours, _, theirs in rounds),
    )


def _round() -> tuple[float, float, float]:
    with tempfile.TemporaryDirectory() as folder:
        path, copy = Path(folder, "content"), Path(folder, "copy")
        _write(path)
        source = Known(path)
        with _api(Path(folder, "data")) as url, ArtifactsClient(url) as client:
            _touch_memory(Path(folder))
            own = _rate(lambda: client.upload(source, "bench", prove=False))
        _touch_memory(Path(folder))
        plain = _rate(lambda: _hash_and_copy(path, copy))
        _touch_memory(Path(folder))
        durable = _rate(lambda: _hash_and_copy(path, copy, _sync))
    print(f"{own:.0f} MB/s beside {plain:.0f} and {durable:.0f}", file=sys.stderr)
    return own, plain, durable


def _touch_memory(folder: Path) -> None:
    """Have the file cache use as much as the work will, and give it back."""
    scratch = folder / "scratch"
    with scratch.open("wb") as file:
        for _ in range(2 * BLOCKS):
            file.write(bytes(BLOCK))
    scratch.unlink()


def _write(path: Path) -> None:
    block = os.urandom(BLOCK)
    with path.open("wb") as file:
        for number in range(BLOCKS):
            file.write(number.to_bytes(8) + block[8:])
        file.flush()
        os.fsync(file.fileno())


def _rate(work: Callable[[], object]) -> float:
    """In MB/s, of 10^6 bytes."""
    start = time.perf_counter()
    work()
    return BLOCK * BLOCKS / 1e6 / (time.perf_counter() - start)


def _hash_and_copy(path: Path, copy: Path, then: Callable[[Path], None] | None = None) -> None:
    copy.unlink(missing_ok=True)
    with path.open("rb") as file:
        file_digest(file, sha256)
    copyfile(path, copy)
    if then is not None:
        then(copy)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


@contextmanager
def _api(data: Path) -> Iterator[str]:
    settings = {"LUCIUS_DATA_DIR": str(data), "LUCIUS_PORT": "0", "LUCIUS_LOG_LEVEL": "ERROR"}
    server = subprocess.Popen(
        [sys.executable, "-m", "lucius_cli", "serve", "api"],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None, "it is a pipe"
        line = server.stdout.readline()
        yield next(word for word in line.split() if word.startswith("api=")).removeprefix("api=")
    finally:
        server.terminate()
        server.communicate()


if __name__ == "__main__":
    main()
