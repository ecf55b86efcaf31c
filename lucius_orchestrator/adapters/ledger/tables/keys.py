"""Names of partitions and rows.

`lucius_azure.table_keys` says how they are spelled, and why keys sort as their parts do. `"`, the
character behind `!`, ends the range of keys that begin with certain parts.
"""

import re
from datetime import UTC, datetime, timedelta

from lucius_azure.table_keys import PART_LIMIT, key, part

__all__ = [
    "END",
    "PART_LIMIT",
    "below",
    "descending",
    "key",
    "moment",
    "moment_descending",
    "moment_of",
    "month_descending",
    "month_of_job",
    "part",
]

END = "~~~"
"""Behind every key."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DIGITS = 18
_TIMED_JOB_ID = re.compile(r"job_([0-9a-f]{12})7[0-9a-f]{19}")
_LAST_MONTH = 999999


def below(*parts: str) -> tuple[str, str]:
    """The range of keys that begin with these parts and have more."""
    prefix = key(*parts)
    return f"{prefix}!", f'{prefix}"'


def moment(at: datetime) -> str:
    """Sorts as time does, to the microsecond."""
    return f"{(at - _EPOCH) // _MICROSECOND:0{_DIGITS}d}"


def moment_of(text: str) -> datetime:
    """Return the moment that a key begins with."""
    return _EPOCH + int(text[:_DIGITS]) * _MICROSECOND


def moment_descending(at: datetime) -> str:
    return f"{10**_DIGITS - 1 - (at - _EPOCH) // _MICROSECOND:0{_DIGITS}d}"


def descending(text: str) -> str:
    """Sorts against the order of the texts, a longer one before its own beginning."""
    utf8 = text.encode("utf-8", "surrogatepass")
    return bytes(255 - byte for byte in utf8).hex() + "~"


def month_descending(at: datetime) -> str:
    return f"{_LAST_MONTH - at.year * 100 - at.month:06d}"


def month_of_job(job_id: str) -> str:
    """The month that is in the id, descending; ids of other makes share the month zero.

    Made of the id alone, so that all who create one job name the same partition.
    """
    timed = _TIMED_JOB_ID.fullmatch(job_id)
    try:
        at = _EPOCH + timedelta(milliseconds=int(timed[1], 16)) if timed else None
    except OverflowError:
        at = None
    return month_descending(at) if at else f"{_LAST_MONTH:06d}"
