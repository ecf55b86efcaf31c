"""How services stand: what waits for them, what is with them, and what was heard from them."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple

from lucius_orchestrator.engine.backlogs import Backlogs
from lucius_orchestrator.engine.traffic import ServiceTraffic, Traffic
from lucius_orchestrator.ports.ledger import Backlog
from lucius_orchestrator.ports.registry import Snapshot


class ServiceStanding(NamedTuple):
    """`lanes` are those where directives wait, in their order."""

    traffic: ServiceTraffic
    waiting: int
    oldest: datetime | None
    lanes: tuple[Backlog, ...]

    @property
    def service(self) -> str:
        return self.traffic.service


class Services:
    """Of this deployment: those that a protocol names, and those with directives."""

    def __init__(
        self, traffic: Traffic, backlogs: Backlogs, snapshot: Callable[[], Snapshot]
    ) -> None:
        self._traffic = traffic
        self._backlogs = backlogs
        self._snapshot = snapshot

    async def read(self) -> list[ServiceStanding]:
        """Return all, by name. Raise what the ledger raises."""
        return standings(self._traffic, await self._backlogs.read(), named_in(self._snapshot()))


def named_in(snapshot: Snapshot) -> set[str]:
    return {step.service for each in snapshot.protocols.values() for step in each.steps}


def standings(
    traffic: Traffic, backlogs: Iterable[Backlog], named: Iterable[str]
) -> list[ServiceStanding]:
    waiting: dict[str, list[Backlog]] = {}
    for row in backlogs:
        waiting.setdefault(row.service, []).append(row)
    return [
        _standing(found, sorted(waiting.get(found.service, ()), key=lambda row: row.lane))
        for found in traffic.services({*named, *waiting})
        if found.service or found.service in waiting  # rows of an older release name no service
    ]


def _standing(found: ServiceTraffic, rows: list[Backlog]) -> ServiceStanding:
    oldest = min((row.oldest for row in rows), default=None)
    return ServiceStanding(found, sum(row.waiting for row in rows), oldest, tuple(rows))
