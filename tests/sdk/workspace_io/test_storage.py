"""What every storage does: what is read and written where, and what is told otherwise."""

import io

import pytest

from lucius_contract.errors import ErrorCode
from lucius_sdk.workspace_io import Storage
from tests.sdk.workspace_io.objects import Write, both_ways_to_write, create, pattern, publish, read
from tests.sdk.workspace_io.reopening import BLOCK
from tests.sdk.workspace_io.stage import STAGES, Stage, Uri, raises, storages_in_the_tree

SIZES = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 7]
"""Of contents: what is in one piece, at its edge, and in several."""


def test_every_storage_is_in_this_suite() -> None:
    assert storages_in_the_tree() == {stage.kind.__name__ for stage in STAGES.values()}


@both_ways_to_write
def test_what_was_written_is_read(stage: Stage, write: Write) -> None:
    write(stage.storage, stage.uri("a/b/%C3%A9.txt"), b"new")
    assert stage.visible() == {"a/b/é.txt": b"new"}
    assert read(stage.storage, stage.uri("a/b/é.txt")) == b"new"
    assert stage.storage.size_of(stage.uri("a/b/é.txt")) == 3
    assert stage.unfinished() == []


@both_ways_to_write
@pytest.mark.parametrize("size", SIZES)
def test_a_content_of_any_size_comes_back_as_it_was(
    storage: Storage, uri: Uri, write: Write, size: int
) -> None:
    write(storage, uri("a"), pattern(size))
    assert read(storage, uri("a")) == pattern(size)
    assert storage.size_of(uri("a")) == size


def test_pieces_of_any_size_make_one_content(storage: Storage, uri: Uri) -> None:
    content = pattern(2 * BLOCK + 100)
    sink = storage.create(uri("a"), "text/plain")
    for begin, end in ((0, 1), (1, 1), (1, BLOCK + 50), (BLOCK + 50, len(content))):
        sink.write(memoryview(content)[begin:end])
    sink.commit()
    sink.discard()
    assert read(storage, uri("a")) == content


@both_ways_to_write
def test_what_is_written_replaces_what_stood_there(stage: Stage, write: Write) -> None:
    for content in (pattern(3 * BLOCK), b"short", pattern(2 * BLOCK)):
        write(stage.storage, stage.uri("a"), content)
        assert stage.visible() == {"a": content}


@both_ways_to_write
def test_a_name_may_have_every_byte_that_a_file_system_allows(
    storage: Storage, uri: Uri, write: Write
) -> None:
    write(storage, uri("a" * 255), b"new")
    assert read(storage, uri("a" * 255)) == b"new"


@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_visible_before_the_commit(stage: Stage, size: int) -> None:
    sink = stage.storage.create(stage.uri("a"), "text/plain")
    sink.write(pattern(size))
    assert stage.visible() == {}
    sink.commit()
    sink.discard()
    assert stage.visible() == {"a": pattern(size)}


@pytest.mark.parametrize("size", SIZES)
def test_what_is_discarded_leaves_nothing(stage: Stage, size: int) -> None:
    sink = stage.storage.create(stage.uri("a"), "text/plain")
    sink.write(pattern(size))
    sink.discard()
    sink.discard()
    assert stage.visible() == {}
    assert stage.unfinished() == []
    with pytest.raises(ValueError, match="sink"):
        sink.write(b"more")


def test_what_was_discarded_may_be_begun_again(stage: Stage) -> None:
    sink = stage.storage.create(stage.uri("a"), "text/plain")
    sink.write(pattern(3 * BLOCK))
    sink.discard()
    create(stage.storage, stage.uri("a"), b"x" * (2 * BLOCK))
    assert stage.visible() == {"a": b"x" * (2 * BLOCK)}


@both_ways_to_write
@pytest.mark.parametrize(
    "target", ["../outside", "..%2Foutside", "%2e%2e/outside", "a/%2e/b", "a%5Cb", "a%00", "a/", ""]
)
def test_what_is_no_object_below_the_root_is_not_written(
    stage: Stage, write: Write, target: str
) -> None:
    with raises(ErrorCode.OUTPUT_UNSUPPORTED):
        write(stage.storage, stage.uri(target), b"new")
    assert stage.visible() == {}


@both_ways_to_write
def test_a_folder_that_begins_like_the_root_is_not_below_it(stage: Stage, write: Write) -> None:
    with raises(ErrorCode.OUTPUT_FORBIDDEN, "leads out"):
        write(stage.storage, f"{stage.root}-not/a", b"new")
    with raises(ErrorCode.INPUT_FORBIDDEN, "leads out"):
        stage.storage.open_read(f"{stage.root}-not/a")


