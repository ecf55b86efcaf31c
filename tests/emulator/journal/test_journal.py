"""A folder that keeps what was flushed."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from servicebus_emulator.broker.records import NumbersUsed, Record, Removed, SessionStateSet
from servicebus_emulator.journal import (
    FolderInUse,
    Journal,
    JournalDamaged,
    JournalError,
    JournalUnwritable,
)
from tests.emulator.journal.samples import RECORDS, comparable


def number(value: int) -> Record:
    return NumbersUsed("queue", value)


def kept(folder: Path) -> list[Record]:
    journal = Journal(folder)
    try:
        return list(journal.load())
    finally:
        journal.close()


def write(folder: Path, *groups: list[Record]) -> list[int]:
    """The size of the file after each group."""
    journal = Journal(folder)
    sizes = []
    for group in groups:
        for record in group:
            journal.record(record)
        journal.flush()
        sizes.append(file_of(folder).stat().st_size)
    journal.close()
    return sizes


def file_of(folder: Path) -> Path:
    return folder / "journal"


class Disk:
    """What survives a loss of power: a test cannot cause one, but it can see what was synced.
    `steps` are the files and folders that were synced or replaced, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[tuple[str, int]] = []
        self._sizes: dict[int, int] = {}
        self._fsync, self._replace = os.fsync, os.replace
        monkeypatch.setattr(os, "fsync", self._sync)
        monkeypatch.setattr(os, "replace", self._move)

    def has_all_of(self, path: Path) -> bool:
        found = path.stat()
        return self._sizes.get(found.st_ino) == found.st_size

    def _sync(self, descriptor: int) -> None:
        self._fsync(descriptor)
        found = os.fstat(descriptor)
        self._sizes[found.st_ino] = found.st_size
        self.steps.append(("synced", found.st_ino))

    def _move(self, source: Path, target: Path) -> None:
        assert self.has_all_of(source)
        self._replace(source, target)
        self.steps.append(("replaced", target.stat().st_ino))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """As on a disk that is full: the system writes up to there, then refuses."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_new_folder_is_empty(tmp_path: Path) -> None:
    assert kept(tmp_path / "not" / "there") == []


def test_what_was_flushed_is_kept_in_order(tmp_path: Path) -> None:
    write(tmp_path, RECORDS[:3], RECORDS[3:], [number(1)])
    expected = [*RECORDS, number(1)]
    assert [comparable(one) for one in kept(tmp_path)] == [comparable(one) for one in expected]


def test_what_was_not_flushed_is_not_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.record(number(1))
    journal.flush()
    journal.record(number(2))
    copy = tmp_path / "copy"
    copy.mkdir()
    file_of(copy).write_bytes(file_of(tmp_path).read_bytes())
    assert kept(copy) == [number(1)]
    journal.close()


def test_close_flushes_and_may_be_repeated(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.record(number(1))
    journal.close()
    journal.close()
    assert kept(tmp_path) == [number(1)]


def test_a_flush_of_nothing_writes_nothing(tmp_path: Path) -> None:
    (size,) = write(tmp_path, [number(1)])
    journal = Journal(tmp_path)
    journal.flush()
    journal.close()
    assert file_of(tmp_path).stat().st_size == size


def test_a_journal_goes_on_where_it_ended(tmp_path: Path) -> None:
    for value in range(4):
        write(tmp_path, [number(value)])
    assert kept(tmp_path) == [number(value) for value in range(4)]


def test_with_fsync_the_same_is_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path, fsync=True)
    journal.record(number(1))
    journal.flush()
    journal.close()
    assert kept(tmp_path) == [number(1)]


def test_with_fsync_the_disk_has_all_of_it_when_a_flush_returns(tmp_path: Path, disk: Disk) -> None:
    """The emulator answers after the flush: what it acknowledged survives a loss of power."""
    journal = Journal(tmp_path, fsync=True)
    for value in range(3):
        journal.record(number(value))
        journal.flush()
        assert disk.has_all_of(file_of(tmp_path))
    journal.record(number(3))
    journal.close()
    assert disk.has_all_of(file_of(tmp_path))


def test_with_fsync_a_new_journal_keeps_its_name_and_those_of_its_folders(
    tmp_path: Path, disk: Disk
) -> None:
    folder = tmp_path / "not" / "there"
    Journal(folder, fsync=True).close()
    for named_in in (folder, tmp_path / "not", tmp_path):
        assert ("synced", named_in.stat().st_ino) in disk.steps


def test_with_fsync_a_group_that_cannot_be_synced_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> NoReturn:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    journal = Journal(tmp_path, fsync=True)
    journal.record(number(1))
    journal.flush()
    size = file_of(tmp_path).stat().st_size
    journal.record(number(2))
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fail)
        with pytest.raises(JournalUnwritable, match="Input/output error"):
            journal.flush()
    assert file_of(tmp_path).stat().st_size == size
    journal.close()
    assert kept(tmp_path) == [number(1), number(2)]


def test_every_cut_of_the_last_group_is_cut_off(tmp_path: Path) -> None:
    last: list[Record] = [number(2), Removed("queue", 3), SessionStateSet("q", "s", b"state", 4)]
    before, after = write(tmp_path, [number(1)], last)
    whole = file_of(tmp_path).read_bytes()
    for length in range(before, after):
        file_of(tmp_path).write_bytes(whole[:length])
        assert kept(tmp_path) == [number(1)]
        assert file_of(tmp_path).stat().st_size == before


@pytest.mark.parametrize("is_loaded", [True, False])
def test_after_a_cut_the_journal_goes_on(tmp_path: Path, is_loaded: bool) -> None:
    before, after = write(tmp_path, [number(1)], [number(2)])
    os.truncate(file_of(tmp_path), (before + after) // 2)
    journal = Journal(tmp_path)
    if is_loaded:
        assert list(journal.load()) == [number(1)]
    journal.record(number(3))
    journal.close()
    assert kept(tmp_path) == [number(1), number(3)]


def test_a_file_that_was_hardly_begun_is_empty(tmp_path: Path) -> None:
    write(tmp_path)
    kept(tmp_path)
    head = file_of(tmp_path).read_bytes()
    for length in range(len(head)):
        file_of(tmp_path).write_bytes(head[:length])
        write(tmp_path, [number(1)])
        assert kept(tmp_path) == [number(1)]


def test_a_flipped_bit_anywhere_is_damage(tmp_path: Path) -> None:
    write(tmp_path, [number(1)], [RECORDS[0]], [number(2)])
    whole = file_of(tmp_path).read_bytes()
    for index in range(len(whole)):
        damaged = bytearray(whole)
        damaged[index] ^= 1 << index % 8
        file_of(tmp_path).write_bytes(damaged)
        with pytest.raises(JournalDamaged):
            kept(tmp_path)
        assert file_of(tmp_path).read_bytes() == damaged


def test_damage_is_named_with_its_place_and_with_what_to_do(tmp_path: Path) -> None:
    first, _ = write(tmp_path, [number(1)], [number(2)])
    damaged = bytearray(file_of(tmp_path).read_bytes())
    damaged[first + 30] ^= 1
    file_of(tmp_path).write_bytes(damaged)
    with pytest.raises(JournalDamaged) as raised:
        kept(tmp_path)
    assert (raised.value.file, raised.value.offset) == (file_of(tmp_path), first)
    assert f"byte {first}" in str(raised.value)
    assert f"move {tmp_path} away to start empty" in str(raised.value)


def test_what_came_before_damage_is_handed_out_first(tmp_path: Path) -> None:
    first, _ = write(tmp_path, [number(1)], [number(2)])
    damaged = bytearray(file_of(tmp_path).read_bytes())
    damaged[first] ^= 1
    file_of(tmp_path).write_bytes(damaged)
    journal = Journal(tmp_path)
    records = journal.load()
    assert next(records) == number(1)
    with pytest.raises(JournalDamaged):
        next(records)
    journal.close()


def test_a_file_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    file_of(tmp_path).write_bytes(b"a diary, not a journal of ours")
    with pytest.raises(JournalDamaged, match="does not begin as a journal"):
        write(tmp_path, [number(1)])
    assert file_of(tmp_path).read_bytes() == b"a diary, not a journal of ours"


def test_a_group_that_the_disk_refuses_is_tried_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.record(number(1))
    journal.flush()
    size = file_of(tmp_path).stat().st_size
    for record in RECORDS:
        journal.record(record)
    for _ in range(2):
        with files_of_at_most(size + 100), pytest.raises(JournalUnwritable, match="too large"):
            journal.flush()
        assert file_of(tmp_path).stat().st_size == size
    journal.record(number(2))
    journal.close()
    expected = [number(1), *RECORDS, number(2)]
    assert [comparable(one) for one in kept(tmp_path)] == [comparable(one) for one in expected]


def test_a_second_journal_on_a_folder_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(FolderInUse, match=f"in use by process {os.getpid()}: stop"):
        Journal(tmp_path)
    journal.close()
    Journal(tmp_path).close()


def test_all_errors_have_one_base() -> None:
    for error in (FolderInUse, JournalDamaged, JournalUnwritable):
        assert issubclass(error, JournalError)


def test_compaction_leaves_the_records_that_are_given(tmp_path: Path) -> None:
    write(tmp_path, *([number(value)] for value in range(50)))
    journal = Journal(tmp_path)
    assert len(list(journal.load())) == 50
    journal.record(number(50))
    journal.compact([number(50)])
    assert not file_of(tmp_path).with_name("journal.new").exists()
    journal.record(number(51))
    journal.close()
    assert kept(tmp_path) == [number(50), number(51)]


def test_a_compacted_file_is_on_the_disk_before_it_takes_the_place_of_the_other(
    tmp_path: Path, disk: Disk
) -> None:
    """Also without `fsync`: a loss of power must not take what was kept long before."""
    journal = Journal(tmp_path)
    journal.record(number(1))
    journal.compact([number(1)])
    file = file_of(tmp_path).stat().st_ino
    assert disk.steps == [
        ("synced", file),
        ("replaced", file),
        ("synced", tmp_path.stat().st_ino),
    ]
    journal.close()


def test_only_the_owner_reads_the_file(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert file_of(tmp_path).stat().st_mode & 0o777 == 0o600
    journal.compact([number(1)])
    journal.close()
    assert file_of(tmp_path).stat().st_mode & 0o777 == 0o600


def test_compaction_takes_more_records_than_fit_a_group(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.compact(number(value) for value in range(1000))
    journal.close()
    assert kept(tmp_path) == [number(value) for value in range(1000)]


def test_compaction_that_was_cut_short_leaves_the_old_file(tmp_path: Path) -> None:
    write(tmp_path, [number(1)])
    other = tmp_path / "other"
    write(other, RECORDS)
    fresh = file_of(other).read_bytes()
    for length in range(0, len(fresh), 7):
        file_of(tmp_path).with_name("journal.new").write_bytes(fresh[:length])
        assert kept(tmp_path) == [number(1)]
        assert not file_of(tmp_path).with_name("journal.new").exists()


def test_compaction_that_the_disk_refuses_leaves_the_old_file(tmp_path: Path) -> None:
    journal = Journal(tmp_path, compaction_floor=10)
    journal.record(number(1))
    journal.flush()
    assert journal.wants_compaction
    with files_of_at_most(2000), pytest.raises(JournalUnwritable):
        journal.compact([*RECORDS, *RECORDS])
    assert not journal.wants_compaction
    journal.record(number(2))
    journal.close()
    assert kept(tmp_path) == [number(1), number(2)]


def test_compaction_that_fails_on_its_way_leaves_the_old_file(tmp_path: Path) -> None:
    def snapshot() -> Iterator[Record]:
        yield number(7)
        raise RuntimeError("no more")

    journal = Journal(tmp_path)
    journal.record(number(1))
    with pytest.raises(RuntimeError):
        journal.compact(snapshot())
    journal.record(number(2))
    journal.close()
    assert kept(tmp_path) == [number(1), number(2)]


def test_compaction_is_wanted_when_the_file_has_outgrown_what_is_live(tmp_path: Path) -> None:
    journal = Journal(tmp_path, compaction_floor=1000)
    grown, compacted = [], [250]
    for value in range(2000):
        journal.record(number(value))
        journal.flush()
        if journal.wants_compaction:
            grown.append(file_of(tmp_path).stat().st_size)
            journal.compact(number(live) for live in range(value // 2))
            compacted.append(file_of(tmp_path).stat().st_size)
    journal.close()
    assert len(grown) > 2
    assert all(size > 4 * live for size, live in zip(grown, compacted, strict=False))
    assert all(size < 4 * live + 200 for size, live in zip(grown[1:], compacted[1:], strict=False))
