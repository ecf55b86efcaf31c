"""A process that writes is killed at any moment."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from servicebus_emulator.broker.records import Enqueued
from servicebus_emulator.journal import FolderInUse, Journal
from servicebus_emulator.messages import Message
from tests.emulator.journal.writer import GROUP, LIVE

ROOT = Path(__file__).parents[3]
ROUNDS = 6


@contextmanager
def writer(folder: Path, manner: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.emulator.journal.writer", str(folder), manner]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def killed_after(folder: Path, manner: str, groups: int) -> int:
    """What the writer had flushed for sure."""
    with writer(folder, manner) as process:
        assert process.stdout is not None
        printed = "".join(process.stdout.readline() for _ in range(groups))
        assert printed.count("\n") == groups, "the writer ended by itself"
        process.kill()
        printed += process.stdout.read()
    complete, _, _ = printed.rpartition("\n")
    return int(complete.split()[-1])


def numbers_in(folder: Path) -> list[int]:
    journal = Journal(folder)
    numbers = []
    for record in journal.load():
        assert isinstance(record, Enqueued)
        assert isinstance(record.message, Message)
        assert record.message.body == bytes([record.sequence_number % 251]) * 20_000
        numbers.append(record.sequence_number)
    journal.close()
    return numbers


def test_nothing_that_was_flushed_is_lost_and_nothing_is_half_there(tmp_path: Path) -> None:
    chance = random.Random(7)
    for _ in range(ROUNDS):
        flushed = killed_after(tmp_path, "append", chance.randint(1, 30))
        numbers = numbers_in(tmp_path)
        assert numbers == list(range(len(numbers)))
        assert len(numbers) >= flushed
        assert len(numbers) % GROUP == 0


def test_a_compaction_that_is_killed_leaves_a_journal(tmp_path: Path) -> None:
    chance = random.Random(8)
    for _ in range(ROUNDS):
        flushed = killed_after(tmp_path, "compact", chance.randint(1, 8))
        numbers = numbers_in(tmp_path)
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        assert numbers[-1] + 1 >= flushed
        assert len(numbers) >= min(LIVE, numbers[-1] + 1)


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    with writer(tmp_path, "append") as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(FolderInUse, match=f"in use by process {process.pid}"):
            Journal(tmp_path)
        process.kill()
        process.stdout.read()
        process.wait()
        Journal(tmp_path).close()
