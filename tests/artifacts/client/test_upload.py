"""Uploads: from a file to content that the server has verified."""

import logging
import threading
from pathlib import Path
from typing import BinaryIO

import pytest

from lucius_artifacts.client import (
    ArtifactsClient,
    ContentChanged,
    Denied,
    FileSource,
    NotTaken,
    Phase,
    Refused,
    Unavailable,
)
from lucius_artifacts.client.parts import BATCH
from tests.artifacts.client.quick import (
    KIB,
    PART,
    QUICK,
    BytesSource,
    digest_of,
    pattern,
    written,
)
from tests.artifacts.client.server import TENANT, Server
from tests.runner.deadlines import DEADLINE

MIB = KIB * KIB


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 5 * PART + 7])
def test_a_file_comes_whole_whatever_its_size(
    server: Server, client: ArtifactsClient, tmp_path: Path, size: int
) -> None:
    content = pattern(size)
    done = client.upload(written(tmp_path / "a", content), TENANT, part_size=PART)
    assert done.digest == digest_of(content)
    assert (done.uri, done.length) == (f"artifact://blobs/{done.digest}", size)
    with client.open(done.uri, TENANT) as stream:
        assert stream.read() == content
    assert sorted(server.gate.parts()) == list(range(1, -(-size // PART) + 1))


def test_content_that_the_server_has_is_proved_and_not_sent(
    server: Server, client: ArtifactsClient, tmp_path: Path
) -> None:
    path = written(tmp_path / "a", pattern(MIB))
    client.upload(path, TENANT, part_size=PART)
    sent = len(server.gate.parts())
    again = client.upload(path, TENANT, part_size=PART)
    assert again.digest == digest_of(path.read_bytes())
    assert len(server.gate.parts()) == sent == 16


def test_small_content_is_sent_without_a_proof(
    server: Server, client: ArtifactsClient, tmp_path: Path
) -> None:
    path = written(tmp_path / "a", pattern(MIB - 1))
    client.upload(path, TENANT)
    client.upload(path, TENANT)
    assert server.gate.count("POST", ":dedupe") == 0


def test_more_parts_than_are_signed_at_once_all_come(
    server: Server, client: ArtifactsClient, tmp_path: Path
) -> None:
    content = pattern(KIB * (BATCH + 1))
    client.upload(written(tmp_path / "a", content), TENANT, part_size=KIB)
    assert server.gate.count("POST", ":sign") == 2
    assert sorted(server.gate.parts()) == list(range(1, BATCH + 2))


def test_a_part_that_fails_for_a_while_is_brought_again(
    server: Server, client: ArtifactsClient, tmp_path: Path
) -> None:
    server.gate.trouble("PUT", "/parts/2", times=3, status=503)
    content = pattern(3 * PART)
    done = client.upload(written(tmp_path / "a", content), TENANT, part_size=PART)
    assert done.digest == digest_of(content)
    assert sorted(server.gate.parts()) == [1, 2, 2, 2, 2, 3]


def test_a_part_that_always_fails_ends_the_upload(
    server: Server, client: ArtifactsClient, tmp_path: Path
) -> None:
    server.gate.trouble("PUT", "/parts/2", times=100, status=503)
    with pytest.raises(Unavailable, match="answered 503"):
        client.upload(written(tmp_path / "a", pattern(3 * PART)), TENANT, part_size=PART)
    assert server.gate.parts().count(2) == QUICK.tries


def test_an_operation_that_fails_for_a_while_is_asked_for_again(
    server: Server, client: ArtifactsClient, tmp_path: Path
) -> None:
    for path in ("/uploads", ":sign", ":complete"):
        server.gate.trouble("POST", path, times=2, status=500)
    content = pattern(PART)
    done = client.upload(written(tmp_path / "a", content), TENANT)
    assert done.digest == digest_of(content)


def test_an_address_that_has_expired_is_signed_anew(
    server: Server, client: ArtifactsClient, tmp_path: Path
) -> None:
    server.gate.hold(lambda asked: asked.method != "PUT")
    path, done = written(tmp_path / "a", pattern(2 * PART)), threading.Event()

    def upload() -> None:
        client.upload(path, TENANT, part_size=PART)
        done.set()

    thread = threading.Thread(target=upload)
    thread.start()
    server.gate.wait_for_held(2)
    server.clock.advance(hours=1)
    server.gate.open()
    thread.join(DEADLINE)
    assert done.is_set()
    assert all(server.gate.parts().count(number) >= 2 for number in (1, 2))
    assert server.gate.count("POST", ":sign") >= 3


def test_a_session_that_ends_under_way_is_begun_anew_once(
    server: Server, client: ArtifactsClient, tmp_path: Path
) -> None:
    content = pattern(3 * PART)

    class Late(FileSource):
        """The session expires when the first part is read."""

        expired = False

        def open_at(self, offset: int) -> BinaryIO:
            if server.gate.count("POST", ":sign") and not self.expired:
                self.expired = True
                server.clock.advance(days=2)
            return super().open_at(offset)

    done = client.upload(Late(written(tmp_path / "a", content)), TENANT, part_size=PART)
    assert done.digest == digest_of(content)
    created = [a for a in server.gate.asked if a.path.endswith("/uploads")]
    assert len(created) == 2


def test_a_file_that_changes_while_it_is_uploaded_is_not_taken(
    server: Server, client: ArtifactsClient, tmp_path: Path
) -> None:
    path = written(tmp_path / "a", pattern(3 * PART))

    def progress(phase: Phase, done: int, total: int) -> None:
        if phase is Phase.UPLOADING and not done:
            path.write_bytes(pattern(3 * PART, seed=9))

    with pytest.raises(ContentChanged, match=r"/a changed while it was uploaded: the stored"):
        client.upload(path, TENANT, part_size=PART, progress=progress)


def test_a_file_that_becomes_shorter_is_not_taken(
    server: Server, client: ArtifactsClient, tmp_path: Path
) -> None:
    path = written(tmp_path / "a", pattern(3 * PART))

    def progress(phase: Phase, done: int, total: int) -> None:
        if phase is Phase.UPLOADING and not done:
            path.write_bytes(b"short")

    with pytest.raises(ContentChanged, match="shorter than it was"):
        client.upload(path, TENANT, part_size=PART, progress=progress)


def test_other_bytes_than_were_announced_are_not_taken(client: ArtifactsClient) -> None:
    lie = BytesSource("lie", b"lies", digest_of(b"true"))
    with pytest.raises(NotTaken, match="lie was not taken: the stored content has the digest"):
        client.upload(lie, TENANT)


def test_what_a_source_raises_passes_through_from_every_thread(client: ArtifactsClient) -> None:
    class Raising(BytesSource):
        def open_at(self, offset: int) -> BinaryIO:
            raise LookupError(f"stop at {offset}")

    with pytest.raises(LookupError, match="stop"):
        client.upload(Raising("a", bytes(10 * PART)), TENANT, part_size=PART)


def test_progress_counts_every_byte_of_every_phase_once(
    server: Server, client: ArtifactsClient, tmp_path: Path
) -> None:
    server.gate.trouble("PUT", "/parts/3", times=1, status=503)
    size = MIB + 5
    content = pattern(size, seed=5)
    seen: dict[Phase, list[tuple[int, int]]] = {}

    def progress(phase: Phase, done: int, total: int) -> None:
        seen.setdefault(phase, []).append((done, total))

    path = written(tmp_path / "a", content)
    client.upload(path, TENANT, part_size=PART, progress=progress)
    assert list(seen) == [Phase.READING, Phase.COMPARING, Phase.UPLOADING]
    for told in seen.values():
        assert told[0] == (0, size)
        assert told[-1] == (size, size)


def test_one_who_may_not_is_told_and_not_tried_again(server: Server, tmp_path: Path) -> None:
    path = written(tmp_path / "a", b"x")
    for key, code in (("reader", "FORBIDDEN"), (None, "UNAUTHENTICATED")):
        client = ArtifactsClient(server.url, key, patience=QUICK)
        with client, pytest.raises(Denied, match=code):
            client.upload(path, TENANT)
    assert server.gate.count("POST", "/uploads") == 2


def test_a_request_that_cannot_work_says_where_it_is_wrong(
    client: ArtifactsClient, tmp_path: Path
) -> None:
    with pytest.raises(Refused, match=r"ARTIFACT_INVALID.*part_size") as refused:
        client.upload(written(tmp_path / "a", b"x"), TENANT, part_size=2**40)
    assert refused.value.answer.status == 422


def test_nobody_there_is_unavailable(tmp_path: Path) -> None:
    client = ArtifactsClient("http://127.0.0.1:1", patience=QUICK)
    with client, pytest.raises(Unavailable, match="LUCIUS cannot be reached"):
        client.upload(written(tmp_path / "a", b"x"), TENANT)


def test_the_key_goes_to_the_api_alone_and_signatures_to_no_log(
    server: Server, client: ArtifactsClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.gate.trouble("PUT", "/parts/1", times=100, status=500)
    with caplog.at_level(logging.INFO), pytest.raises(Unavailable) as caught:
        client.upload(written(tmp_path / "a", pattern(PART)), TENANT)
    chain: BaseException | None = caught.value
    while chain is not None:
        assert "signature" not in str(chain)
        chain = chain.__cause__ or chain.__context__
    ours = [record.getMessage() for record in caplog.records if record.name == "httpx"]
    assert any("PUT" in line for line in ours)
    assert not any("signature" in line for line in ours)
    for asked in server.gate.asked:
        assert bool(asked.authorization) == ("/objects/" not in asked.path)
