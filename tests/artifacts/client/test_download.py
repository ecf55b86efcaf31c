"""Downloads: whole and right under their name, or not there."""

import fcntl
import io
import os
import shutil
from pathlib import Path

import pytest

from lucius_artifacts.client import (
    ArtifactsClient,
    ContentDamaged,
    Gone,
    NotFound,
    Phase,
    Refused,
    Unavailable,
)
from lucius_artifacts.client.storage import CHUNK
from tests.artifacts.client.quick import QUICK, BytesSource, pattern, written
from tests.artifacts.client.server import TENANT, Server

SIZE = 5 * CHUNK + 7
CONTENT = pattern(SIZE)
OBJECTS = "/objects/"


@pytest.fixture
def uri(client: ArtifactsClient) -> str:
    return client.upload(BytesSource("a", CONTENT), TENANT).uri


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out" / "scan.pdf"


@pytest.fixture(autouse=True)
def folder(target: Path) -> Path:
    target.parent.mkdir()
    return target.parent


class Killed(BaseException):
    """The end of a process, as far as its download sees it."""


def interrupted(client: ArtifactsClient, uri: str, target: Path) -> None:
    def progress(_phase: Phase, done: int, total: int) -> None:
        if done > total / 2:
            raise Killed

    with pytest.raises(Killed):
        client.download(uri, target, TENANT, progress=progress)


def ranges(server: Server) -> list[str]:
    return [asked.range for asked in server.gate.asked if OBJECTS in asked.path and asked.range]


@pytest.mark.parametrize("size", [0, 1, CHUNK, SIZE])
def test_a_download_is_the_content_and_leaves_nothing_beside_it(
    client: ArtifactsClient, target: Path, size: int
) -> None:
    uri = client.upload(BytesSource("a", pattern(size)), TENANT).uri
    target.write_bytes(b"what was there before")
    found = client.download(uri, target, TENANT)
    assert target.read_bytes() == pattern(size)
    assert (found.uri, found.length) == (uri, size)
    assert list(target.parent.iterdir()) == [target]


def test_an_interrupted_download_goes_on_where_it_was(
    server: Server, client: ArtifactsClient, uri: str, target: Path
) -> None:
    interrupted(client, uri, target)
    assert not target.exists()
    (part,) = target.parent.iterdir()
    there = part.stat().st_size
    assert 0 < there < SIZE
    told: list[int] = []
    client.download(uri, target, TENANT, progress=lambda _p, done, _t: told.append(done))
    assert target.read_bytes() == CONTENT
    assert ranges(server)[-1] == f"bytes={there}-"
    assert told[-1] == SIZE
    assert list(target.parent.iterdir()) == [target]


def test_a_download_of_which_only_the_name_was_missing_asks_for_no_byte(
    server: Server, client: ArtifactsClient, uri: str, target: Path
) -> None:
    interrupted(client, uri, target)
    (part,) = target.parent.iterdir()
    part.write_bytes(CONTENT)
    before = server.gate.count("GET", OBJECTS)
    client.download(uri, target, TENANT)
    assert target.read_bytes() == CONTENT
    assert server.gate.count("GET", OBJECTS) == before


@pytest.mark.parametrize("rest", [b"other bytes", CONTENT + b"more"])
def test_a_beginning_that_is_not_right_is_not_used(
    client: ArtifactsClient, uri: str, target: Path, rest: bytes
) -> None:
    interrupted(client, uri, target)
    (part,) = target.parent.iterdir()
    part.write_bytes(rest)
    told: list[int] = []
    client.download(uri, target, TENANT, progress=lambda _p, done, _t: told.append(done))
    assert target.read_bytes() == CONTENT
    assert told[-1] == SIZE


@pytest.mark.parametrize("after", [0, 10, CHUNK, SIZE - 1])
def test_a_connection_that_breaks_is_made_again_from_there(
    server: Server, client: ArtifactsClient, uri: str, target: Path, after: int
) -> None:
    server.gate.trouble("GET", OBJECTS, times=2, cut_after=after)
    client.download(uri, target, TENANT)
    assert target.read_bytes() == CONTENT


def test_a_storage_that_knows_no_ranges_is_read_again_from_its_beginning(
    server: Server, client: ArtifactsClient, uri: str, target: Path
) -> None:
    server.gate.trouble("GET", OBJECTS, cut_after=CHUNK)
    server.gate.trouble("GET", OBJECTS, ignore_range=True)
    client.download(uri, target, TENANT)
    assert target.read_bytes() == CONTENT
    assert len(ranges(server)) == 1


