"""What the path of a request names."""

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from servicebus_emulator.administration.exchange import Refusal


class Kind(Enum):
    ENTITY = auto()
    ENTITIES = auto()
    SUBSCRIPTION = auto()
    SUBSCRIPTIONS = auto()
    RULE = auto()
    RULES = auto()
    NAMESPACE = auto()
    FAULTS = auto()
    HEALTH = auto()


class Place(NamedTuple):
    kind: Kind
    names: tuple[str, ...] = ()


_FIXED = {
    ("$resources", "queues"): Place(Kind.ENTITIES, ("queues",)),
    ("$resources", "topics"): Place(Kind.ENTITIES, ("topics",)),
    ("$namespaceinfo",): Place(Kind.NAMESPACE),
    ("$emulator", "faults"): Place(Kind.FAULTS),
    ("$emulator", "health"): Place(Kind.HEALTH),
}


def locate(segments: Sequence[str]) -> Place:
    """The name of a queue or a topic may have slashes. `Refusal`: nothing is there."""
    folded = tuple(segment.lower() for segment in segments)
    if folded in _FIXED:
        return _FIXED[folded]
    if not all(segments) or segments[0].startswith("$"):
        raise Refusal(404, "there is nothing at this path")
    if "subscriptions" not in folded[1:]:
        return Place(Kind.ENTITY, ("/".join(segments),))
    split = len(folded) - 1 - folded[::-1].index("subscriptions")
    return _below("/".join(segments[:split]), segments[split + 1 :])


def _below(topic: str, rest: Sequence[str]) -> Place:
    match rest:
        case []:
            return Place(Kind.SUBSCRIPTIONS, (topic,))
        case [name]:
            return Place(Kind.SUBSCRIPTION, (topic, name))
        case [name, rules] if rules.lower() == "rules":
            return Place(Kind.RULES, (topic, name))
        case [name, rules, rule] if rules.lower() == "rules":
            return Place(Kind.RULE, (topic, name, rule))
    raise Refusal(404, "there is nothing at this path")