@both_ways_to_write
@pytest.mark.parametrize("name", ["a/.lucius-0.fence", "%2Elucius-x"])
def test_names_of_our_own_cannot_be_written(
    storage: Storage, uri: Uri, write: Write, name: str
) -> None:
    with raises(ErrorCode.OUTPUT_UNSUPPORTED):
        write(storage, uri(name), b"new")


def test_only_the_root_and_the_input_roots_are_read(stage: Stage) -> None:
    allowed, secret = stage.folder("allowed"), stage.folder("secret")
    for folder in (stage.root, allowed, secret):
        stage.put(f"{folder}/a", folder.encode())
    storage = stage.reaching(readable=(allowed,))
    assert read(storage, stage.uri("a")) == stage.root.encode()
    assert read(storage, f"{allowed}/a") == allowed.encode()
    refused = {
        f"{secret}/a": ErrorCode.INPUT_FORBIDDEN,
        f"{allowed}_not/a": ErrorCode.INPUT_FORBIDDEN,
        f"{stage.root}/../secret/a": ErrorCode.INPUT_INVALID,
    }
    for uri, code in refused.items():
        for look in (storage.open_read, storage.size_of):
            with raises(code):
                look(uri)
    for write in (create, publish):
        with raises(ErrorCode.OUTPUT_FORBIDDEN):
            write(storage, f"{allowed}/b")


def test_outcomes_go_below_output_roots_and_the_steps_own_files_do_not(stage: Stage) -> None:
    allowed = stage.folder("allowed")
    storage = stage.reaching(readable=(allowed,), writable=(allowed,))
    publish(storage, f"{allowed}/deep/b", b"outcome")
    assert read(storage, f"{allowed}/deep/b") == b"outcome"
    with raises(ErrorCode.OUTPUT_FORBIDDEN):
        publish(storage, f"{allowed}-not/b")
    with raises(ErrorCode.OUTPUT_FORBIDDEN):
        create(storage, f"{allowed}/b")


@pytest.mark.parametrize("name", ["absent", "file/below", "absent/deep"])
def test_what_is_not_there_is_not_found(stage: Stage, name: str) -> None:
    stage.put(stage.uri("file"), b"")
    with raises(ErrorCode.INPUT_NOT_FOUND):
        stage.storage.open_read(stage.uri(name))
    with raises(ErrorCode.INPUT_NOT_FOUND):
        stage.storage.size_of(stage.uri(name))


def test_a_folder_is_no_input(stage: Stage) -> None:
    create(stage.storage, stage.uri("folder/a"))
    with raises(ErrorCode.INPUT_INVALID):
        stage.storage.open_read(stage.uri("folder/"))


@pytest.mark.parametrize("uri", ["https://host/a", "gs://bucket/a", "a/b", "", "file://host/a"])
def test_uris_of_others_are_refused(storage: Storage, uri: str) -> None:
    with raises(ErrorCode.INPUT_INVALID):
        storage.open_read(uri)
    for write in (create, publish):
        with raises(ErrorCode.OUTPUT_UNSUPPORTED):
            write(storage, uri)


@both_ways_to_write
def test_a_root_that_went_away_is_a_passing_fault(stage: Stage, write: Write) -> None:
    storage, a = stage.storage, stage.uri("a")
    storage.check()
    stage.lose_root()
    for attempt in (
        storage.check,
        lambda: write(storage, a, b"new"),
        lambda: write(storage, a, pattern(2 * BLOCK)),
        lambda: read(storage, a),
        lambda: storage.size_of(a),
    ):
        with raises(ErrorCode.STORAGE_UNAVAILABLE):
            attempt()
    stage.prepare()
    storage.check()
    assert stage.visible() == {}


def test_a_root_is_prepared_twice_without_harm(stage: Stage) -> None:
    create(stage.storage, stage.uri("a"))
    stage.prepare()
    assert stage.visible() == {"a": b"new"}


def test_objects_can_be_sought_in(storage: Storage, uri: Uri) -> None:
    content = pattern(3 * BLOCK)
    create(storage, uri("a"), content)
    with storage.open_read(uri("a")) as stream:
        assert stream.seekable()
        for place in (-1, -BLOCK - 1, -3 * BLOCK):
            assert stream.seek(place, io.SEEK_END) == len(content) + place
            assert stream.read(3) == content[place:][:3]
        assert stream.seek(2 * BLOCK) == stream.tell() == 2 * BLOCK
        assert stream.seek(5, io.SEEK_CUR) == 2 * BLOCK + 5
        assert stream.read() == content[2 * BLOCK + 5 :]
        assert stream.seek(10, io.SEEK_END) == len(content) + 10
        assert stream.read() == b""


def test_a_storage_is_closed_twice_without_harm(storage: Storage, uri: Uri) -> None:
    create(storage, uri("a"))
    storage.close()
    storage.close()
