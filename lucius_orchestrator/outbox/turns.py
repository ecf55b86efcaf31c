"""Which directives are claimed next: room by service, turns by tenant.

The ledger asks while it looks (`ports.ledger.Turns`); what it says follows from `engine.traffic`
and `domain.fair_order`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lucius_contract.routing import Mode, lane_of
from lucius_orchestrator.domain.fair_order import Turn, allot, split
from lucius_orchestrator.engine.traffic import Traffic
from lucius_orchestrator.outbox.publishing import row_of
from lucius_orchestrator.ports.ledger import Claim, Queue

Weight = Callable[[str], int]
"""How many directives a turn of a tenant has."""

NO_SERVICE = ""
"""Of rows that an older release has written."""


def same_weight(_: str) -> int:
    return 1


@dataclass(slots=True)
class _Round:
    turns: dict[Mode, Turn[Queue]] = field(default_factory=dict)
    burst_credit: float = 0.0


class FairTurns:
    """Of one dispatcher. `settle` ends each look."""

    def __init__(
        self, traffic: Traffic, batch_size: int, weight: Weight, burst_share: float
    ) -> None:
        self._traffic = traffic
        self._batch_size = batch_size
        self._weight = weight
        self._burst_share = burst_share
        self._rounds: dict[str, _Round] = {}
        self._rooms: dict[str, int] = {}
        self._probed = set[str]()

    def room(self, service: str) -> int:
        """Each service has a batch of its own, so that none takes the place of another."""
        if service == NO_SERVICE:
            return self._batch_size
        room = min(self._traffic.room(service), self._batch_size)
        self._rooms[service] = room
        if room == 0 and self._traffic.may_probe(service):
            self._probed.add(service)
            return 1
        return room

    def last(self, service: str, mode: Mode) -> Queue | None:
        turn = self._round(service).turns.get(mode)
        return turn.queue if turn else None

    def allot(self, service: str, waiting: Sequence[Queue]) -> Mapping[Queue, int]:
        room = max(self._rooms.get(service, 0), int(service in self._probed))
        return self.divide(service, room, waiting)

    def divide(self, service: str, room: int, waiting: Sequence[Queue]) -> Mapping[Queue, int]:
        """Do the same with a room that was found out before."""
        found = self._round(service)
        default = [queue for queue in waiting if self._may_go(queue)]
        burst = [queue for queue in waiting if queue.mode is Mode.BURST]
        rooms = split(
            room,
            default_waits=bool(default),
            burst_waits=bool(burst),
            burst_share=self._burst_share,
            credit=found.burst_credit,
        )
        found.burst_credit = rooms.credit
        shares: dict[Queue, int] = {}
        for mode, queues, part in (
            (Mode.DEFAULT, default, rooms.default),
            (Mode.BURST, burst, rooms.burst),
        ):
            allotted = allot(queues, part, found.turns.get(mode), self._weight_of)
            shares |= allotted.shares
            if allotted.turn is not None:
                found.turns[mode] = allotted.turn

        return shares

    def behind_last(self, queues: Sequence[Queue]) -> list[Queue]:
        """Return queues of one service, which are sorted, in the order of their turns."""
        later, earlier = list[Queue](), list[Queue]()
        for queue in queues:
            last = self.last(queue.service, queue.mode)
            (later if last is None or queue > last else earlier).append(queue)
        return later + earlier

    def settle(self, claims: Sequence[Claim]) -> list[Claim]:
        """End a look: learn which services have directives that wait for room, and return the
        claims that must not go out now:

        *   those beyond the room of their service. They had lapsed: a dispatcher has died that held
            them, most likely unpublished;
        *   a probe that was tried before. So a directive loses no more than one attempt to finding
            out whether its service is full.
        """
        rooms = self._rooms.copy()
        claimed = Counter[str]()
        unfit = list[Claim]()
        for claim in claims:
            row = row_of(claim)
            room = rooms.setdefault(row.service, self._traffic.room(row.service))
            is_probe = room == 0 and row.service in self._probed
            claimed[row.service] += 1
            if claimed[row.service] > max(room, int(is_probe)) or (is_probe and row.attempt_no > 1):
                unfit.append(claim)
        for service in {*self._traffic.with_backlog(), *rooms}:
            is_full = service in rooms and claimed[service] >= rooms[service]
            self._traffic.set_backlog(service, waits=is_full)
        for service in self._probed:
            self._traffic.has_probed(service)
        self._probed.clear()
        self._rooms.clear()
        return unfit

    def _round(self, service: str) -> _Round:
        found = self._rounds.get(service)
        if found is None:
            found = self._rounds[service] = _Round()
        return found

    def _may_go(self, queue: Queue) -> bool:
        """A tenant in mode DEFAULT has one lane, which may be full; the documents of a BURST tenant
        are in many."""
        if queue.mode is not Mode.DEFAULT:
            return False
        lane = lane_of(queue.tenant_id.strip().lower())
        return self._traffic.has_lane_room(queue.service, lane)

    def _weight_of(self, queue: Queue) -> int:
        return self._weight(queue.tenant_id)
