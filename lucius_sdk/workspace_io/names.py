"""Names of artifacts: paths below the step's own folder, of which none leads out of it."""

import re

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError

RESERVED = ".lucius-"
"""Begins the names of files that are ours: unfinished writes, and fences."""

NAME_LIMIT = 1024
SEGMENT_LIMIT = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def check_name(name: str) -> str:
    """The name itself, if it is safe. A name is the service's own choice: a bad one is a defect."""
    if len(name) > NAME_LIMIT:
        raise _refused(name, f"is longer than {NAME_LIMIT} characters")
    for segment in name.split("/"):
        problem = segment_problem(segment) or _problem_below_a_step(segment)
        if problem is not None:
            raise _refused(name, problem)
    return name


def segment_problem(segment: str, limit: int = SEGMENT_LIMIT) -> str | None:
    """Why this cannot be one segment of a path, if so; `limit` is in bytes."""
    if not segment.strip("."):
        return "has a segment that is empty or of dots alone"
    if "/" in segment or "\\" in segment:
        return "has a slash or a backslash inside a segment"
    if _CONTROL.search(segment):
        return "holds control characters"
    return _problem_of_bytes(segment, limit)


def _problem_of_bytes(segment: str, limit: int) -> str | None:
    try:
        size = len(segment.encode())
    except UnicodeEncodeError:
        return "is not text that UTF-8 can hold"
    return f"has a segment of more than {limit} bytes" if size > limit else None


def _problem_below_a_step(segment: str) -> str | None:
    if segment.startswith("~"):
        return "has a segment that begins with '~'; those are the folders of take-overs"
    if segment.startswith(RESERVED):
        return f"has a segment that begins with {RESERVED!r}; those are unfinished files"
    return None


def _refused(name: str, problem: str) -> NonRetryableError:
    shown = name if len(name) <= SEGMENT_LIMIT else f"{name[:SEGMENT_LIMIT]}…"
    return NonRetryableError(ErrorCode.INTERNAL, f"the artifact name {shown!r} {problem}")
