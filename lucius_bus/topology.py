"""Which topics and subscriptions there are: data that every kind of bus can apply."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple, Protocol

from lucius_bus.filters import Filter, MatchAll, PropertyFilter
from lucius_contract.routing import LANES, REPLY_SUBSCRIPTION, directive_topic, reply_topic

SERVICE_PROPERTY = "service"
_DEAD_LETTER_QUEUE = "/$deadletterqueue"
_LONGEST_LOCK = timedelta(minutes=5)


def dead_letters_of(subscription: str) -> str:
    """The name under which the dead letters of a subscription are received."""
    return subscription + _DEAD_LETTER_QUEUE


@dataclass(frozen=True, slots=True)
class SubscriptionSettings:
    """A message stays for `default_ttl` at most, even if it asks for longer. One that was delivered
    `max_delivery_count` times, and not settled, goes to the dead letters; one that expires only
    with `dead_letter_on_expiry`, else it is gone."""

    name: str
    filter: Filter = field(default_factory=MatchAll)
    lock_duration: timedelta = timedelta(seconds=60)
    max_delivery_count: int = 10
    requires_session: bool = False
    default_ttl: timedelta | None = None
    dead_letter_on_expiry: bool = False

    def __post_init__(self) -> None:
        if not timedelta(0) < self.lock_duration <= _LONGEST_LOCK:
            raise ValueError(f"lock_duration must be above 0 and at most {_LONGEST_LOCK}")
        if self.max_delivery_count < 1:
            raise ValueError(f"max_delivery_count must be at least 1: {self.max_delivery_count}")
        if self.default_ttl is not None and self.default_ttl <= timedelta(0):
            raise ValueError(f"default_ttl must be above zero: {self.default_ttl}")


@dataclass(frozen=True, slots=True)
class Topology:
    """The subscriptions of each topic, by its name."""

    topics: Mapping[str, tuple[SubscriptionSettings, ...]]


class Drift(NamedTuple):
    """`entity` is a topic, or a subscription as `topic/name`."""

    entity: str
    setting: str
    wanted: str
    found: str


class TopologyReport(NamedTuple):
    """How a bus stands to a topology. `missing` is what is not there and was not created."""

    created: tuple[str, ...] = ()
    drift: tuple[Drift, ...] = ()
    missing: tuple[str, ...] = ()


class TopologyAdministration(Protocol):
    """Of whichever bus."""

    async def apply(self, topology: Topology) -> TopologyReport:
        """Create what is missing; what exists is left as it is. Done again it changes nothing.
        `BusUnavailable`, `Misused`; part may have been created then."""

    async def compare(self, topology: Topology) -> TopologyReport:
        """What `apply` would create, as `missing`, and what it would find otherwise.
        `BusUnavailable`, `Misused`."""


def lane_topology(services: Iterable[str]) -> Topology:
    """Each lane has a topic of directives, where a service gets those that name it, and a topic of
    replies, which the invoker reads."""
    of_services = tuple(
        SubscriptionSettings(service, PropertyFilter({SERVICE_PROPERTY: service}))
        for service in dict.fromkeys(services)
    )
    of_invoker = (SubscriptionSettings(REPLY_SUBSCRIPTION),)
    directives = {directive_topic(lane): of_services for lane in range(LANES)}
    replies = {reply_topic(lane): of_invoker for lane in range(LANES)}
    return Topology(directives | replies)
