"""Where the stores on Azure keep the record of a step, and how they spell what is beside it.

A step is named by its ids, spelled as `lucius_azure.table_keys` does: `job_1!step_01`. The SHA-256
of that name gives its bucket, one of 256: so records of one time are spread evenly, and old ones
can be looked for a bucket at a time.
"""

import hashlib
import json
from datetime import datetime
from typing import NamedTuple

from lucius_azure.table_keys import key as name_of
from lucius_sdk.idempotency_store.errors import Conflict, RecordUnreadable
from lucius_sdk.idempotency_store.port import microseconds
from lucius_sdk.idempotency_store.records import ClaimState, Record, StepKey


class Place(NamedTuple):
    bucket: str
    name: str


def place_of(key: StepKey) -> Place:
    return place_named(name_of(*key))


def place_named(name: str) -> Place:
    return Place(hashlib.sha256(name.encode()).hexdigest()[:2], name)


def lapse_of(record: Record) -> str:
    """The moment at which a result that waits to be reported lapses; empty for all others."""
    return moment(record.until) if record.state is ClaimState.COMPLETED else ""


def moment(at: datetime) -> str:
    """Sorts as time does."""
    return f"{microseconds(at):018d}"


def spelled(key: StepKey, *more: str) -> str:
    """In ASCII, whatever is in the ids."""
    return json.dumps([*key, *more])


def read_spelled(text: str | bytes, count: int) -> list[str]:
    """So many texts, which begin with the ids; `RecordUnreadable` if it is something else."""
    try:
        found = json.loads(text)
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, list) or len(found) != count:
        raise RecordUnreadable("what is stored names no step")
    return found


def conflict(key: StepKey) -> Conflict:
    return Conflict(f"step {key.step_id} of {key.job_id} was written by another")
