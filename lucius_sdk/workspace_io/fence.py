"""Who may publish: the order of the runs that may all want to write to one place."""

import json
from typing import NamedTuple, Self


class Fence(NamedTuple):
    """One run of one attempt. Compared member by member, in this order: ids of jobs and steps sort
    by when they were made, attempts and epochs count up. A lower fence never replaces what a higher
    one has published; an equal one is the same run, which may publish again.
    """

    job_id: str
    step_id: str
    attempt_no: int
    epoch: int

    def to_line(self) -> bytes:
        return json.dumps(self._asdict(), ensure_ascii=False).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """ValueError if it is not one."""
        match json.loads(line):
            case {
                "job_id": str(job_id),
                "step_id": str(step_id),
                "attempt_no": int(attempt_no),
                "epoch": int(epoch),
            }:
                return cls(job_id, step_id, attempt_no, epoch)
        raise ValueError("not a fence")
