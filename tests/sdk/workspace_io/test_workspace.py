"""`ctx.workspace`: what a step writes is whole, counted, in its own folder, and named once."""

import asyncio
import hashlib
import io
import itertools
import json
import math
import threading
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from lucius_contract.errors import ErrorCode
from lucius_contract.refs import tenant_folder
from lucius_sdk.workspace_io import Input, StepFolder, Storage, Workspace
from lucius_sdk.workspace_io.streams import CHUNK
from tests.runner.deadlines import DEADLINE
from tests.runner.tiers import examples
from tests.sdk.workspace_io.stage import WORKSPACE, Checks, Stage, Stop, Uri, raises

FOLDER = f"{WORKSPACE}ocr/1/"


@pytest.mark.parametrize(
    ("tenant_id", "name"),
    [
        ("Acme & Söhne", "Acme & Söhne"),
        ("a/b", "a%2Fb"),
        ("a\\b", "a%5Cb"),
        ("..", "%2E%2E"),
        ("a%2Fb", "a%252Fb"),
        ("../../etc", "..%2F..%2Fetc"),
        ("Acme Co.", "Acme%20Co%2E"),
        ("a" * 128, "a" * 128),
    ],
)
def test_a_step_of_any_tenant_writes_in_that_tenants_one_folder(
    storage: Storage, stage: Stage, uri: Uri, tenant_id: str, name: str
) -> None:
    folder = StepFolder(storage, uri(f"lucius/{tenant_folder(tenant_id)}/job_1/"), "OCR", 1, 1)
    artifact = Workspace(folder).write("output.txt", "text")
    assert stage.visible() == {f"lucius/{name}/job_1/ocr/1/output.txt": b"text"}
    assert Input(storage, artifact.uri).read() == b"text"


def test_an_artifact_says_what_was_written(workspace: Workspace, uri: Uri, stage: Stage) -> None:
    artifact = workspace.write("pages/é 1.txt", "naïve")
    content = "naïve".encode()
    assert artifact.to_json() == {
        "name": "pages/é 1.txt",
        "uri": uri(f"{FOLDER}pages/%C3%A9%201.txt"),
        "sha256": hashlib.sha256(content).hexdigest(),
        "size": 6,
        "media_type": "text/plain; charset=utf-8",
    }
    assert stage.visible() == {f"{FOLDER}pages/é 1.txt": content}


def test_media_types_are_the_writers_choice(workspace: Workspace) -> None:
    assert workspace.write("a", b"").media_type == "application/octet-stream"
    assert workspace.write("b", memoryview(b""), "image/png").media_type == "image/png"
    assert workspace.write("c", "{}", "application/json").media_type == "application/json"
    with workspace.open("d", "application/pdf") as file:
        file.write(b"%PDF")
    assert file.artifact.media_type == "application/pdf"


class Page(BaseModel):
    number: int
    read_at: datetime


def test_json_may_hold_models_but_nothing_that_is_not_json(
    workspace: Workspace, stage: Stage
) -> None:
    page = Page(number=1, read_at=datetime(2026, 1, 1, tzinfo=UTC))
    artifact = workspace.write_json("pages.json", {"pages": [page], "title": "é"})
    written = stage.visible()[f"{FOLDER}pages.json"]
    assert json.loads(written) == {
        "pages": [{"number": 1, "read_at": "2026-01-01T00:00:00Z"}],
        "title": "é",
    }
    assert artifact.media_type == "application/json"
    with pytest.raises(ValueError, match="not JSON compliant"):
        workspace.write_json("vectors.json", [math.nan])
    assert workspace.artifacts == [artifact]


def test_artifacts_are_listed_in_the_order_in_which_they_were_finished(
    workspace: Workspace,
) -> None:
    with workspace.open("first begun") as file:
        file.write(b"1")
        inner = workspace.write("first finished", b"2")
    assert workspace.artifacts == [inner, file.artifact]


def test_an_exception_discards_what_was_written(workspace: Workspace, stage: Stage) -> None:
    def write_half() -> None:
        with workspace.open("a") as file:
            file.write(b"x" * (CHUNK + 1))
            with pytest.raises(ValueError, match="not finished"):
                _ = file.artifact
            raise Stop

    with pytest.raises(Stop):
        write_half()
    assert stage.visible() == {}
    assert stage.unfinished() == []
    assert workspace.artifacts == []


def test_the_first_exception_is_the_one_that_is_raised(folder: StepFolder) -> None:
    def write_half() -> None:
        with Workspace(folder, Checks(1)).open("a") as file:
            file.write(b"still in the buffer")
            raise KeyError

    with pytest.raises(KeyError):
        write_half()


