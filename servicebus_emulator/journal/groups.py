"""The groups of a journal file."""

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zlib import crc32

from servicebus_emulator.broker.records import Record
from servicebus_emulator.journal.encoding import Encoded, Encoder, decode
from servicebus_emulator.journal.errors import JournalDamaged

FILE_HEAD = b"servicebus journal 1\n"

_LENGTHS = struct.Struct("<4sIII")  # mark, bytes of records, bytes of blobs, their checksum
_CHECK = struct.Struct("<I")  # of the lengths: a wrong length must not look like an end
_HEAD_SIZE = _LENGTHS.size + _CHECK.size
_MARK = b"SBG1"


class Group(NamedTuple):
    """`end` is the offset behind it."""

    records: list[Record]
    end: int


def group_bytes(encoder: Encoder, records: Iterable[Record]) -> bytes:
    encoded = encoder.encode(records)
    checksum = crc32(encoded.blobs, crc32(encoded.records))
    lengths = _LENGTHS.pack(_MARK, len(encoded.records), len(encoded.blobs), checksum)
    return b"".join((lengths, _CHECK.pack(crc32(lengths)), encoded.records, encoded.blobs))


def read_groups(file: Path) -> Iterator[Group]:
    """All groups that are complete; an incomplete one can only be the last and is left out.
    `JournalDamaged` where a checksum does not fit."""
    with file.open("rb") as stream:
        head = stream.read(len(FILE_HEAD))
        if head != FILE_HEAD:
            if not FILE_HEAD.startswith(head):
                raise JournalDamaged(file, 0, "it does not begin as a journal of this version does")
            return
        offset = len(FILE_HEAD)
        while group := _next_group(file, stream, offset):
            yield group
            offset = group.end


def _next_group(file: Path, stream: BinaryIO, offset: int) -> Group | None:
    head = stream.read(_HEAD_SIZE)
    if len(head) < _HEAD_SIZE:
        return None
    mark, record_bytes, blob_bytes, checksum = _LENGTHS.unpack_from(head)
    (head_checksum,) = _CHECK.unpack_from(head, _LENGTHS.size)
    if mark != _MARK or head_checksum != crc32(head[: _LENGTHS.size]):
        raise JournalDamaged(file, offset, "the head of a group does not fit its checksum")
    body = stream.read(record_bytes + blob_bytes)
    if len(body) < record_bytes + blob_bytes:
        return None
    if checksum != crc32(body):
        raise JournalDamaged(file, offset, "a group does not fit its checksum")
    try:
        records = list(decode(Encoded(body[:record_bytes], body[record_bytes:])))
    except ValueError as error:
        raise JournalDamaged(file, offset, str(error)) from error
    return Group(records, offset + _HEAD_SIZE + len(body))


def write_all(descriptor: int, data: bytes) -> None:
    """The system may take a part only, for instance when the disk is nearly full."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]
