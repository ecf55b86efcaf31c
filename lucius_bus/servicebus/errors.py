"""What the errors of the client mean, as one table.

Meaning     publish           receive, settle, renew
AWAY        BusUnavailable    BusUnavailable
BUSY        BusUnavailable    BusUnavailable, and the topic is left alone for a while
LOST        -                 LockLost
REFUSED     PublishRefused    Misused           this message or call
CLOSED_OFF  PublishRefused    Misused           the whole entity: not there, or not allowed
"""

from enum import Enum, auto
from typing import NamedTuple

from azure.servicebus.exceptions import (
    MessageAlreadySettled,
    MessageLockLostError,
    MessageNotFoundError,
    MessageSizeExceededError,
    MessagingEntityDisabledError,
    MessagingEntityNotFoundError,
    OperationTimeoutError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
    ServiceBusCommunicationError,
    ServiceBusConnectionError,
    ServiceBusQuotaExceededError,
    ServiceBusServerBusyError,
    SessionCannotBeLockedError,
    SessionLockLostError,
)

from lucius_bus.port import BusError, BusUnavailable, LockLost

_LONGEST_TEXT = 400


class Meaning(Enum):
    AWAY = auto()
    BUSY = auto()
    LOST = auto()
    REFUSED = auto()
    CLOSED_OFF = auto()


class Verdict(NamedTuple):
    """`is_broken`: the connection cannot be used any more, or it is not known whether it can."""

    meaning: Meaning
    is_broken: bool


_BROKEN = Verdict(Meaning.AWAY, is_broken=True)
_TABLE: tuple[tuple[type[Exception], Verdict], ...] = (
    (MessageAlreadySettled, Verdict(Meaning.LOST, is_broken=False)),
    (MessageLockLostError, Verdict(Meaning.LOST, is_broken=False)),
    (MessageNotFoundError, Verdict(Meaning.LOST, is_broken=False)),
    (SessionLockLostError, Verdict(Meaning.LOST, is_broken=True)),
    (ServiceBusServerBusyError, Verdict(Meaning.BUSY, is_broken=True)),
    (ServiceBusQuotaExceededError, Verdict(Meaning.AWAY, is_broken=False)),
    (MessageSizeExceededError, Verdict(Meaning.REFUSED, is_broken=False)),
    (MessagingEntityNotFoundError, Verdict(Meaning.CLOSED_OFF, is_broken=True)),
    (ServiceBusAuthorizationError, Verdict(Meaning.CLOSED_OFF, is_broken=True)),
    (SessionCannotBeLockedError, Verdict(Meaning.CLOSED_OFF, is_broken=True)),
    (MessagingEntityDisabledError, _BROKEN),
    (ServiceBusAuthenticationError, _BROKEN),
    (ServiceBusCommunicationError, _BROKEN),
    (ServiceBusConnectionError, _BROKEN),
    (OperationTimeoutError, _BROKEN),
)
_REFUSALS = frozenset(
    {
        "amqp:not-allowed",
        "amqp:not-implemented",
        "amqp:precondition-failed",
        "amqp:decode-error",
        "amqp:invalid-field",
        "com.microsoft:argument-error",
        "com.microsoft:argument-out-of-range",
        "com.microsoft:precondition-failed",
    }
)


def verdict_of(error: Exception) -> Verdict:
    for kind, verdict in _TABLE:
        if isinstance(error, kind):
            return verdict
    if _condition_of(error) in _REFUSALS:
        return Verdict(Meaning.REFUSED, is_broken=True)
    return _BROKEN


class Failure(Exception):
    """A call of the client that failed, in our terms. It never leaves the adapter. `is_sudden`: the
    connection was not there, and that was known at once."""

    def __init__(self, meaning: Meaning, text: str, *, is_sudden: bool = False) -> None:
        super().__init__(text)
        self.meaning = meaning
        self.is_sudden = is_sudden

    def as_error(self, where: str, refusal: type[BusError]) -> BusError:
        text = f"{where}: {self}"
        if self.meaning in (Meaning.AWAY, Meaning.BUSY):
            return BusUnavailable(text)
        return LockLost(text) if self.meaning is Meaning.LOST else refusal(text)


def failure_of(error: Exception) -> Failure:
    meaning, is_broken = verdict_of(error)
    is_late = isinstance(error, TimeoutError | OperationTimeoutError)
    is_sudden = meaning is Meaning.AWAY and is_broken and not is_late
    text = str(error) or type(error).__name__
    return Failure(meaning, text[:_LONGEST_TEXT], is_sudden=is_sudden)


def _condition_of(error: Exception) -> str | None:
    """The AMQP condition, for which the client has no public name."""
    condition = getattr(error, "_condition", None)
    return condition if isinstance(condition, str) else None
