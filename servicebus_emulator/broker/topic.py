"""A topic, and the subscriptions that get copies of what is sent to it."""

from collections.abc import Callable

from servicebus_emulator.broker.content import Content
from servicebus_emulator.broker.deliveries import STATE_SCHEDULED, Counts
from servicebus_emulator.broker.entrance import Entrance
from servicebus_emulator.broker.errors import EntityNotFound
from servicebus_emulator.broker.settings import SubscriptionSettings, TopicSettings
from servicebus_emulator.broker.shelf import Shelf
from servicebus_emulator.broker.source import Source
from servicebus_emulator.broker.wiring import Refusal, Wiring
from servicebus_emulator.rules import Facts, FilterFailed, Rule

Matches = Callable[[Facts], bool]


class Subscription:
    """`rules` by their name in lower case."""

    __slots__ = ("created_at", "name", "rules", "settings", "source", "updated_at")

    def __init__(
        self, name: str, settings: SubscriptionSettings, source: Source, created_at: int
    ) -> None:
        self.name = name
        self.settings = settings
        self.source = source
        self.rules: dict[str, Rule] = {}
        self.created_at = created_at
        self.updated_at = created_at

    def rule(self, name: str) -> Rule:
        rule = self.rules.get(name.lower())
        if rule is None:
            raise EntityNotFound(f"{self.source.path} has no rule {name}")
        return rule

    def matcher(self) -> Matches | None:
        """None: nothing can match."""
        filters = [rule.filter.matches for rule in self.rules.values()]
        if len(filters) < 2:
            return filters[0] if filters else None
        return lambda facts: any(matches(facts) for matches in filters)


class Topic(Shelf):
    """It keeps what is scheduled, and nothing else. A message goes to every subscription of which
    at least one rule matches, once."""

    def __init__(
        self, name: str, settings: TopicSettings, wiring: Wiring, max_bytes: int, created_at: int
    ) -> None:
        super().__init__(name, wiring)
        self.settings = settings
        self.entrance = Entrance(self, settings, wiring, max_bytes, self.used_bytes)
        self.entrance.accessed_at = created_at
        self.created_at = created_at
        self.updated_at = created_at
        self.subscriptions: dict[str, Subscription] = {}
        self._routes: list[tuple[Matches, Subscription, Source]] = []

    def update(self, settings: TopicSettings) -> None:
        self.settings = self.entrance.settings = settings
        for one in self.subscriptions.values():
            one.source.max_message_bytes = self.entrance.max_message_bytes
            one.source.update(one.settings, settings.default_ttl)

    def subscription(self, name: str) -> Subscription:
        found = self.subscriptions.get(name.lower())
        if found is None:
            raise EntityNotFound(f"topic {self.path} has no subscription {name}")
        return found

    def route(self) -> None:
        """Called when a subscription or a rule comes or goes."""
        matchers = [(one.matcher(), one) for one in self.subscriptions.values()]
        self._routes = [
            (matches, one, one.source) for matches, one in matchers if matches is not None
        ]

    def arrive(
        self, message: Content, moment: int, hops: int = 0, origin: str | None = None
    ) -> None:
        facts = message.facts
        for matches, subscription, source in self._routes:
            try:
                is_wanted = matches(facts)
            except FilterFailed as failure:
                if subscription.settings.dead_letter_on_filter_error:
                    refusal = Refusal("FilterException", str(failure))
                    source.refuse(message, moment, hops, refusal)
                continue
            if is_wanted:
                source.arrive(message, moment, hops, origin)

    def used_bytes(self) -> int:
        return self.size_bytes + sum(
            [one.source.used_bytes() for one in self.subscriptions.values()]
        )

    def counts(self) -> Counts:
        return Counts(0, 0, self.aside[STATE_SCHEDULED], 0, 0, self.used_bytes())
