"""A broker with the semantics of Azure Service Bus: pure, synchronous, in one process.

Nothing here waits or does input and output. The time is what the clock says that the broker is
given; what time brings is done by the next verb, or by `Broker.tick`.
"""

from servicebus_emulator.broker.broker import Broker
from servicebus_emulator.broker.content import Content
from servicebus_emulator.broker.deliveries import (
    Abandon,
    Complete,
    Counts,
    DeadLetter,
    Defer,
    Delivery,
    Outcome,
    Peeked,
)
from servicebus_emulator.broker.descriptions import (
    QueueDescription,
    SubscriptionDescription,
    TopicDescription,
)
from servicebus_emulator.broker.errors import (
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
from servicebus_emulator.broker.observing import Happening, Observation
from servicebus_emulator.broker.records import Record
from servicebus_emulator.broker.sessions import SessionLock
from servicebus_emulator.broker.settings import QueueSettings, SubscriptionSettings, TopicSettings
from servicebus_emulator.broker.source import Source

__all__ = [
    "Abandon",
    "Broker",
    "BrokerError",
    "Complete",
    "Content",
    "Counts",
    "DeadLetter",
    "Defer",
    "Delivery",
    "EntityDisabled",
    "EntityExists",
    "EntityNotFound",
    "Happening",
    "InvalidArgument",
    "LockLost",
    "MessageNotFound",
    "MessageTooLarge",
    "NotAllowed",
    "Observation",
    "Outcome",
    "Peeked",
    "QueueDescription",
    "QueueSettings",
    "QuotaExceeded",
    "Record",
    "SessionLock",
    "SessionLockLost",
    "SessionUnavailable",
    "Source",
    "SubscriptionDescription",
    "SubscriptionSettings",
    "TopicDescription",
    "TopicSettings",
]
