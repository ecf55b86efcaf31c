"""Entities from a file: Config.json as Microsoft's own emulator of Service Bus reads it."""

from servicebus_emulator.config.applying import apply
from servicebus_emulator.config.namespace import (
    NamespaceConfig,
    QueueConfig,
    SubscriptionConfig,
    TopicConfig,
)
from servicebus_emulator.config.place import ConfigError
from servicebus_emulator.config.reading import load_config, parse_config

__all__ = [
    "ConfigError",
    "NamespaceConfig",
    "QueueConfig",
    "SubscriptionConfig",
    "TopicConfig",
    "apply",
    "load_config",
    "parse_config",
]
