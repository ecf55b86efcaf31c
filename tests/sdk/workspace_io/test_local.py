"""Local files: symlinks, pipes, disks, and the order in which things become durable."""

import errno
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import pytest
from hypothesis import example, given

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io import LocalStorage
from lucius_sdk.workspace_io.fence_file import fence_path
from tests.sdk.workspace_io.objects import Write, both_ways_to_write, publish, read
from tests.sdk.workspace_io.stage import LocalStage, Uri, raises
from tests.sdk.workspace_io.test_uris import URIS


@pytest.fixture
def stage(local_stage: LocalStage) -> LocalStage:
    return local_stage


@pytest.fixture
def storage(stage: LocalStage) -> LocalStorage:
    return stage.storage


@pytest.fixture
def root(stage: LocalStage) -> Path:
    return stage.path


def test_a_sealed_sink_takes_no_more(storage: LocalStorage, uri: Uri) -> None:
    sink = storage.create(uri("a"), "text/plain")
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
                sink = LocalStorage(root).create(uri, "text/plain")
            except NonRetryableError:
                continue
            sink.commit()
        assert list(outside.iterdir()) == [root]


@both_ways_to_write
def test_a_symlink_that_leads_out_is_not_written_through(
    storage: LocalStorage, uri: Uri, write: Write, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (root / "way").symlink_to(tmp_path / "outside")
    with raises(ErrorCode.OUTPUT_FORBIDDEN, "leads out"):
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


def test_a_symlink_that_leads_out_is_not_read(
    storage: LocalStorage, uri: Uri, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a").write_bytes(b"secret")
    (root / "way").symlink_to(tmp_path / "secret")
    with raises(ErrorCode.INPUT_FORBIDDEN, "leads out"):
        storage.open_read(uri("way/a"))


def test_folders_and_pipes_are_no_inputs(storage: LocalStorage, uri: Uri, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    for name in ("pipe", "folder", "folder/"):
        with raises(ErrorCode.INPUT_INVALID):
            storage.open_read(uri(name))


@both_ways_to_write
@pytest.mark.parametrize("target", ["file/below", "folder"])
def test_a_place_that_is_taken_by_another_kind_of_thing_is_a_conflict(
    stage: LocalStage, write: Write, target: str
) -> None:
    (stage.path / "file").write_bytes(b"")
    (stage.path / "folder" / "inner").mkdir(parents=True)
    with raises(ErrorCode.OUTPUT_CONFLICT):
        write(stage.storage, stage.uri(target))
    assert stage.unfinished() == []


def test_a_file_is_no_root(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "file").chmod(0o777)
    with raises(ErrorCode.STORAGE_UNAVAILABLE):
        LocalStorage(tmp_path / "file").check()


@both_ways_to_write
@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES])
def test_a_disk_that_is_full_or_broken_is_a_passing_fault(
    stage: LocalStage, write: Write, monkeypatch: pytest.MonkeyPatch, call: str, fault: int
) -> None:
    def fail(*_: object) -> NoReturn:
        raise OSError(fault, os.strerror(fault))

    monkeypatch.setattr(os, call, fail)
    with raises(ErrorCode.STORAGE_UNAVAILABLE, os.strerror(fault)):
        write(stage.storage, stage.uri("a"))
    assert stage.visible() == {}
    assert stage.unfinished() == []


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
