"""Who may say that a version must not be published."""

from dataclasses import dataclass
from typing import Protocol

from lucius_artifacts.model import Version


@dataclass(frozen=True, slots=True)
class Allow:
    """It may be published."""


@dataclass(frozen=True, slots=True)
class Quarantine:
    """It stays a draft; `reason` is for the one who wants to publish it."""

    reason: str


class Policy(Protocol):
    async def judge(self, version: Version) -> Allow | Quarantine:
        """Of a draft that is to be published, or a tombstoned version that is to be restored.

        `Unavailable`, or any other exception: nobody knows, so it is not published.
        """
        ...
