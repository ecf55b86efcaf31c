"""How services stand: what waits for them, what is with them, and what was heard from them."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from lucius_orchestrator.engine.backlogs import Backlogs
from lucius_orchestrator.engine.service_load import Presence, ServiceTraffic
from lucius_orchestrator.engine.traffic import Traffic
from lucius_orchestrator.ports.ledger import Backlog
from lucius_orchestrator.ports.registry import Snapshot


class ServiceStanding(NamedTuple):
    """A service at a moment; `lanes` are those where directives wait, in their order."""

    at: datetime
    traffic: ServiceTraffic
    waiting: int
    oldest: datetime | None
    lanes: tuple[Backlog, ...]

    @property
    def service(self) -> str:
        return self.traffic.service

    @property
    def is_absent(self) -> bool:
        return self.traffic.presence is Presence.ABSENT

    @property
    def oldest_age(self) -> timedelta | None:
        """Return for how long the directive that waits longest has waited."""
        return None if self.oldest is None else max(self.at - self.oldest, timedelta())

    @property
    def silence(self) -> timedelta | None:
        """Return how long ago anything was heard from it; None: nothing ever."""
        heard_at = self.traffic.heard_at
        return None if heard_at is None else max(self.at - heard_at, timedelta())


class Services:
    """Of this deployment: those that a protocol names, and those with directives."""

    def __init__(
        self,
        traffic: Traffic,
        backlogs: Backlogs,
        snapshot: Callable[[], Snapshot],
        clock: Callable[[], datetime],
    ) -> None:
        self._traffic = traffic
        self._backlogs = backlogs
        self._snapshot = snapshot
        self._clock = clock

    async def read(self) -> list[ServiceStanding]:
        """Return all, by name. Raise what the ledger raises."""
        waiting = await self._backlogs.read()
        return standings(self._traffic, waiting, _named_in(self._snapshot()), self._clock())


def standings(
    traffic: Traffic, backlogs: Iterable[Backlog], named: Iterable[str], now: datetime
) -> list[ServiceStanding]:
    waiting: dict[str, list[Backlog]] = {}
    for row in sorted(backlogs, key=lambda row: row.lane):
        waiting.setdefault(row.service, []).append(row)
    return [
        _standing(found, waiting.get(found.service, []), now)
        for found in traffic.services({*named, *waiting})
        if found.service or found.service in waiting  # rows of an older release name no service
    ]


def _standing(found: ServiceTraffic, rows: list[Backlog], now: datetime) -> ServiceStanding:
    oldest = min((row.oldest for row in rows), default=None)
    return ServiceStanding(now, found, sum(row.waiting for row in rows), oldest, tuple(rows))


def _named_in(snapshot: Snapshot) -> set[str]:
    return {step.service for each in snapshot.protocols.values() for step in each.steps}
