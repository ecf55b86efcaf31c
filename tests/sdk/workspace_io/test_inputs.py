"""`ctx.input` and `ctx.prior`: what a step reads, and that it is what was written."""

import asyncio
import hashlib
import io
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_contract.documents import Artifact
from lucius_contract.errors import ErrorCode
from lucius_sdk.workspace_io import Input, PriorArtifact, PriorArtifacts, Storage, Storages
from lucius_sdk.workspace_io.streams import CHUNK, always_open, open_checked
from tests.runner.deadlines import DEADLINE
from tests.sdk.workspace_io.stage import Checks, Stage, Stop, Uri, artifact_of, raises

CONTENT = bytes(range(256)) * 4096  # four chunks


@pytest.fixture
def file(stage: Stage) -> str:
    stage.put(stage.uri("input.bin"), CONTENT)
    return stage.uri("input.bin")


async def test_an_input_is_read_whole_or_as_a_stream(storage: Storage, file: str) -> None:
    given_input = Input(storage, file)
    assert given_input.read() == CONTENT
    async with asyncio.timeout(DEADLINE):
        assert await given_input.aread() == CONTENT
    with given_input.open() as stream:
        assert stream.read(3) == CONTENT[:3]
        assert stream.read() == CONTENT[3:]
    assert stream.closed


def test_an_input_of_a_storage_can_be_sought_in(storage: Storage, file: str) -> None:
    with Input(storage, file).open() as stream:
        stream.seek(-4, io.SEEK_END)
        assert stream.read() == CONTENT[-4:]
        stream.seek(0)
        assert stream.tell() == 0
        assert stream.read(4) == CONTENT[:4]


def test_what_is_read_passes_for_a_file_of_the_standard_library(
    stage: Stage, storage: Storage, uri: Uri
) -> None:
    stage.put(uri("text"), b"a\nb\n")
    prior = PriorArtifact(storage, artifact_of(b"a\nb\n", uri("text")))
    for opened in (Input(storage, uri("text")).open, prior.open):
        with opened() as stream:
            assert hashlib.file_digest(stream, "sha256").hexdigest() == prior.artifact.sha256
        with io.TextIOWrapper(opened(), encoding="utf-8") as lines:
            assert list(lines) == ["a\n", "b\n"]


def test_a_digest_is_not_made_of_something_else(stage: Stage, storage: Storage, uri: Uri) -> None:
    stage.put(uri("text"), b"changed")
    prior = PriorArtifact(storage, artifact_of(b"written", uri("text")))
    with prior.open() as stream, raises(ErrorCode.INPUT_INVALID):
        hashlib.file_digest(stream, "sha256")


async def test_an_input_over_the_limit_is_not_read(storage: Storage, file: str) -> None:
    assert Input(storage, file).read(limit=len(CONTENT)) == CONTENT
    with raises(ErrorCode.INPUT_TOO_LARGE):
        Input(storage, file).read(limit=len(CONTENT) - 1)
    with raises(ErrorCode.INPUT_TOO_LARGE):
        await Input(storage, file).aread(limit=0)


