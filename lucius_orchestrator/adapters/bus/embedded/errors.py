"""What the errors of the broker mean to users of the port."""

from lucius_bus.port import (
    BusError,
    BusUnavailable,
    LockLost,
    Misused,
    PublishRefused,
)
from servicebus_emulator.broker import (
    BrokerError,
    EntityDisabled,
    InvalidArgument,
    MessageTooLarge,
    NotAllowed,
    QuotaExceeded,
)
from servicebus_emulator.broker import LockLost as LockEnded

OF_ONE_MESSAGE = (MessageTooLarge, InvalidArgument, NotAllowed)
_FOR_NOW = (EntityDisabled, QuotaExceeded)


def unpublished(error: BrokerError) -> BusError:
    kind = BusUnavailable if isinstance(error, _FOR_NOW) else PublishRefused
    return kind(str(error))


def unreceived(error: BrokerError) -> BusError:
    """Of receivers, and of those who settle."""
    if isinstance(error, LockEnded):
        return LockLost(str(error))
    kind = BusUnavailable if isinstance(error, _FOR_NOW) else Misused
    return kind(str(error))
