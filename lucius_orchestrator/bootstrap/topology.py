"""The topology that the protocols in force need, and how what is there is told."""

from collections.abc import Iterable, Iterator, Sequence

from lucius_bus.topology import Drift, Topology, lane_topology
from lucius_contract.routing import REPLY_SUBSCRIPTION
from lucius_orchestrator.ports.registry import Snapshot

_MOST_NAMED = 3
_REMEDY = "run `lucius topology apply`"


def topology_of(snapshot: Snapshot, events_topic: str | None = None) -> Topology:
    """`events_topic` has no subscriptions of ours: whoever wants the events makes one."""
    protocols = snapshot.protocols.values()
    lanes = lane_topology(sorted({step.service for each in protocols for step in each.steps}))
    return lanes if events_topic is None else Topology({**lanes.topics, events_topic: ()})


def missing_text(missing: Iterable[str]) -> str:
    return "; ".join(_missing_parts(missing)) + f": {_REMEDY}"


def _missing_parts(missing: Iterable[str]) -> Iterator[str]:
    topics, subscriptions = _sorted_out(missing)
    if topics:
        yield f"no topic {', '.join(topics)}"
    for name, on in subscriptions.items():
        who = "replies have" if name == REPLY_SUBSCRIPTION else f"service {name} has"
        yield f"{who} no subscription on {_listed(on)}"


def created_lines(created: Iterable[str]) -> list[str]:
    topics, subscriptions = _sorted_out(created)
    lines = [f"topics: {_listed(topics)}"] if topics else []
    return lines + [f"subscription {name} on {_listed(on)}" for name, on in subscriptions.items()]


def drift_lines(drift: Iterable[Drift]) -> list[str]:
    return [
        f"{entity}: {what} is {found}, wanted {wanted}" for entity, what, wanted, found in drift
    ]


def drift_text(drift: Sequence[Drift]) -> str:
    lines = drift_lines(drift[:_MOST_NAMED])
    more = len(drift) - len(lines)
    return "; ".join([*lines, f"and {more} more"] if more else lines)


def _sorted_out(entities: Iterable[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Topics, and the topics of each subscription."""
    topics: list[str] = []
    subscriptions: dict[str, list[str]] = {}
    for entity in entities:
        topic, slash, name = entity.partition("/")
        if slash:
            subscriptions.setdefault(name, []).append(topic)
        else:
            topics.append(topic)
    return topics, subscriptions


def _listed(topics: Sequence[str]) -> str:
    if len(topics) <= _MOST_NAMED:
        return ", ".join(topics)
    return f"{len(topics)} topics, the first of them {topics[0]}"
