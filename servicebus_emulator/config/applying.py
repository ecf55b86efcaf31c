"""Brings a broker to what a file declares."""

from servicebus_emulator.broker import Broker, EntityNotFound
from servicebus_emulator.config.namespace import (
    NamespaceConfig,
    QueueConfig,
    SubscriptionConfig,
    TopicConfig,
)
from servicebus_emulator.rules import Rule


def apply(broker: Broker, config: NamespaceConfig) -> None:
    """Create what is missing, and give what exists the settings and the rules of the file. What the
    file does not name stays.

    `BrokerError` where the broker refuses, for instance to change what an entity has for life.
    """
    for queue in config.queues:
        _put_queue(broker, queue)
    for topic in config.topics:
        _put_topic(broker, topic)
        for subscription in topic.subscriptions:
            _put_subscription(broker, topic.name, subscription)


def _put_queue(broker: Broker, queue: QueueConfig) -> None:
    try:
        existing = broker.queue(queue.name)
    except EntityNotFound:
        broker.create_queue(queue.name, queue.settings)
        return
    if existing.settings != queue.settings:
        broker.update_queue(queue.name, queue.settings)


def _put_topic(broker: Broker, topic: TopicConfig) -> None:
    try:
        existing = broker.topic(topic.name)
    except EntityNotFound:
        broker.create_topic(topic.name, topic.settings)
        return
    if existing.settings != topic.settings:
        broker.update_topic(topic.name, topic.settings)


def _put_subscription(broker: Broker, topic: str, subscription: SubscriptionConfig) -> None:
    name, settings, rules = subscription.name, subscription.settings, subscription.rules
    try:
        existing = broker.subscription(topic, name)
    except EntityNotFound:
        broker.create_subscription(topic, name, settings, rules)
        return
    if existing.settings != settings:
        broker.update_subscription(topic, name, settings)
    if rules is not None:
        _put_rules(broker, topic, name, existing.rules, rules)


def _put_rules(
    broker: Broker,
    topic: str,
    subscription: str,
    existing: tuple[Rule, ...],
    declared: tuple[Rule, ...],
) -> None:
    """New rules come before old ones go, so that no message falls between them."""
    others = {rule.name.lower(): rule for rule in existing}
    for rule in declared:
        found = others.pop(rule.name.lower(), None)
        if found is None:
            broker.create_rule(topic, subscription, rule)
        elif found != rule:
            broker.update_rule(topic, subscription, rule)
    for rule in others.values():
        broker.delete_rule(topic, subscription, rule.name)
