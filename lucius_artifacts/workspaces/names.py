"""Which folders are those of jobs, and when a job was made."""

import re
from datetime import UTC, datetime

_JOB_ID = re.compile(r"job_([0-9a-f]{12})7[0-9a-f]{3}[89ab][0-9a-f]{15}")


def is_job_id(name: str) -> bool:
    return _JOB_ID.fullmatch(name) is not None


def made_at(job_id: str) -> datetime:
    """An id begins with its millisecond. ValueError if it is none."""
    found = _JOB_ID.fullmatch(job_id)
    if found is None:
        raise ValueError(f"{job_id} is not the id of a job")
    return datetime.fromtimestamp(int(found[1], 16) / 1000, UTC)
