"""What comes back when a reply is sent.

    ReplyError
    ├── ReplyUnavailable     not reached, too busy, or failing: the same reply may be sent again
    └── ReplyUnauthorised    the token was not accepted: again, but only until the deadline

Neither of them, nor an answer, repeats a token or the whole address.
"""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """APPLIED and DUPLICATE: it counts. STALE: the attempt is over, stop working. CONFLICT: another
    RESULT counts. REFUSED: it will never be taken. SENT: the bus has it, and nobody answers."""

    APPLIED = "APPLIED"
    DUPLICATE = "DUPLICATE"
    STALE = "STALE"
    CONFLICT = "CONFLICT"
    REFUSED = "REFUSED"
    SENT = "SENT"


class Answer(NamedTuple):
    """`lease_expires_at` and `cancel_requested` are known from answers to ACK and HEARTBEAT over
    HTTP; `detail` says why, for people, where a reply does not count."""

    verdict: Verdict
    lease_expires_at: datetime | None = None
    cancel_requested: bool = False
    detail: str = ""


class ReplyError(Exception):
    """There is no final answer yet."""


class ReplyUnavailable(ReplyError):
    """`retry_after`: the seconds for which the other side asked to be left alone."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ReplyUnauthorised(ReplyError):
    """The other side did not accept the token that came with the directive."""
