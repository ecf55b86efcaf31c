"""Topics and subscriptions of a topology, in the broker."""

from dataclasses import replace

from lucius_bus.filters import Filter, MatchAll, PropertyFilter
from lucius_bus.port import Misused
from lucius_bus.topology import SubscriptionSettings, Topology
from servicebus_emulator import broker as emulated
from servicebus_emulator.broker import Broker, BrokerError, EntityNotFound, TopicSettings
from servicebus_emulator.rules import DEFAULT_RULE, CorrelationFilter, Rule


def apply(topology: Topology, broker: Broker) -> None:
    """Create what is missing; what the topology does not name stays. `Misused` for a subscription
    that exists with other settings: it would have to be removed first, with its messages."""
    for topic, subscriptions in topology.topics.items():
        try:
            _create_topic(topic, broker)
            for settings in subscriptions:
                create_subscription(topic, settings, broker)
        except BrokerError as error:
            raise Misused(str(error)) from error


def create_subscription(topic: str, settings: SubscriptionSettings, broker: Broker) -> None:
    rule = rule_of(settings)
    try:
        found = broker.subscription(topic, settings.name)
    except EntityNotFound:
        wanted = settings_of(settings, emulated.SubscriptionSettings())
        broker.create_subscription(topic, settings.name, wanted, [rule])
        return
    wanted = settings_of(settings, found.settings)
    if found.settings != wanted or [one.filter for one in found.rules] != [rule.filter]:
        raise Misused(f"subscription {settings.name} of {topic} exists with other settings")


def _create_topic(topic: str, broker: Broker) -> None:
    try:
        broker.topic(topic)
    except EntityNotFound:
        broker.create_topic(topic, TopicSettings())


def settings_of(
    settings: SubscriptionSettings, others: emulated.SubscriptionSettings
) -> emulated.SubscriptionSettings:
    """`others`: where those come from that a topology does not have."""
    ttl = settings.default_ttl
    return replace(
        others,
        lock_duration=round(settings.lock_duration.total_seconds() * 1000),
        max_delivery_count=settings.max_delivery_count,
        requires_session=settings.requires_session,
        default_ttl=None if ttl is None else round(ttl.total_seconds() * 1000),
        dead_letter_on_expiry=settings.dead_letter_on_expiry,
    )


def rule_of(settings: SubscriptionSettings) -> Rule:
    wanted: Filter = settings.filter
    if isinstance(wanted, MatchAll):
        return DEFAULT_RULE
    if not isinstance(wanted, PropertyFilter):
        raise Misused(f"subscription {settings.name} has a filter that the emulator has not")
    filter_ = CorrelationFilter(
        dict(wanted.properties), message_id=wanted.message_id, session_id=wanted.session_id
    )
    return Rule(settings.name, filter_)
