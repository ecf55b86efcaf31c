"""The invoker, as the worker and the API see it: the one that writes jobs which Temporal drives.

Every verb answers what comes next for the job, which the caller obeys. Asking twice is asking once.

    InvokerError
    ├── InvokerRefused        obey what comes next, if it is said; else the call itself is wrong
    └── InvokerUnavailable    try again later; what was asked may or may not have been done
"""

from datetime import datetime
from typing import NamedTuple, Protocol

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.domain.workflow import Next


class InvokerError(Exception):
    """Base of all errors of an invoker."""


class InvokerRefused(InvokerError):
    """`following` is what comes next for the job, None if the call was not about one."""

    def __init__(self, code: ErrorCode, message: str, following: Next | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.following = following


class InvokerUnavailable(InvokerError):
    """It could not be reached, or could not do it now."""


class AttemptName(NamedTuple):
    job_id: str
    tenant_id: str
    step_id: str
    attempt_no: int
    lease_id: str


class Reported(NamedTuple):
    """`not_before`: replies that came while the invoker was away are let in first; ask then."""

    following: Next
    not_before: datetime | None


class Commander(Protocol):
    async def command(self, job_id: str, verb: str, by: str | None) -> Next:
        """`cancel`, `pause` or `resume`."""


class Invoker(Commander, Protocol):
    async def open_attempt(self, attempt: AttemptName, lease_expires_at: datetime) -> Next:
        """Record the attempt under its lease, with the directive to publish. Nothing is opened that
        was opened before, or that the job does not ask for."""

    async def publish(self, attempt: AttemptName) -> Next:
        """Publish the attempt's directive, unless it is out or not wanted any more."""

    async def report(self, attempt: AttemptName, event: str, deadline: datetime) -> Reported:
        """A deadline has passed; `event` is a `TimerName`. It means nothing if it has moved."""
