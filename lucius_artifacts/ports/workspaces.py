"""The folders in which steps write what they make: `<root>/<system>/<tenant>/<jobId>/`."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class JobFolder:
    """`place` is where the storage has it."""

    job_id: str
    place: str


class Workspaces(Protocol):
    """A failing storage is `Unavailable`. Close it once."""

    def folders(self) -> AsyncIterator[JobFolder]:
        """All folders that are named like a job, in no order. Whatever else lies there is not
        looked into."""
        ...

    async def delete(self, folder: JobFolder) -> None:
        """With all that is in it. One that is not there is no error; what a crash left of one is
        found by `folders` again."""
        ...

    async def close(self) -> None: ...
