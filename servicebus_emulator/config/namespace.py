"""The entities of a namespace, as a file declares them."""

from dataclasses import dataclass

from servicebus_emulator.broker.settings import QueueSettings, SubscriptionSettings, TopicSettings
from servicebus_emulator.rules import Rule


@dataclass(frozen=True, slots=True)
class QueueConfig:
    name: str
    settings: QueueSettings


@dataclass(frozen=True, slots=True)
class SubscriptionConfig:
    """`rules` None: the file names none, so everything comes."""

    name: str
    settings: SubscriptionSettings
    rules: tuple[Rule, ...] | None


@dataclass(frozen=True, slots=True)
class TopicConfig:
    name: str
    settings: TopicSettings
    subscriptions: tuple[SubscriptionConfig, ...]


@dataclass(frozen=True, slots=True)
class NamespaceConfig:
    name: str
    queues: tuple[QueueConfig, ...]
    topics: tuple[TopicConfig, ...]