def test_a_generous_limit_takes_no_memory(storage: Storage, file: str) -> None:
    tracemalloc.start()
    Input(storage, file).read(limit=500_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * len(CONTENT)


def test_an_input_that_is_not_there_is_not_found(storage: Storage, uri: Uri) -> None:
    with raises(ErrorCode.INPUT_NOT_FOUND):
        Input(storage, uri("absent")).read()


def test_work_that_must_stop_reads_nothing(storage: Storage, file: str) -> None:
    with pytest.raises(Stop):
        Input(storage, file, Checks(0)).open()
    artifact = artifact_of(CONTENT, file)
    with pytest.raises(Stop):
        PriorArtifact(storage, artifact, Checks(0)).open()


def test_work_is_stopped_between_chunks(storage: Storage, file: str) -> None:
    check = Checks(3)
    with pytest.raises(Stop):
        Input(storage, file, check).read()
    assert check.seen == 4
    with Input(storage, file, Checks(2)).open() as stream:
        assert stream.read(CHUNK) == CONTENT[:CHUNK]
        with pytest.raises(Stop):
            stream.read(1)


def tampered(content: bytes) -> list[bytes]:
    return [content[:-1], content + b"x", content[:-1] + b"x", b"", b"x" + content[1:]]


async def test_a_prior_artifact_is_what_was_written(storage: Storage, file: str) -> None:
    prior = PriorArtifact(storage, artifact_of(CONTENT, file))
    assert prior.read() == prior.read(limit=len(CONTENT)) == CONTENT
    async with asyncio.timeout(DEADLINE):
        assert await prior.aread() == CONTENT
    with prior.open() as stream:
        assert not stream.seekable()
        assert b"".join(iter(lambda: stream.read(1000), b"")) == CONTENT
    with raises(ErrorCode.INPUT_TOO_LARGE):
        prior.read(limit=len(CONTENT) - 1)


@pytest.mark.parametrize("other", tampered(CONTENT))
def test_another_content_is_refused(
    stage: Stage, storage: Storage, file: str, other: bytes
) -> None:
    prior = PriorArtifact(storage, artifact_of(CONTENT, file))
    stage.put(file, other)
    with raises(ErrorCode.INPUT_INVALID, r"output\.txt"):
        prior.read()
    with prior.open() as stream, raises(ErrorCode.INPUT_INVALID):
        while stream.read(1000):
            pass


def test_an_empty_artifact_is_verified_as_well(stage: Stage, storage: Storage, file: str) -> None:
    stage.put(file, b"")
    assert PriorArtifact(storage, artifact_of(b"", file)).read() == b""
    wrong = artifact_of(b"x", file).model_copy(update={"size": 0})
    with raises(ErrorCode.INPUT_INVALID, "SHA-256"):
        PriorArtifact(storage, wrong).read()


@given(
    content=st.binary(min_size=1, max_size=64),
    other=st.binary(max_size=64),
    sizes=st.lists(st.integers(1, 70), min_size=1),
)
def test_no_reader_gets_all_the_bytes_of_a_wrong_artifact(
    content: bytes, other: bytes, sizes: list[int]
) -> None:
    expected = artifact_of(content, "file:///a")
    stream = open_checked(io.BytesIO(other), always_open, expected)
    if other == content:
        assert stream.read() == content
        return
    got = b""
    with raises(ErrorCode.INPUT_INVALID):
        for size in sizes * 64:
            got += stream.read(size)
    assert len(got) < len(content)
    with raises(ErrorCode.INPUT_INVALID):
        stream.read()


@given(content=st.binary(min_size=1, max_size=64), data=st.data())
def test_who_reads_just_as_many_bytes_as_were_written_gets_no_wrong_ones(
    content: bytes, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(content) - 1))
    wrong = bytearray(content)
    wrong[place] ^= data.draw(st.integers(1, 255))
    stream = open_checked(io.BytesIO(wrong), always_open, artifact_of(content, "file:///a"))
    with raises(ErrorCode.INPUT_INVALID, "SHA-256"):
        stream.read(len(content))


def test_prior_artifacts_are_a_mapping_of_step_types(storage: Storage, file: str) -> None:
    artifact = artifact_of(CONTENT, file)
    prior = PriorArtifacts(storage, {"OCR": [artifact], "SPLIT": []})
    assert list(prior) == ["OCR", "SPLIT"]
    assert len(prior) == 2
    assert [one.artifact for one in prior["OCR"]] == [artifact]
    assert prior.find("OCR", "output.txt").read() == CONTENT


@pytest.mark.parametrize(
    ("artifacts", "told"),
    [({}, "no artifacts at all"), ({"OCR": ["a.txt"]}, r"there is OCR: a\.txt")],
)
def test_an_artifact_that_no_step_wrote_is_not_found(
    storage: Storage, artifacts: dict[str, list[str]], told: str
) -> None:
    written = {
        step: [artifact_of(b"", "file:///a", name) for name in names]
        for step, names in artifacts.items()
    }
    with raises(ErrorCode.INPUT_NOT_FOUND, told):
        PriorArtifacts(storage, written).find("OCR", "output.txt")


def test_of_several_artifacts_of_one_name_the_last_counts(storage: Storage) -> None:
    first, last = (artifact_of(content, "file:///a") for content in (b"1", b"2"))
    found: Artifact = PriorArtifacts(storage, {"OCR": [first, last]}).find(*NAMED).artifact
    assert found is last


NAMED = ("OCR", "output.txt")


def test_a_scheme_that_nobody_reads_is_refused(storage: Storage) -> None:
    reach = Storages(storage).of_job("acme", "job_1")
    (scheme,) = reach.schemes
    with raises(ErrorCode.INPUT_INVALID, f"it reads: {scheme}"):
        Input(reach, "gs://bucket/a").open()
