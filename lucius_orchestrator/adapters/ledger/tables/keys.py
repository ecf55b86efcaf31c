"""Names of partitions and rows, in the characters that Azure Tables allows.

A key is made of parts that are joined by `!`. In a part, letters, digits and `._-` stand for
themselves, every other character is `~XX` for each of its UTF-8 bytes, and a part that would be
longer than 160 characters is `~~` with its SHA-256. `!` sorts below all of them, so keys sort as
their parts do; `"`, the next character, ends the range of keys that begin with certain parts.
"""

import hashlib
import re
from datetime import UTC, datetime, timedelta

PART_LIMIT = 160
END = "\uffff"
"""Behind every key."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DIGITS = 18
_SAFE = re.compile(r"[A-Za-z0-9._-]*")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_TIMED_JOB_ID = re.compile(r"job_([0-9a-f]{12})7[0-9a-f]{19}")
_LAST_MONTH = 999999


def key(*parts: str) -> str:
    return "!".join([part(text) for text in parts])


def part(text: str) -> str:
    if len(text) <= PART_LIMIT and _SAFE.fullmatch(text):
        return text
    escaped = _UNSAFE.sub(_escape, text)
    if len(escaped) <= PART_LIMIT:
        return escaped
    return "~~" + hashlib.sha256(_utf8(text)).hexdigest()


def below(*parts: str) -> tuple[str, str]:
    """The range of keys that begin with these parts and have more."""
    prefix = key(*parts)
    return f"{prefix}!", f'{prefix}"'


def moment(at: datetime) -> str:
    """Sorts as time does, to the microsecond."""
    return f"{(at - _EPOCH) // _MICROSECOND:0{_DIGITS}d}"


def moment_descending(at: datetime) -> str:
    return f"{10**_DIGITS - 1 - (at - _EPOCH) // _MICROSECOND:0{_DIGITS}d}"


def descending(text: str) -> str:
    """Sorts against the order of the texts, a longer one before its own beginning."""
    return bytes(255 - byte for byte in _utf8(text)).hex() + "~"


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


def _escape(unsafe: re.Match[str]) -> str:
    return "".join(f"~{byte:02X}" for byte in _utf8(unsafe[0]))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
