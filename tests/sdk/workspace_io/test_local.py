"""Local files: what is read and written where, and what their faults mean."""

import errno
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import pytest
from hypothesis import example, given

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io import LocalStorage
from lucius_sdk.workspace_io.fence_file import fence_path
from tests.sdk.workspace_io.stage import Uri, fence, raises, unfinished, visible
from tests.sdk.workspace_io.test_uris import URIS

Write = Callable[[LocalStorage, str], None]


def create(storage: LocalStorage, uri: str) -> None:
    sink = storage.create(uri)
    try:
        sink.write(b"new")
        sink.commit()
    finally:
        sink.discard()


def publish(storage: LocalStorage, uri: str) -> None:
    storage.publish(uri, io.BytesIO(b"new"), fence(), "text/plain")


def read(storage: LocalStorage, uri: str) -> bytes:
    with storage.open_read(uri) as stream:
        return stream.read()


both_ways_to_write = pytest.mark.parametrize("write", [create, publish])


@both_ways_to_write
def test_what_was_written_is_read(
    storage: LocalStorage, uri: Uri, write: Write, root: Path
) -> None:
    write(storage, uri("a/b/%C3%A9.txt"))
    assert visible(root) == {"a/b/é.txt": b"new"}
    assert read(storage, uri("a/b/é.txt")) == b"new"
    assert storage.size_of(uri("a/b/é.txt")) == 3
    assert unfinished(root) == []


@both_ways_to_write
def test_a_name_may_have_every_byte_that_a_file_system_allows(
    storage: LocalStorage, uri: Uri, write: Write
) -> None:
    write(storage, uri("a" * 255))
    assert read(storage, uri("a" * 255)) == b"new"


def test_nothing_is_visible_before_the_commit(storage: LocalStorage, uri: Uri, root: Path) -> None:
    sink = storage.create(uri("a"))
    sink.write(b"half")
    assert visible(root) == {}
    sink.commit()
    sink.discard()
    assert visible(root) == {"a": b"half"}


def test_what_is_discarded_leaves_nothing(storage: LocalStorage, uri: Uri, root: Path) -> None:
    sink = storage.create(uri("a"))
    sink.write(b"half")
    sink.discard()
    sink.discard()
    assert list(root.iterdir()) == []


def test_a_sealed_sink_takes_no_more(storage: LocalStorage, uri: Uri) -> None:
    sink = storage.create(uri("a"))
    sink.seal()
    with pytest.raises(ValueError, match="sealed"):
        sink.write(b"more")
    sink.discard()


@given(URIS)
@example("/../escaped")
@example("/a/..%2F..%2Fescaped")
def test_whatever_the_uri_nothing_is_written_outside_the_root(text: str) -> None:
    with TemporaryDirectory() as name:
        outside = Path(name)
        root = outside / "root"
        root.mkdir()
        for uri in (root.as_uri() + text, f"file://{text}"):
            try:
                sink = LocalStorage(root).create(uri)
            except NonRetryableError:
                continue
            sink.commit()
        assert list(outside.iterdir()) == [root]


@both_ways_to_write
@pytest.mark.parametrize("target", ["../outside", "..%2Foutside", "%2e%2e/outside", "a/", ""])
def test_what_is_no_file_below_the_root_is_not_written(
    storage: LocalStorage, uri: Uri, write: Write, target: str
) -> None:
    with raises(ErrorCode.INPUT_INVALID):
        write(storage, uri(target))


@both_ways_to_write
def test_our_own_hidden_files_cannot_be_written(
    storage: LocalStorage, uri: Uri, write: Write
) -> None:
    with raises(ErrorCode.INPUT_INVALID):
        write(storage, uri("a/.lucius-0.fence"))


