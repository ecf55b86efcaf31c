"""How the emulator inside this process stands to a topology, looked at without a connection."""

from collections.abc import Iterator, Sequence
from dataclasses import fields

from lucius_bus.topology import (
    Drift,
    SubscriptionSettings,
    Topology,
    TopologyReport,
)
from lucius_orchestrator.adapters.bus.embedded.bus import EmbeddedBus
from lucius_orchestrator.adapters.bus.embedded.topology import rule_of, settings_of
from servicebus_emulator.broker import Broker, EntityNotFound, SubscriptionDescription


class EmbeddedTopology:
    def __init__(self, bus: EmbeddedBus, broker: Broker) -> None:
        self._bus = bus
        self._broker = broker

    async def apply(self, topology: Topology) -> TopologyReport:
        before = _report(self._broker, topology)
        self._bus.apply(_parts_of(topology, before.missing))
        return before._replace(created=before.missing, missing=())

    async def compare(self, topology: Topology) -> TopologyReport:
        return _report(self._broker, topology)


def _parts_of(topology: Topology, names: Sequence[str]) -> Topology:
    """The bus refuses a topology in which something exists with other settings."""
    return Topology(
        {
            topic: tuple(one for one in wanted if f"{topic}/{one.name}" in names)
            for topic, wanted in topology.topics.items()
        }
    )


def _report(broker: Broker, topology: Topology) -> TopologyReport:
    missing: list[str] = []
    drift: list[Drift] = []
    for topic, wanted in topology.topics.items():
        found = _subscriptions(broker, topic)
        if found is None:
            missing.append(topic)
        for one in wanted:
            there = (found or {}).get(one.name.lower())
            if there is None:
                missing.append(f"{topic}/{one.name}")
            else:
                drift += _drift(f"{topic}/{one.name}", one, there)
    return TopologyReport(drift=tuple(drift), missing=tuple(missing))


def _subscriptions(broker: Broker, topic: str) -> dict[str, SubscriptionDescription] | None:
    try:
        return {one.name.lower(): one for one in broker.subscriptions(topic)}
    except EntityNotFound:
        return None


def _drift(
    entity: str, wanted: SubscriptionSettings, found: SubscriptionDescription
) -> Iterator[Drift]:
    want, have = settings_of(wanted, found.settings), found.settings
    for field in fields(want):
        wanted_value, found_value = getattr(want, field.name), getattr(have, field.name)
        if wanted_value != found_value:
            setting = field.name.replace("_", " ")
            yield Drift(entity, setting, str(wanted_value), str(found_value))
    filters = [rule.filter for rule in found.rules]
    if filters != [rule_of(wanted).filter]:
        yield Drift(entity, "filter", str(rule_of(wanted).filter), str(filters))
    if found.settings.status != "Active":
        yield Drift(entity, "status", "Active", found.settings.status)
