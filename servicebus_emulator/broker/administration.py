"""The verbs of administrators: entities, their settings, their rules."""

from collections.abc import Sequence

from servicebus_emulator.broker.deliveries import Counts
from servicebus_emulator.broker.descriptions import (
    QueueDescription,
    SubscriptionDescription,
    TopicDescription,
)
from servicebus_emulator.broker.errors import EntityExists, EntityNotFound, NotAllowed
from servicebus_emulator.broker.limits import check_name, check_part, check_settings
from servicebus_emulator.broker.namespace import Namespace, subscription_path
from servicebus_emulator.broker.queue import Queue
from servicebus_emulator.broker.records import (
    EntityRecord,
    QueueDeleted,
    QueuePut,
    RuleDeleted,
    RulePut,
    SubscriptionDeleted,
    SubscriptionPut,
    TopicDeleted,
    TopicPut,
)
from servicebus_emulator.broker.settings import (
    QueueSettings,
    Settings,
    SubscriptionSettings,
    TopicSettings,
)
from servicebus_emulator.broker.source import Source
from servicebus_emulator.broker.topic import Subscription, Topic
from servicebus_emulator.rules import DEFAULT_RULE, Rule

_FIXED = ("requires_session", "requires_duplicate_detection")


class Administration:
    """What creates is `EntityExists` for a name that is taken and `InvalidArgument` for one that
    cannot be; what names an entity is `EntityNotFound`."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._wiring = namespace.wiring

    def create_queue(self, name: str, settings: QueueSettings) -> None:
        now = self._wiring.agenda.now()
        self._check_new(name, settings)
        self._do(QueuePut(name, settings, now, now))

    def create_topic(self, name: str, settings: TopicSettings) -> None:
        now = self._wiring.agenda.now()
        self._check_new(name, settings)
        self._do(TopicPut(name, settings, now, now))

    def create_subscription(
        self,
        topic: str,
        name: str,
        settings: SubscriptionSettings,
        rules: Sequence[Rule] | None = None,
    ) -> None:
        """It gets what is sent from now on and matches a rule: without rules given, everything."""
        now = self._wiring.agenda.now()
        found = self._namespace.topic(topic)
        check_part(name)
        path = subscription_path(found.path, name)
        if path.lower() in self._namespace.sources:
            raise EntityExists(f"there is an entity {path}")
        check_settings(settings, path)
        given = (DEFAULT_RULE,) if rules is None else rules
        _check_rules(given)
        self._do(SubscriptionPut(found.path, name, settings, now, now))
        for rule in given:
            self._do(RulePut(found.path, name, rule))

    def create_rule(self, topic: str, subscription: str, rule: Rule) -> None:
        self._wiring.agenda.now()
        found = self._namespace.subscription(topic, subscription)
        _check_rules((rule,))
        if rule.name.lower() in found.rules:
            raise EntityExists(f"{found.source.path} has a rule {rule.name}")
        self._do(RulePut(topic, subscription, rule))

    def update_queue(self, name: str, settings: QueueSettings) -> None:
        """`NotAllowed` to change whether sessions or duplicate detection are required."""
        now = self._wiring.agenda.now()
        queue = self._namespace.queue(name)
        _check_change(queue.settings, settings, queue.source.path)
        self._do(QueuePut(queue.source.path, settings, queue.created_at, now))

    def update_topic(self, name: str, settings: TopicSettings) -> None:
        now = self._wiring.agenda.now()
        topic = self._namespace.topic(name)
        _check_change(topic.settings, settings, topic.path)
        self._do(TopicPut(topic.path, settings, topic.created_at, now))

    def update_subscription(self, topic: str, name: str, settings: SubscriptionSettings) -> None:
        now = self._wiring.agenda.now()
        found = self._namespace.topic(topic)
        subscription = found.subscription(name)
        _check_change(subscription.settings, settings, subscription.source.path)
        created_at = subscription.created_at
        self._do(SubscriptionPut(found.path, subscription.name, settings, created_at, now))

    def update_rule(self, topic: str, subscription: str, rule: Rule) -> None:
        self._wiring.agenda.now()
        self._namespace.subscription(topic, subscription).rule(rule.name)
        self._do(RulePut(topic, subscription, rule))

    def delete_queue(self, name: str) -> None:
        """With its messages, as all that deletes."""
        self._wiring.agenda.now()
        self._do(QueueDeleted(self._namespace.queue(name).source.path))

    def delete_topic(self, name: str) -> None:
        self._wiring.agenda.now()
        self._do(TopicDeleted(self._namespace.topic(name).path))

    def delete_subscription(self, topic: str, name: str) -> None:
        self._wiring.agenda.now()
        found = self._namespace.topic(topic)
        self._do(SubscriptionDeleted(found.path, found.subscription(name).name))

    def delete_rule(self, topic: str, subscription: str, name: str) -> None:
        self._wiring.agenda.now()
        rule = self._namespace.subscription(topic, subscription).rule(name)
        self._do(RuleDeleted(topic, subscription, rule.name))

    def queue(self, name: str) -> QueueDescription:
        self._wiring.agenda.now()
        return _queue(self._namespace.queue(name))

    def topic(self, name: str) -> TopicDescription:
        self._wiring.agenda.now()
        return _topic(self._namespace.topic(name))

    def subscription(self, topic: str, name: str) -> SubscriptionDescription:
        self._wiring.agenda.now()
        found = self._namespace.topic(topic)
        return _subscription(found, found.subscription(name))

    def queues(self) -> list[QueueDescription]:
        """In the order of their names, as the others."""
        self._wiring.agenda.now()
        return [_queue(one) for _, one in sorted(self._namespace.queues.items())]

    def topics(self) -> list[TopicDescription]:
        self._wiring.agenda.now()
        return [_topic(one) for _, one in sorted(self._namespace.topics.items())]

    def subscriptions(self, topic: str) -> list[SubscriptionDescription]:
        self._wiring.agenda.now()
        found = self._namespace.topic(topic)
        return [_subscription(found, one) for _, one in sorted(found.subscriptions.items())]

    def rules(self, topic: str, subscription: str) -> list[Rule]:
        found = self._namespace.subscription(topic, subscription)
        return [rule for _, rule in sorted(found.rules.items())]

    def counts(self, address: str) -> Counts:
        """Of a queue, a topic, a subscription, or dead letters."""
        self._wiring.agenda.now()
        found = self._namespace.shelf(address)
        if isinstance(found, Source | Topic):
            return found.counts()
        raise EntityNotFound(f"there is no entity {address}")

    def _do(self, record: EntityRecord) -> None:
        if self._wiring.record is not None:
            self._wiring.record(record)
        self._namespace.apply(record)
        self._wiring.bell.ring()

    def _check_new(self, name: str, settings: QueueSettings | TopicSettings) -> None:
        check_name(name)
        check_settings(settings, name)
        if name.lower() in self._namespace.entrances or name.lower() in self._namespace.sources:
            raise EntityExists(f"there is an entity {name}")


def _check_rules(rules: Sequence[Rule]) -> None:
    names = [rule.name.lower() for rule in rules]
    for name in names:
        check_part(name)
        if names.count(name) > 1:
            raise EntityExists(f"two rules are named {name}")


def _check_change(old: Settings, new: Settings, path: str) -> None:
    check_settings(new, path)
    for name in _FIXED:
        if getattr(old, name, None) != getattr(new, name, None):
            raise NotAllowed(f"{name} of {path} is decided when it is created")


def _queue(queue: Queue) -> QueueDescription:
    source = queue.source
    accessed_at = max(source.accessed_at, queue.entrance.accessed_at)
    return QueueDescription(
        source.path,
        queue.settings,
        queue.created_at,
        queue.updated_at,
        accessed_at,
        source.counts(),
    )


def _topic(topic: Topic) -> TopicDescription:
    return TopicDescription(
        topic.path,
        topic.settings,
        topic.created_at,
        topic.updated_at,
        topic.entrance.accessed_at,
        topic.counts(),
        len(topic.subscriptions),
    )


def _subscription(topic: Topic, one: Subscription) -> SubscriptionDescription:
    return SubscriptionDescription(
        topic.path,
        one.name,
        one.settings,
        tuple(rule for _, rule in sorted(one.rules.items())),
        one.created_at,
        one.updated_at,
        one.source.accessed_at,
        one.source.counts(),
    )