@both_ways_to_write
def test_a_symlink_that_leads_out_is_not_written_through(
    storage: LocalStorage, uri: Uri, write: Write, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (root / "way").symlink_to(tmp_path / "outside")
    with raises(ErrorCode.INPUT_INVALID, "leads out"):
        write(storage, uri("way/a/b"))
    assert list((tmp_path / "outside").iterdir()) == []


@both_ways_to_write
def test_a_symlink_in_the_place_of_the_file_is_replaced_not_followed(
    storage: LocalStorage, uri: Uri, write: Write, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_bytes(b"precious")
    (root / "a").symlink_to(tmp_path / "outside")
    write(storage, uri("a"))
    assert (tmp_path / "outside").read_bytes() == b"precious"
    assert not (root / "a").is_symlink()


@both_ways_to_write
def test_a_root_that_is_a_symlink_is_a_root(tmp_path: Path, root: Path, write: Write) -> None:
    (tmp_path / "mounted").symlink_to(root)
    storage = LocalStorage(tmp_path / "mounted")
    write(storage, (tmp_path / "mounted").as_uri() + "/a")
    assert read(storage, root.as_uri() + "/a") == b"new"


def test_only_the_root_and_the_input_roots_are_read(tmp_path: Path, root: Path) -> None:
    allowed, secret = tmp_path / "allowed", tmp_path / "secret"
    for folder in (root, allowed, secret):
        folder.mkdir(exist_ok=True)
        (folder / "a").write_bytes(folder.name.encode())
    storage = LocalStorage(root, (allowed,))
    assert read(storage, root.as_uri() + "/a") == b"root"
    assert read(storage, allowed.as_uri() + "/a") == b"allowed"
    (root / "way").symlink_to(secret)
    for uri in (f"{secret.as_uri()}/a", f"{root.as_uri()}/way/a", f"{allowed.as_uri()}_not/a"):
        with raises(ErrorCode.INPUT_INVALID, "leads out"):
            storage.open_read(uri)


@pytest.mark.parametrize("name", ["absent", "file/below", "absent/deep"])
def test_what_is_not_there_is_not_found(
    storage: LocalStorage, uri: Uri, root: Path, name: str
) -> None:
    (root / "file").write_bytes(b"")
    with raises(ErrorCode.INPUT_NOT_FOUND):
        storage.open_read(uri(name))
    with raises(ErrorCode.INPUT_NOT_FOUND):
        storage.size_of(uri(name))


def test_folders_and_pipes_are_no_inputs(storage: LocalStorage, uri: Uri, root: Path) -> None:
    os.mkfifo(root / "pipe")
    for name in ("pipe", ""):
        with raises(ErrorCode.INPUT_INVALID):
            storage.open_read(uri(name))


@both_ways_to_write
@pytest.mark.parametrize("target", ["file/below", "folder"])
def test_a_place_that_is_taken_by_another_kind_of_thing_is_a_conflict(
    storage: LocalStorage, uri: Uri, write: Write, root: Path, target: str
) -> None:
    (root / "file").write_bytes(b"")
    (root / "folder" / "inner").mkdir(parents=True)
    with raises(ErrorCode.OUTPUT_CONFLICT):
        write(storage, uri(target))
    assert unfinished(root) == []


@both_ways_to_write
def test_a_root_that_went_away_is_a_passing_fault(
    storage: LocalStorage, uri: Uri, write: Write, root: Path
) -> None:
    storage.check()
    shutil.rmtree(root)
    for attempt in (storage.check, lambda: write(storage, uri("a")), lambda: read_a(storage, uri)):
        with raises(ErrorCode.STORAGE_UNAVAILABLE):
            attempt()
    assert not root.exists()
    storage.prepare()
    storage.check()


def read_a(storage: LocalStorage, uri: Uri) -> None:
    read(storage, uri("a"))


def test_a_file_is_no_root(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "file").chmod(0o777)
    with raises(ErrorCode.STORAGE_UNAVAILABLE):
        LocalStorage(tmp_path / "file").check()


@both_ways_to_write
@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES])
def test_a_disk_that_is_full_or_broken_is_a_passing_fault(
    storage: LocalStorage,
    uri: Uri,
    write: Write,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    fault: int,
) -> None:
    def fail(*_: object) -> NoReturn:
        raise OSError(fault, os.strerror(fault))

    monkeypatch.setattr(os, call, fail)
    with raises(ErrorCode.STORAGE_UNAVAILABLE, os.strerror(fault)):
        write(storage, uri("a"))
    assert visible(root) == {}
    assert unfinished(root) == []


def test_all_is_on_the_disk_before_it_is_seen_and_the_fence_before_the_file(
    storage: LocalStorage, uri: Uri, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int | str] = []
    sync, replace = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        sync(descriptor)
        done.append(os.fstat(descriptor).st_ino)

    def rename(source: str, target: str) -> None:
        replace(source, target)
        done.append("visible")

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", rename)
    publish(storage, uri("a/b/out"))
    file = root / "a/b/out"
    in_order = (root, root / "a", file, fence_path(file), file.parent)
    inodes = [path.stat().st_ino for path in in_order]
    assert done == [*inodes, "visible", file.parent.stat().st_ino]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that reads as broken")
def test_a_fault_in_mid_stream_is_a_passing_fault(root: Path) -> None:
    storage = LocalStorage(root, (Path("/proc"),))
    with (
        storage.open_read("file:///proc/self/mem") as stream,
        raises(ErrorCode.STORAGE_UNAVAILABLE, "Input/output error"),
    ):
        stream.read(10)


def test_files_can_be_sought_in(storage: LocalStorage, uri: Uri) -> None:
    create(storage, uri("a"))
    with storage.open_read(uri("a")) as stream:
        assert stream.seek(-1, io.SEEK_END) == 2
        assert stream.read() == b"w"
