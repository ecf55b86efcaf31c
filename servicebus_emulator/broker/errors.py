"""What the broker refuses, grouped by what the caller should do.

BrokerError
├── EntityNotFound       there is no such queue, topic, subscription or rule, or not any more
├── EntityExists         the name is taken
├── EntityDisabled       its status does not allow this now
├── LockLost             the message is not held any more: leave it, it comes again
│   └── SessionLockLost  the session is not held any more: accept it again
├── SessionUnavailable   another receiver holds the session: try later
├── MessageNotFound      no deferred or scheduled message has this sequence number
├── MessageTooLarge      it never fits
├── QuotaExceeded        the entity is full: receive first
├── NotAllowed           not a use that this kind of entity has
└── InvalidArgument      a value that can never be right
"""


class BrokerError(Exception):
    """Base of all errors of the broker. The text is for the one who called."""


class EntityNotFound(BrokerError):
    """No entity has this name, or it was deleted."""


class EntityExists(BrokerError):
    """An entity of this name exists."""


class EntityDisabled(BrokerError):
    """The status of the entity forbids to send or to receive."""


class LockLost(BrokerError):
    """The lock ran out, or the message was settled before."""


class SessionLockLost(LockLost):
    """The lock on the session ran out, or the session was released."""


class SessionUnavailable(BrokerError):
    """Somebody else holds the session."""


class MessageNotFound(BrokerError):
    """No message with this sequence number is in the state that is asked for."""


class MessageTooLarge(BrokerError):
    """The message, or the state of a session, has more bytes than the entity takes."""


class QuotaExceeded(BrokerError):
    """The entity holds as many bytes as it may."""


class NotAllowed(BrokerError):
    """This entity is not used in this way."""


class InvalidArgument(BrokerError):
    """A name, a setting or a value out of its range."""
