"""The durable changes of a broker, one record each.

Replayed in their order on an empty broker they give the same broker. Locks are not among them:
after a restart what was locked is available again. `path` is that of a queue, of a topic (for what
is scheduled there), of a subscription, or of the dead letters beside one.
"""

from typing import NamedTuple

from servicebus_emulator.broker.content import Content
from servicebus_emulator.broker.settings import QueueSettings, SubscriptionSettings, TopicSettings
from servicebus_emulator.rules import Rule


class QueuePut(NamedTuple):
    """Created, or given other settings."""

    name: str
    settings: QueueSettings
    created_at: int
    updated_at: int


class QueueDeleted(NamedTuple):
    name: str


class TopicPut(NamedTuple):
    name: str
    settings: TopicSettings
    created_at: int
    updated_at: int


class TopicDeleted(NamedTuple):
    """With all its subscriptions."""

    name: str


class SubscriptionPut(NamedTuple):
    """A new one has no rules: a record for each follows."""

    topic: str
    name: str
    settings: SubscriptionSettings
    created_at: int
    updated_at: int


class SubscriptionDeleted(NamedTuple):
    topic: str
    name: str


class RulePut(NamedTuple):
    topic: str
    subscription: str
    rule: Rule


class RuleDeleted(NamedTuple):
    topic: str
    subscription: str
    name: str


class Enqueued(NamedTuple):
    """`expires_at` None: never. `scheduled_at` is given while `state` says that it is scheduled."""

    path: str
    sequence_number: int
    message: Content
    enqueued_at: int
    expires_at: int | None
    delivery_count: int
    state: int
    scheduled_at: int | None
    dead_letter_source: str | None


class Removed(NamedTuple):
    path: str
    sequence_number: int


class Changed(NamedTuple):
    """`message` None: it is what it was."""

    path: str
    sequence_number: int
    state: int
    delivery_count: int
    message: Content | None


class SessionStateSet(NamedTuple):
    path: str
    session_id: str
    state: bytes | None
    updated_at: int


class IdSeen(NamedTuple):
    """Messages with this id are duplicates until then."""

    path: str
    message_id: str
    until: int


class NumbersUsed(NamedTuple):
    """Sequence numbers up to this one are taken, whether or not their messages are there."""

    path: str
    last: int


EntityRecord = (
    QueuePut
    | QueueDeleted
    | TopicPut
    | TopicDeleted
    | SubscriptionPut
    | SubscriptionDeleted
    | RulePut
    | RuleDeleted
)
MessageRecord = Enqueued | Removed | Changed | SessionStateSet | IdSeen | NumbersUsed
Record = EntityRecord | MessageRecord
