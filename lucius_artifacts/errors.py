"""What can go wrong, grouped by what the caller should do.

ArtifactsError
├── Invalid              mend the request; nothing was written
├── NotFound             nothing of that name that the caller may see
├── Refused              the state does not allow it; `reason` says why, nothing was written
├── Gone                 it was deleted, or is about to be: use another version, or upload again
├── Busy                 another one does it at this moment: wait for it
└── Unavailable          storage or policy cannot be reached: try again later
"""


class ArtifactsError(Exception):
    """Base of all errors of this package."""


class Invalid(ArtifactsError, ValueError):
    """A request that can never work. `field` names what is wrong with it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


class NotFound(ArtifactsError):
    def __init__(self, what: str) -> None:
        super().__init__(f"there is no {what}")
        self.what = what


class Refused(ArtifactsError):
    """`reason` is a sentence for the one who asked."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Gone(ArtifactsError):
    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was deleted")
        self.what = what


class Busy(ArtifactsError):
    """Nothing was done."""


class Unavailable(ArtifactsError):
    """Nothing was changed, unless the answer was lost."""
