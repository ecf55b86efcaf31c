"""Reads Config.json.

The shape is that of Microsoft's emulator. Its narrow limits (at most ten deliveries, an hour to
live) and its defaults are not taken over: what a file leaves out is as on Azure.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from servicebus_emulator.broker.settings import (
    STATUSES,
    QueueSettings,
    SubscriptionSettings,
    TopicSettings,
)
from servicebus_emulator.config.namespace import (
    NamespaceConfig,
    QueueConfig,
    SubscriptionConfig,
    TopicConfig,
)
from servicebus_emulator.config.place import ConfigError, Place, unique
from servicebus_emulator.config.rules import read_rule

_Reader = tuple[str, Callable[[Place], Any]]

_NAME = re.compile(r"[A-Za-z0-9](?:[\w\-./]*[A-Za-z0-9])?", re.ASCII)
_EXPIRY: dict[str, _Reader] = {"DefaultMessageTimeToLive": ("default_ttl", Place.optional_duration)}
_DUPLICATES: dict[str, _Reader] = {
    "RequiresDuplicateDetection": ("requires_duplicate_detection", Place.truth),
    "DuplicateDetectionHistoryTimeWindow": ("duplicate_window", Place.duration),
}
_ANY: dict[str, _Reader] = {
    "Status": ("status", lambda place: place.choice(STATUSES)),
    "UserMetadata": ("user_metadata", Place.optional_text),
}
_SIZES: dict[str, _Reader] = {
    "MaxMessageSizeInKilobytes": ("max_message_bytes", lambda place: place.count() * 1024),
    "MaxSizeInMegabytes": ("max_size_bytes", lambda place: place.count() * 1024 * 1024),
}
_READABLE: dict[str, _Reader] = {
    "LockDuration": ("lock_duration", Place.duration),
    "MaxDeliveryCount": ("max_delivery_count", Place.count),
    "RequiresSession": ("requires_session", Place.truth),
    "DeadLetteringOnMessageExpiration": ("dead_letter_on_expiry", Place.truth),
    "ForwardTo": ("forward_to", Place.optional_text),
    "ForwardDeadLetteredMessagesTo": ("forward_dead_letters_to", Place.optional_text),
}
_QUEUE = _READABLE | _EXPIRY | _DUPLICATES | _SIZES | _ANY
_TOPIC = _EXPIRY | _DUPLICATES | _SIZES | _ANY
_SUBSCRIPTION: dict[str, _Reader] = {
    **_READABLE,
    **_EXPIRY,
    "DeadLetteringOnFilterEvaluationExceptions": ("dead_letter_on_filter_error", Place.truth),
    **_ANY,
}


def load_config(path: Path) -> NamespaceConfig:
    """`ConfigError`: it cannot be read, or not be used."""
    try:
        data = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error
    try:
        return parse_config(data)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def parse_config(data: Mapping[str, object]) -> NamespaceConfig:
    """`ConfigError` with the path of the member that is wrong."""
    document = Place(data, "")
    document.members(["UserConfig", "$schema"])
    user = document.member("UserConfig")
    user.members(["Namespaces", "Logging"])
    namespaces = user.member("Namespaces")
    if len(namespaces.items()) != 1:
        namespaces.refuse("exactly one namespace is expected")
    return _namespace(namespaces.items()[0])


def _namespace(place: Place) -> NamespaceConfig:
    place.members(["Name", "Queues", "Topics"])
    queues, topics = place.member("Queues").items(), place.member("Topics").items()
    config = NamespaceConfig(
        place.member("Name").text(), unique(queues, _queue), unique(topics, _topic)
    )
    names = unique([*queues, *topics], _name)  # they share one space of names
    subscriptions = [one for topic in topics for one in topic.member("Subscriptions").items()]
    for readable in [*queues, *subscriptions]:
        _check_targets(readable, names)
    return config


def _check_targets(place: Place, names: Iterable[str]) -> None:
    declared = {name.lower() for name in names}
    for member in ("ForwardTo", "ForwardDeadLetteredMessagesTo"):
        target = place.member("Properties").member(member)
        name = target.optional_text()
        if name is not None and name.lower() not in declared:
            target.refuse(f"no queue or topic of the file is named {name}")


def _queue(place: Place) -> QueueConfig:
    place.members(["Name", "Properties"])
    return QueueConfig(_name(place), QueueSettings(**_properties(place, _QUEUE)))


def _topic(place: Place) -> TopicConfig:
    place.members(["Name", "Properties", "Subscriptions"])
    subscriptions = unique(place.member("Subscriptions").items(), _subscription)
    return TopicConfig(_name(place), TopicSettings(**_properties(place, _TOPIC)), subscriptions)


def _subscription(place: Place) -> SubscriptionConfig:
    place.members(["Name", "Properties", "Rules"])
    rules = unique(place.member("Rules").items(), read_rule)
    settings = SubscriptionSettings(**_properties(place, _SUBSCRIPTION))
    return SubscriptionConfig(_name(place), settings, rules or None)


def _name(place: Place) -> str:
    name = place.member("Name")
    if not _NAME.fullmatch(name.text()):
        name.refuse("letters, digits and - _ . / are allowed, with a letter or digit at both ends")
    return name.text()


def _properties(place: Place, readers: Mapping[str, _Reader]) -> dict[str, Any]:
    """By the names of the fields. A member that is null is as good as absent."""
    properties = place.member("Properties")
    if properties.value is None:
        return {}
    members = properties.members(readers)
    given = {name: member for name, member in members.items() if member.value is not None}
    return {readers[name][0]: readers[name][1](member) for name, member in given.items()}
