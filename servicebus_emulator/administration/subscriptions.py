"""Subscriptions of a topic, and the rules of a subscription."""

from servicebus_emulator.administration import descriptions
from servicebus_emulator.administration.atom import Entry, described
from servicebus_emulator.administration.call import Call, gone, many, one, put, updated
from servicebus_emulator.administration.descriptions import View, read_settings, write_description
from servicebus_emulator.administration.exchange import Response
from servicebus_emulator.administration.rules import read_default_rule, read_rule, write_rule
from servicebus_emulator.broker import (
    Broker,
    EntityNotFound,
    SubscriptionDescription,
    SubscriptionSettings,
)
from servicebus_emulator.rules import Rule

_KIND = "SubscriptionDescription"


class Subscriptions:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def get(self, call: Call) -> Response:
        return one(_entry(self._broker.subscription(*call.names), call))

    def list(self, call: Call) -> Response:
        found = self._broker.subscriptions(*call.names)
        return many("Subscriptions", [_entry(entity, call) for entity in found], call)

    def put(self, call: Call) -> Response:
        topic, name = call.names
        description = described(call.request.body, _KIND)
        changes = read_settings(descriptions.SUBSCRIPTION, description)
        if call.is_update:
            settings = updated(self._broker.subscription(topic, name).settings, changes)
            self._broker.update_subscription(topic, name, settings)
        else:
            rule = read_default_rule(description)
            rules = None if rule is None else [rule]
            self._broker.create_subscription(topic, name, SubscriptionSettings(**changes), rules)
        return put(_entry(self._broker.subscription(topic, name), call), call)

    def delete(self, call: Call) -> Response:
        self._broker.delete_subscription(*call.names)
        return gone()


class Rules:
    """The broker does not know when a rule was made: the time of its subscription is shown."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def get(self, call: Call) -> Response:
        return one(self._entry(call))

    def list(self, call: Call) -> Response:
        found = self._broker.subscription(*call.names)
        entries = [_rule_entry(rule, found, call) for rule in found.rules]
        return many("Rules", entries, call)

    def put(self, call: Call) -> Response:
        topic, subscription, name = call.names
        rule = read_rule(name, described(call.request.body, "RuleDescription"))
        if call.is_update:
            self._broker.update_rule(topic, subscription, rule)
        else:
            self._broker.create_rule(topic, subscription, rule)
        return put(self._entry(call), call)

    def delete(self, call: Call) -> Response:
        self._broker.delete_rule(*call.names)
        return gone()

    def _entry(self, call: Call) -> Entry:
        topic, subscription, name = call.names
        found = self._broker.subscription(topic, subscription)
        for rule in found.rules:
            if rule.name.lower() == name.lower():
                return _rule_entry(rule, found, call)
        raise EntityNotFound(f"there is no rule {name} in {topic}/Subscriptions/{subscription}")


def _entry(entity: SubscriptionDescription, call: Call) -> Entry:
    view = View(entity, call.base, 0)
    return Entry(
        entity.name,
        _address(entity, call),
        _KIND,
        write_description(descriptions.SUBSCRIPTION, view),
        entity.created_at,
        entity.updated_at,
    )


def _rule_entry(rule: Rule, owner: SubscriptionDescription, call: Call) -> Entry:
    return Entry(
        rule.name,
        f"{_address(owner, call)}/Rules/{rule.name}",
        "RuleDescription",
        write_rule(rule, owner.created_at),
        owner.created_at,
        owner.updated_at,
    )


def _address(entity: SubscriptionDescription, call: Call) -> str:
    return f"{call.base}/{entity.topic}/Subscriptions/{entity.name}"