def test_a_name_is_written_once_but_may_be_tried_again(workspace: Workspace, stage: Stage) -> None:
    with pytest.raises(Stop), workspace.open("a"):
        raise Stop
    workspace.write("a", b"first")
    with raises(ErrorCode.INTERNAL, "already written"):
        workspace.write("a", b"second")
    assert stage.visible() == {f"{FOLDER}a": b"first"}
    assert len(workspace.artifacts) == 1


def test_a_name_that_is_being_written_is_taken(workspace: Workspace) -> None:
    with workspace.open("a") as file:
        file.write(b"first")
        with raises(ErrorCode.INTERNAL, "already written"):
            workspace.write("a", b"second")
    assert file.artifact.size == 5


def test_a_writer_may_be_closed_by_what_it_was_given_to(workspace: Workspace, stage: Stage) -> None:
    with workspace.open("a") as file, io.TextIOWrapper(file, encoding="utf-8") as text:
        text.write("text")
    assert stage.visible() == {f"{FOLDER}a": b"text"}
    assert file.artifact.size == 4


def test_threads_write_side_by_side(workspace: Workspace) -> None:
    def write(number: int) -> None:
        workspace.write(f"{number}", bytes(number))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert sorted(artifact.size for artifact in workspace.artifacts) == list(range(16))


async def test_async_handlers_write_without_blocking_their_loop(workspace: Workspace) -> None:
    async with asyncio.timeout(DEADLINE):
        text, document = await asyncio.gather(
            workspace.awrite("a.txt", "text"), workspace.awrite_json("a.json", {"a": 1})
        )
    assert {a.name for a in workspace.artifacts} == {text.name, document.name}


def test_the_digest_is_that_of_all_that_was_written(stage: Stage, storage: Storage) -> None:
    attempts = itertools.count(1)

    @settings(max_examples=examples(stage.examples))
    @given(chunks=st.lists(st.binary(max_size=64) | st.just(b"x" * CHUNK), max_size=8))
    def check(chunks: list[bytes]) -> None:
        folder = StepFolder(storage, stage.uri(WORKSPACE), "OCR", next(attempts), 1)
        with Workspace(folder).open("a") as file:
            for chunk in chunks:
                file.write(chunk)
        content = Input(storage, file.artifact.uri).read()
        assert content == b"".join(chunks)
        assert file.artifact.size == len(content)
        assert file.artifact.sha256 == hashlib.sha256(content).hexdigest()

    check()


def test_work_that_must_stop_writes_nothing(folder: StepFolder, stage: Stage) -> None:
    with pytest.raises(Stop):
        Workspace(folder, Checks(0)).write("a", b"x")
    assert stage.is_untouched()


def test_work_is_stopped_between_the_chunks_of_one_write(folder: StepFolder, stage: Stage) -> None:
    check = Checks(4)
    with pytest.raises(Stop):
        Workspace(folder, check).write("a", bytes(16 * CHUNK))
    assert check.seen == 5
    assert stage.visible() == {}
    assert stage.unfinished() == []


def test_work_that_was_stopped_after_its_last_chunk_shows_nothing(
    folder: StepFolder, stage: Stage
) -> None:
    with pytest.raises(Stop):
        Workspace(folder, Checks(2)).write("a", b"x")
    assert stage.visible() == {}


@pytest.mark.parametrize(
    ("attempt_no", "epoch", "expected"),
    [(1, 1, "ocr/1/"), (3, 1, "ocr/3/"), (1, 2, "ocr/1/~2/"), (2, 11, "ocr/2/~11/")],
)
@pytest.mark.parametrize("slash", ["", "/"])
def test_no_two_runs_share_a_folder(
    storage: Storage, uri: Uri, attempt_no: int, epoch: int, expected: str, slash: str
) -> None:
    job = uri(WORKSPACE.rstrip("/"))
    folder = StepFolder(storage, job + slash, "OCR", attempt_no, epoch)
    assert folder.uri == f"{job}/{expected}"
    assert folder.uri_of("a") == f"{job}/{expected}a"


@pytest.mark.parametrize("step_type", ["", "..", "A/B", "A\\B", "A\0"])
def test_a_step_type_that_is_no_folder_name_is_refused(
    storage: Storage, uri: Uri, step_type: str
) -> None:
    with raises(ErrorCode.INTERNAL, "step type"):
        StepFolder(storage, uri(WORKSPACE), step_type, 1, 1)
