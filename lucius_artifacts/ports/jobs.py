"""What the collector asks about jobs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Running:
    """It has not ended, or nobody can tell."""


@dataclass(frozen=True, slots=True)
class Ended:
    at: datetime


@dataclass(frozen=True, slots=True)
class Unknown:
    """There is no such job: it was never created, is about to be, or was forgotten."""


Standing = Running | Ended | Unknown


class Jobs(Protocol):
    async def standing(self, job_id: str) -> Standing:
        """`Unavailable` if the ledger cannot be asked."""
        ...
