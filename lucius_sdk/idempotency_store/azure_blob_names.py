"""The blobs of the store on Azure Blob Storage, below the folder that it was given.

| name | what |
| --- | --- |
| `record/ae/job_1!step_01.jsonl` | the record of a step: a line with the ids and the token of the \
write, and the document |
| `lapsed/001767225660000000!job_1!step_01!TOKEN` | an entry, which is empty: the write of that \
token stores a result that lapses at this microsecond |
| `check` | what a check writes |

The token of a write is a random number and, behind a dot, the ETag of what it replaces, if there
was something. So the name of an entry says on what the write builds, and whether it can still come.
"""

from datetime import datetime
from typing import NamedTuple, Self
from uuid import uuid4

from lucius_azure.table_keys import part
from lucius_sdk.idempotency_store.azure_layout import (
    Place,
    moment,
    place_named,
    read_spelled,
    spelled,
)
from lucius_sdk.idempotency_store.records import Record, StepKey, decode, encode

CHECK = "check"
LAPSED = "lapsed/"
_ENTRY_PARTS = 4


class Version(NamedTuple):
    """`lapse` and `token` are those of the write; `lapse` is empty if it stored no result."""

    etag: str
    lapse: str
    token: str

    def __str__(self) -> str:
        return "|".join(self)


class Entry(NamedTuple):
    lapse: str
    name: str
    token: str

    @classmethod
    def named(cls, blob: str) -> "Entry | None":
        """None for the name of something else."""
        parts = blob.removeprefix(LAPSED).split("!")
        return cls(parts[0], "!".join(parts[1:3]), parts[3]) if len(parts) == _ENTRY_PARTS else None

    @property
    def blob(self) -> str:
        return f"{LAPSED}{self.lapse}!{self.name}!{self.token}"

    @property
    def place(self) -> Place:
        return place_named(self.name)

    def is_before(self, at: datetime) -> bool:
        return self.lapse < moment(at)

    def can_come_true(self, etag: str | None) -> bool:
        """Whether its write can still happen while this is the ETag of what is stored."""
        return self.token.partition(".")[2] == part(etag or "")


class StoredBlob(NamedTuple):
    """A record as it was read."""

    key: StepKey
    token: str
    document: bytes
    etag: str

    @classmethod
    def read(cls, content: bytes, etag: str) -> Self:
        head, _, document = content.partition(b"\n")
        job_id, step_id, token = read_spelled(head, 3)
        return cls(StepKey(job_id, step_id), token, document, etag)

    @property
    def record(self) -> Record:
        return decode(self.document)


def new_token(before: Version | None) -> str:
    return f"{uuid4().hex}.{part(before.etag) if before else ''}"


def record_blob(place: Place) -> str:
    """The suffix is there since no part of a name may end with a dot, as a step may."""
    return f"{bucket_prefix(place.bucket)}{place.name}.jsonl"


def bucket_prefix(bucket: str) -> str:
    return f"record/{bucket}/"


def content_of(key: StepKey, token: str, record: Record) -> bytes:
    return f"{spelled(key, token)}\n{encode(record)}".encode()
