"""How patient a collection is, and what it did."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Schedule:
    """`grace`: how long content stays that nobody refers to. `retention`: how long it can be
    revived after that. `unknown_job_grace`: how long a hold waits for its job to be created.
    `lease`: how long a run may stand still before another collector abandons it."""

    grace: timedelta = timedelta(days=1)
    retention: timedelta = timedelta(days=7)
    unknown_job_grace: timedelta = timedelta(hours=1)
    lease: timedelta = timedelta(minutes=10)
    page: int = 200


@dataclass(slots=True)
class Report:
    run_id: str = ""
    expired_uploads: int = 0
    released_jobs: int = 0
    tombstoned: int = 0
    eligible: int = 0
    marked: int = 0
    revived: int = 0
    deleted: int = 0
    deleted_bytes: int = 0
    objects_gone: int = 0
    workspaces_gone: int = 0
