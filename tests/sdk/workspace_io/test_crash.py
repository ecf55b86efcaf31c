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
from lucius_sdk.workspace_io import publish
from tests.sdk.workspace_io.reopening import BLOCK
from tests.sdk.workspace_io.stage import LocalStage, Stage, fence, raises

REPOSITORY = Path(__file__).parents[3]
LARGE = 3 * BLOCK

BEGINNING = """
import pkgutil, sys
from lucius_contract.documents import Ref
from lucius_sdk.workspace_io import Fence, StepFolder, Workspace, publish
from tests.sdk.workspace_io.reopening import reopened

root, connection, *arguments = sys.argv[1:]
storage = reopened(root, connection)
output = Ref(uri=f"{root}/out")

def fence(attempt_no):
    return Fence("acme", "job_1", "step_03", attempt_no, 1)

def reached():
    print("reached", flush=True)
    sys.stdin.read()
"""

WRITING = """
folder = StepFolder(storage, f"{root}/job/", "OCR", 1, 1)
with Workspace(folder).open("output.bin") as file:
    file.write(bytes(4 * 1024 * 1024))
    file.flush()
    reached()
"""

# Of the moments, "before" is when a function is called, "after" when it has returned.
PUBLISHING = """
when, place, size = arguments
holder, _, name = place.rpartition(".")
owner = pkgutil.resolve_name(holder)
original = getattr(owner, name)

def stop(*given, **named):
    if when == "after":
        original(*given, **named)
    reached()

setattr(owner, name, stop)
publish(storage, output, b"2" * int(size), fence(2))
"""

PUBLISHING_ON = """
for number in range(1, 1_000_000):
    publish(storage, output, f"{number:08d}".encode() * 100_000, fence(number))
    print(number, flush=True)
"""

CLIENT = "azure.storage.blob.BlobClient"
UPLOAD = "lucius_sdk.workspace_io.s3.uploading.Upload"
BEFORE_IT_IS_PUBLISHED = [
    ("local", "before", "os.fsync", 10),
    ("local", "before", "os.pwrite", 10),
    ("local", "before", "os.replace", 10),
    ("blob", "before", f"{CLIENT}.upload_blob", 10),
    ("blob", "after", f"{CLIENT}.stage_block", LARGE),
    ("blob", "before", f"{CLIENT}.commit_block_list", LARGE),
    ("s3", "before", f"{UPLOAD}.commit", 10),
    ("s3", "before", f"{UPLOAD}.commit", LARGE),
]
ONCE_IT_IS_PUBLISHED = [
    ("local", "after", "os.replace", 10),
    ("blob", "after", f"{CLIENT}.upload_blob", 10),
    ("blob", "after", f"{CLIENT}.commit_block_list", LARGE),
    ("s3", "after", f"{UPLOAD}.commit", 10),
    ("s3", "after", f"{UPLOAD}.commit", LARGE),
]


def moments(which: list[tuple[str, str, str, int]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("stage", "when", "place", "size"), which, indirect=["stage"])


@contextmanager
def running(script: str, stage: Stage, *arguments: object) -> Iterator[Iterator[str]]:
    """The lines that it writes; it is killed at the end."""
    words = [*stage.words(), *map(str, arguments)]
    command = [sys.executable, "-c", BEGINNING + script, *words]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    ) as process:
        assert process.stdout is not None
        try:
            yield iter(process.stdout)
        finally:
            process.kill()


def test_a_kill_in_mid_write_leaves_nothing_visible(stage: Stage) -> None:
    with running(WRITING, stage) as lines:
        assert next(lines) == "reached\n"
        assert stage.visible() == {}
    assert stage.visible() == {}


def test_what_a_killed_process_wrote_lies_in_a_hidden_file(local_stage: LocalStage) -> None:
    with running(WRITING, local_stage) as lines:
        assert next(lines) == "reached\n"
    sizes = [Path(name).stat().st_size for name in local_stage.unfinished()]
    assert sizes == [4 * 1024 * 1024]


@moments(BEFORE_IT_IS_PUBLISHED)
def test_a_kill_in_mid_publish_leaves_the_former_object_whole(
    stage: Stage, when: str, place: str, size: int
) -> None:
    output = Ref(uri=stage.uri("out"))
    publish(stage.storage, output, b"first", fence(1))
    with running(PUBLISHING, stage, when, place, size) as lines:
        assert next(lines) == "reached\n"
    assert stage.visible() == {"out": b"first"}
    publish(stage.storage, output, b"3" * size, fence(3))
    assert stage.visible() == {"out": b"3" * size}


@moments(ONCE_IT_IS_PUBLISHED)
def test_who_has_published_keeps_older_runs_out_even_when_killed(
    stage: Stage, when: str, place: str, size: int
) -> None:
    output = Ref(uri=stage.uri("out"))
    publish(stage.storage, output, b"first", fence(1))
    with running(PUBLISHING, stage, when, place, size) as lines:
        assert next(lines) == "reached\n"
    assert stage.visible() == {"out": b"2" * size}
    with raises(ErrorCode.OUTPUT_CONFLICT, "attempt 2"):
        publish(stage.storage, output, b"first again", fence(1))
    publish(stage.storage, output, b"second again", fence(2))
    assert stage.visible() == {"out": b"second again"}


def test_a_file_whose_fence_was_written_keeps_older_runs_out_even_without_content(
    local_stage: LocalStage,
) -> None:
    storage, output = local_stage.storage, Ref(uri=local_stage.uri("out"))
    publish(storage, output, b"first", fence(1))
    with running(PUBLISHING, local_stage, "before", "os.replace", 10) as lines:
        assert next(lines) == "reached\n"
    with raises(ErrorCode.OUTPUT_CONFLICT, "attempt 2"):
        publish(storage, output, b"first again", fence(1))
    publish(storage, output, b"second", fence(2))
    assert local_stage.visible() == {"out": b"second"}


def test_whenever_it_is_killed_the_object_is_whole_and_no_older_than_what_was_answered(
    stage: Stage,
) -> None:
    with running(PUBLISHING_ON, stage) as lines:
        answered = [int(next(lines)) for _ in range(10)][-1]
    content = stage.visible()["out"]
    number = int(content[:8])
    assert content == f"{number:08d}".encode() * 100_000
    assert number >= answered