def test_another_range_than_was_asked_for_is_not_taken(
    server: Server, client: ArtifactsClient, uri: str, target: Path
) -> None:
    server.gate.trouble("GET", OBJECTS, cut_after=CHUNK)
    server.gate.trouble("GET", OBJECTS, status=206, headers={"content-range": "bytes 9-12/99"})
    client.download(uri, target, TENANT)
    assert target.read_bytes() == CONTENT


def test_a_storage_that_fails_for_a_while_is_asked_again_and_not_for_ever(
    server: Server, client: ArtifactsClient, uri: str, target: Path
) -> None:
    server.gate.trouble("GET", OBJECTS, times=QUICK.tries - 1, status=503)
    client.download(uri, target, TENANT)
    target.unlink()
    server.gate.trouble("GET", OBJECTS, times=100, status=503)
    with pytest.raises(Unavailable, match="503"):
        client.download(uri, target, TENANT)
    assert list(target.parent.iterdir()) == []


def test_an_address_that_has_expired_is_asked_for_anew(
    server: Server, client: ArtifactsClient, uri: str, target: Path
) -> None:
    content = client.content(uri, TENANT)
    server.clock.advance(hours=2)
    client.save(content, target, TENANT)
    assert target.read_bytes() == CONTENT
    assert server.gate.count("GET", "/content") == 2


@pytest.mark.parametrize("at", [0, SIZE - 1])
def test_damaged_content_is_found_out_and_not_kept(
    server: Server, client: ArtifactsClient, uri: str, target: Path, at: int
) -> None:
    server.gate.trouble("GET", OBJECTS, damage_at=at)
    with pytest.raises(ContentDamaged, match=f"{uri} came with another SHA-256"):
        client.download(uri, target, TENANT)
    assert list(target.parent.iterdir()) == []


def test_two_downloads_to_one_file_do_not_meet(
    client: ArtifactsClient, uri: str, target: Path
) -> None:
    interrupted(client, uri, target)
    (part,) = target.parent.iterdir()
    with part.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match="another download"):
            client.download(uri, target, TENANT)
    client.download(uri, target, TENANT)
    assert target.read_bytes() == CONTENT


def test_two_files_of_the_same_content_do_not_share_a_beginning(
    client: ArtifactsClient, uri: str, target: Path
) -> None:
    interrupted(client, uri, target)
    interrupted(client, uri, target.with_name("other.pdf"))
    assert len(os.listdir(target.parent)) == 2


def test_a_stream_is_the_content_and_speaks_before_its_end_if_it_is_not(
    server: Server, client: ArtifactsClient, uri: str
) -> None:
    with client.open(uri, TENANT) as stream:
        assert stream.read() == CONTENT
    server.gate.trouble("GET", OBJECTS, damage_at=0)
    got = io.BytesIO()
    with client.open(uri, TENANT) as stream:
        with pytest.raises(ContentDamaged):
            shutil.copyfileobj(stream, got, CHUNK)
        assert len(got.getvalue()) < SIZE
        with pytest.raises(ContentDamaged):
            stream.read()


def test_a_stream_survives_a_connection_that_breaks(
    server: Server, client: ArtifactsClient, uri: str
) -> None:
    server.gate.trouble("GET", OBJECTS, cut_after=CHUNK + 1)
    with client.open(uri, TENANT) as stream:
        assert stream.read() == CONTENT


def test_an_empty_content_is_a_stream_without_bytes(client: ArtifactsClient) -> None:
    uri = client.upload(BytesSource("a", b""), TENANT).uri
    with client.open(uri, TENANT) as stream:
        assert stream.read() == b""


def test_a_stream_that_is_left_in_the_middle_gives_its_connection_up(
    client: ArtifactsClient, uri: str
) -> None:
    for _ in range(5):
        with client.open(uri, TENANT) as stream:
            assert stream.read(10) == CONTENT[:10]


def test_what_is_not_there_was_deleted_or_is_no_content_is_told_apart(
    client: ArtifactsClient, uri: str, tmp_path: Path
) -> None:
    digest = uri.rpartition("/")[2]
    version = client.publish("gone", [{"path": "a", "digest": digest}], TENANT)
    client.tombstone("gone", version["version"], 60, TENANT)
    for asked, error in (
        (f"artifact://blobs/{'0' * 64}", NotFound),
        ("artifact://gone/v9/a", NotFound),
        ("artifact://gone/v1/a", Gone),
        ("artifact://gone", Refused),
    ):
        with pytest.raises(error):
            client.download(asked, written(tmp_path / "x", b""), TENANT)
