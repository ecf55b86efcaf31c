"""An upload that was interrupted, and is gone on with by whoever comes next."""

import json
import os
from pathlib import Path

import pytest

from lucius_artifacts.client import ArtifactsClient, Phase, ResumeFile, Unavailable
from lucius_artifacts.client.resuming import resume_file, state_folder
from tests.artifacts.client.quick import PART, digest_of, pattern, written
from tests.artifacts.client.server import TENANT, Server

COUNT = 12


class Killed(BaseException):
    """The end of a process, as far as its upload sees it."""


@pytest.fixture
def resume(tmp_path: Path) -> ResumeFile:
    return ResumeFile(tmp_path / "state" / "upload.json")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "scan.pdf", pattern(COUNT * PART))


def interrupted(server: Server, client: ArtifactsClient, path: Path, resume: ResumeFile) -> str:
    """After some parts; the id of the session."""

    def progress(phase: Phase, done: int, total: int) -> None:
        if phase is Phase.UPLOADING and done > total / 2:
            raise Killed

    with pytest.raises(Killed):
        client.upload(path, TENANT, part_size=PART, progress=progress, resume=resume)
    server.gate.wait_until_idle()
    upload_id: str = json.loads(resume.path.read_text())["upload_id"]
    return upload_id


def resumed(
    server: Server,
    client: ArtifactsClient,
    path: Path,
    resume: ResumeFile,
    besides: str | None = None,
) -> list[int]:
    """Return the parts that were brought, `besides` those of an upload that was interrupted: one
    may have been on its way."""
    before = len(server.gate.asked)
    done = client.upload(path, TENANT, part_size=PART, resume=resume)
    assert done.digest == digest_of(path.read_bytes())
    with client.open(done.uri, TENANT) as stream:
        assert stream.read() == path.read_bytes()
    assert not resume.is_there
    return sorted(server.gate.parts(before, besides))


def sessions(server: Server) -> int:
    return sum(a.method == "POST" and a.path.endswith("/uploads") for a in server.gate.asked)


def test_only_what_is_missing_is_brought(
    server: Server, client: ArtifactsClient, path: Path, resume: ResumeFile
) -> None:
    upload_id = interrupted(server, client, path, resume)
    there = server.received(upload_id)
    assert 0 < len(there) < COUNT
    missing = [number for number in range(1, COUNT + 1) if number not in there]
    assert resumed(server, client, path, resume) == missing
    assert sessions(server) == 1


def test_progress_begins_where_it_was(
    server: Server, client: ArtifactsClient, path: Path, resume: ResumeFile
) -> None:
    there = len(server.received(interrupted(server, client, path, resume)))
    told: list[tuple[Phase, int]] = []
    client.upload(path, TENANT, resume=resume, progress=lambda p, done, _: told.append((p, done)))
    assert told[0] == (Phase.UPLOADING, there * PART)


def test_an_upload_that_misses_nothing_is_completed_alone(
    server: Server, client: ArtifactsClient, path: Path, resume: ResumeFile
) -> None:
    server.gate.trouble("POST", ":complete", times=100, status=503)
    with pytest.raises(Unavailable):
        client.upload(path, TENANT, part_size=PART, resume=resume)
    server.gate.troubles.clear()
    assert resumed(server, client, path, resume) == []


def test_an_upload_whose_end_nobody_heard_of_is_done(
    server: Server, client: ArtifactsClient, path: Path, resume: ResumeFile
) -> None:
    server.gate.trouble("POST", ":complete", times=100, cut_after=0)
    with pytest.raises(Unavailable):
        client.upload(path, TENANT, part_size=PART, resume=resume)
    server.gate.troubles.clear()
    assert resumed(server, client, path, resume) == []
    assert sessions(server) == 1


