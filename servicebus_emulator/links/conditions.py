"""The errors of the broker in the words of AMQP and of the management protocol."""

from servicebus_emulator.amqp import Error
from servicebus_emulator.broker import (
    BrokerError,
    EntityDisabled,
    EntityExists,
    EntityNotFound,
    InvalidArgument,
    LockLost,
    MessageNotFound,
    MessageTooLarge,
    NotAllowed,
    QuotaExceeded,
    SessionLockLost,
    SessionUnavailable,
)

NOT_FOUND = "amqp:not-found"
UNAUTHORIZED = "amqp:unauthorized-access"
NOT_ALLOWED = "amqp:not-allowed"
NOT_IMPLEMENTED = "amqp:not-implemented"
SERVER_BUSY = "com.microsoft:server-busy"
TIMEOUT = "com.microsoft:timeout"
MESSAGE_LOCK_LOST = "com.microsoft:message-lock-lost"
SESSION_LOCK_LOST = "com.microsoft:session-lock-lost"
ARGUMENT = "com.microsoft:argument-error"
TOO_LARGE = "amqp:link:message-size-exceeded"
RESOURCE_LIMIT = "amqp:resource-limit-exceeded"
CONNECTION_FORCED = "amqp:connection:forced"

_CONDITIONS: dict[type[BrokerError], tuple[str, int]] = {
    EntityNotFound: (NOT_FOUND, 404),
    EntityExists: ("com.microsoft:entity-already-exists", 409),
    EntityDisabled: ("com.microsoft:entity-disabled", 403),
    LockLost: (MESSAGE_LOCK_LOST, 410),
    SessionLockLost: (SESSION_LOCK_LOST, 410),
    SessionUnavailable: ("com.microsoft:session-cannot-be-locked", 409),
    MessageNotFound: ("com.microsoft:message-not-found", 404),
    MessageTooLarge: (TOO_LARGE, 400),
    QuotaExceeded: (RESOURCE_LIMIT, 403),
    NotAllowed: (NOT_ALLOWED, 400),
    InvalidArgument: (ARGUMENT, 400),
}


def condition_of(error: BrokerError) -> tuple[str, int]:
    """The AMQP condition, and the status of a management response."""
    for kind in type(error).__mro__:
        if kind in _CONDITIONS:
            return _CONDITIONS[kind]
    return ("amqp:internal-error", 500)


def description_of(error: BrokerError) -> str:
    if isinstance(error, EntityNotFound):  # the JavaScript client knows it by this sentence
        return f"The messaging entity that was named could not be found: {error}."
    return str(error)


def as_error(error: BrokerError) -> Error:
    condition, _ = condition_of(error)
    return Error(condition, description_of(error))


def busy() -> Error:
    return Error(SERVER_BUSY, "The server is busy. Wait 10 seconds, then try again.")
