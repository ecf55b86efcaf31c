"""A process that is killed leaves nothing half-written in sight, and no fence that lets an older
run through."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lucius_contract.documents import Ref
from lucius_contract.errors import ErrorCode
from lucius_sdk.workspace_io import LocalStorage, publish
from tests.sdk.workspace_io.stage import Uri, fence, raises, unfinished, visible

BEGINNING = """
import os, sys
from pathlib import Path
from lucius_contract.documents import Ref
from lucius_sdk.workspace_io import Fence, LocalStorage, StepFolder, Workspace, publish

root = Path(sys.argv[1])
storage = LocalStorage(root)
output = Ref(uri=f"{root.as_uri()}/out")

def fence(attempt_no):
    return Fence("job_1", "step_03", attempt_no, 1)

def reached():
    print("reached", flush=True)
    sys.stdin.read()
"""

WRITING = """
folder = StepFolder(storage, f"{root.as_uri()}/job/", "OCR", 1, 1)
with Workspace(folder).open("output.bin") as file:
    file.write(bytes(4 * 1024 * 1024))
    file.flush()
    reached()
"""

PUBLISHING = """
def stop(*_):
    reached()

setattr(os, sys.argv[2], stop)
publish(storage, output, b"second", fence(2))
"""

PUBLISHING_ON = """
for number in range(1, 1_000_000):
    publish(storage, output, f"{number:08d}".encode() * 100_000, fence(number))
    print(number, flush=True)
"""


@contextmanager
def running(script: str, root: Path, *arguments: str) -> Iterator[Iterator[str]]:
    """The lines that it writes; it is killed at the end."""
    command = [sys.executable, "-c", BEGINNING + script, str(root), *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield iter(process.stdout)
        finally:
            process.kill()


def test_a_kill_in_mid_write_leaves_nothing_visible(root: Path) -> None:
    with running(WRITING, root) as lines:
        assert next(lines) == "reached\n"
        assert visible(root) == {}
    assert visible(root) == {}
    assert [path.stat().st_size for path in unfinished(root)] == [4 * 1024 * 1024]


@pytest.mark.parametrize("moment", ["fsync", "pwrite", "replace"])
def test_a_kill_in_mid_publish_leaves_the_former_object_whole(
    storage: LocalStorage, root: Path, uri: Uri, moment: str
) -> None:
    output = Ref(uri=uri("out"))
    publish(storage, output, b"first", fence(1))
    with running(PUBLISHING, root, moment) as lines:
        assert next(lines) == "reached\n"
    assert visible(root) == {"out": b"first"}
    publish(storage, output, b"third", fence(3))
    assert visible(root) == {"out": b"third"}


def test_who_has_begun_to_publish_keeps_older_runs_out_even_when_killed(
    storage: LocalStorage, root: Path, uri: Uri
) -> None:
    output = Ref(uri=uri("out"))
    publish(storage, output, b"first", fence(1))
    with running(PUBLISHING, root, "replace") as lines:
        assert next(lines) == "reached\n"
    with raises(ErrorCode.OUTPUT_CONFLICT, "attempt 2"):
        publish(storage, output, b"first again", fence(1))
    publish(storage, output, b"second", fence(2))
    assert visible(root) == {"out": b"second"}


def test_whenever_it_is_killed_the_object_is_whole_and_no_older_than_what_was_answered(
    root: Path,
) -> None:
    with running(PUBLISHING_ON, root) as lines:
        answered = [int(next(lines)) for _ in range(10)][-1]
    content = (root / "out").read_bytes()
    number = int(content[:8])
    assert content == f"{number:08d}".encode() * 100_000
    assert number >= answered
