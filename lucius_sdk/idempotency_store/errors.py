"""What can go wrong, grouped by what the caller should do.

StoreError
├── StoreUnavailable   try again; a write may have happened or not
├── Conflict           read again, and decide from what is stored now
├── ClaimLost          stop the work and answer nothing: another has the step
├── DeadlinePassed     answer nothing: the result came too late and was not stored
├── RecordUnreadable   leave the record as it is, and tell an operator
└── StoreUnusable      mend the setting, the file or the installation
"""


class StoreError(Exception):
    """Base of all errors of this package."""


class StoreUnavailable(StoreError):
    """The store did not answer, or not in time. Whether a write happened is not known."""


class Conflict(StoreError):
    """Another version is stored than the one that was expected. Nothing was written."""


class ClaimLost(StoreError):
    """The attempt, the lease or the epoch has moved, or the claim was given up."""


class DeadlinePassed(StoreError):
    """The step's deadline is over and no result was stored in time."""


class RecordUnreadable(StoreError):
    """What is stored is no record: a newer release or a foreign hand wrote it."""


class StoreUnusable(StoreError):
    """Waiting does not help: no database, a newer schema, a package that is not installed."""