def test_a_session_that_has_expired_is_begun_anew(
    server: Server, client: ArtifactsClient, path: Path, resume: ResumeFile
) -> None:
    expired = interrupted(server, client, path, resume)
    server.clock.advance(days=2)
    every_part = list(range(1, COUNT + 1))
    assert resumed(server, client, path, resume, besides=expired) == every_part
    assert sessions(server) == 2


def test_a_session_that_was_aborted_or_forgotten_is_begun_anew(
    server: Server, client: ArtifactsClient, path: Path, resume: ResumeFile
) -> None:
    upload_id = interrupted(server, client, path, resume)
    server.run(server.artifacts.uploads.abort(TENANT, upload_id, "somebody"))
    assert len(resumed(server, client, path, resume)) == COUNT
    interrupted(server, client, written(path, pattern(COUNT * PART, seed=1)), resume)
    server.gate.trouble("GET", "/uploads/", status=404)
    assert len(resumed(server, client, path, resume)) == COUNT


def test_the_same_holds_for_a_file_without_bytes(
    server: Server, client: ArtifactsClient, tmp_path: Path, resume: ResumeFile
) -> None:
    empty = written(tmp_path / "empty", b"")
    server.gate.trouble("POST", ":complete", times=100, status=503)
    with pytest.raises(Unavailable):
        client.upload(empty, TENANT, resume=resume)
    server.gate.troubles.clear()
    upload_id = json.loads(resume.path.read_text())["upload_id"]
    server.run(server.artifacts.uploads.abort(TENANT, upload_id, "somebody"))
    assert resumed(server, client, empty, resume) == []
    assert sessions(server) == 2


def test_a_file_that_has_changed_is_uploaded_from_its_beginning(
    server: Server, client: ArtifactsClient, path: Path, resume: ResumeFile
) -> None:
    interrupted(server, client, path, resume)
    written(path, pattern(COUNT * PART, seed=77))
    os.utime(path, ns=(0, 1))
    assert resumed(server, client, path, resume) == list(range(1, COUNT + 1))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"upload_id": "up_1"}', "\xff"])
def test_what_is_no_memory_of_ours_is_passed_over(
    client: ArtifactsClient, tmp_path: Path, resume: ResumeFile, text: str
) -> None:
    written(resume.path, text.encode("latin-1"))
    client.upload(written(tmp_path / "a", b"small"), TENANT, resume=resume)
    assert not resume.is_there


def test_where_nothing_can_be_remembered_uploads_work_all_the_same(
    client: ArtifactsClient, tmp_path: Path
) -> None:
    resume = ResumeFile(written(tmp_path / "file", b"") / "state" / "upload.json")
    done = client.upload(written(tmp_path / "a", b"small"), TENANT, resume=resume)
    assert done.length == 5


def test_nothing_secret_is_remembered(
    server: Server, client: ArtifactsClient, path: Path, resume: ResumeFile
) -> None:
    upload_id = interrupted(server, client, path, resume)
    text = resume.path.read_text()
    found = server.run(server.artifacts.uploads.progress(TENANT, upload_id)).upload
    assert found.challenge not in text
    assert "signature" not in text
    assert resume.path.stat().st_mode & 0o077 == 0


def test_each_file_tenant_and_server_has_a_memory_of_its_own(tmp_path: Path) -> None:
    urls, tenants, files = ("http://a", "http://b"), ("t", "u", None), ("x", "y")
    found = {
        resume_file(tmp_path, url, tenant, tmp_path / file).path
        for url in urls
        for tenant in tenants
        for file in files
    }
    assert len(found) == 12
    here = resume_file(tmp_path, "http://a", "t", tmp_path / "z" / ".." / "x")
    assert here.path in found


def test_memories_lie_where_the_state_of_programs_lies(tmp_path: Path) -> None:
    assert state_folder({"XDG_STATE_HOME": str(tmp_path)}) == tmp_path / "lucius/uploads"
    for relative in ("", "here"):
        found = state_folder({"XDG_STATE_HOME": relative})
        assert found == Path.home() / ".local/state/lucius/uploads"
