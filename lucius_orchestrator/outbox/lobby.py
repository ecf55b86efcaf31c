"""Directives that were claimed at birth and wait for room, in the memory of their dispatcher.

For a burst that a service works off within a second or so this saves the way over the ledger. What
waits longer is given back to the ledger, where any dispatcher finds it.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from lucius_contract.routing import Mode
from lucius_orchestrator.domain.decision import DirectiveRow
from lucius_orchestrator.outbox.publishing import row_of
from lucius_orchestrator.ports.ledger import Claim, Queue


class _Guest(NamedTuple):
    claim: Claim
    since: float


class Lobby:
    """Times are those of the event loop."""

    def __init__(self) -> None:
        self._services: dict[str, dict[Queue, deque[_Guest]]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, claim: Claim, now: float) -> None:
        row = row_of(claim)
        queues = self._services.setdefault(row.service, {})
        queues.setdefault(queue_of(row), deque()).append(_Guest(claim, now))
        self._size += 1

    def services(self) -> list[str]:
        return list(self._services)

    def has(self, service: str) -> bool:
        return service in self._services

    def queues(self, service: str) -> list[Queue]:
        return sorted(self._services.get(service, ()))

    def take(self, queue: Queue, count: int) -> Iterator[Claim]:
        """Take the oldest of a queue, as many as there are."""
        guests = self._services.get(queue.service, {}).get(queue)
        while guests and count:
            count -= 1
            self._size -= 1
            yield guests.popleft().claim
        if guests is not None and not guests:
            self._forget(queue)

    def leave(self, before: float) -> list[Claim]:
        """Take all that are of services where one has waited since before that moment."""
        late = [
            service
            for service, queues in self._services.items()
            if any(guests[0].since < before for guests in queues.values())
        ]
        leaving = [
            guest
            for service in late
            for guests in self._services.pop(service).values()
            for guest in guests
        ]
        self._size -= len(leaving)
        return [guest.claim for guest in sorted(leaving, key=lambda guest: guest.since)]

    def _forget(self, queue: Queue) -> None:
        queues = self._services[queue.service]
        del queues[queue]
        if not queues:
            del self._services[queue.service]


def queue_of(row: DirectiveRow) -> Queue:
    body = row.body
    return Queue(row.service, Mode(body["mode"]), body["tenant_id"])
