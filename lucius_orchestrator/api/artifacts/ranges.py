"""One range of bytes, as a client asks for it (RFC 9110, section 14)."""

import re
from http import HTTPStatus
from typing import NamedTuple

from starlette.exceptions import HTTPException

_ONE = re.compile(rb"bytes=(?P<first>[0-9]*)-(?P<last>[0-9]*)")
_DIGITS = 18


class Span(NamedTuple):
    """From `start` to before `end`."""

    start: int
    end: int
    is_whole: bool = False


def asked_span(asked: bytes | None, total: int) -> Span:
    """What is no range, or more than one, asks for everything. 416 if the range holds nothing."""
    whole = Span(0, total, is_whole=True)
    found = None if asked is None else _ONE.fullmatch(asked.strip().lower().replace(b" ", b""))
    if found is None or not (found["first"] or found["last"]):
        return whole
    if not found["first"]:
        start, end = max(0, total - _number(found["last"])), total
    else:
        start, last = _number(found["first"]), found["last"]
        if last and _number(last) < start:
            return whole
        end = min(total, _number(last) + 1) if last else total
    if start >= end:
        raise HTTPException(
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
            f"the object has {total} bytes",
            {"content-range": f"bytes */{total}"},
        )
    return Span(start, end)


def _number(digits: bytes) -> int:
    """Python refuses to read a number of many thousand digits; all objects are smaller."""
    return int(digits) if len(digits) <= _DIGITS else 10**_DIGITS
