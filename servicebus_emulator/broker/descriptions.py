"""What the administration shows of an entity."""

from typing import NamedTuple

from servicebus_emulator.broker.deliveries import Counts
from servicebus_emulator.broker.settings import QueueSettings, SubscriptionSettings, TopicSettings
from servicebus_emulator.rules import Rule


class QueueDescription(NamedTuple):
    """`accessed_at`: when somebody sent or received last, else when it was created."""

    name: str
    settings: QueueSettings
    created_at: int
    updated_at: int
    accessed_at: int
    counts: Counts


class TopicDescription(NamedTuple):
    name: str
    settings: TopicSettings
    created_at: int
    updated_at: int
    accessed_at: int
    counts: Counts
    subscription_count: int


class SubscriptionDescription(NamedTuple):
    topic: str
    name: str
    settings: SubscriptionSettings
    rules: tuple[Rule, ...]
    created_at: int
    updated_at: int
    accessed_at: int
    counts: Counts
