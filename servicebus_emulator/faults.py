"""Switches that let the emulator fail as networks and services do, for tests and demonstrations."""

from dataclasses import dataclass, replace
from enum import StrEnum


class FaultKind(StrEnum):
    """What happens instead of the expected.

    `drop`: the connection is closed and nothing is done. `delay`: it is done later. `refuse`: the
    answer is that the server is busy. `duplicate`: a message is delivered and can be delivered
    again at once. `lose-settlement`: answered as done, and not done. `lose-answer`: done, and the
    connection is closed before the answer.
    """

    DROP = "drop"
    DELAY = "delay"
    REFUSE = "refuse"
    DUPLICATE = "duplicate"
    LOSE_SETTLEMENT = "lose-settlement"
    LOSE_ANSWER = "lose-answer"


class Point(StrEnum):
    """Where a fault can strike."""

    ATTACH = "attach"
    SEND = "send"
    RECEIVE = "receive"
    SETTLE = "settle"
    MANAGE = "manage"


_POINTS = {
    FaultKind.DUPLICATE: frozenset({Point.RECEIVE}),
    FaultKind.LOSE_SETTLEMENT: frozenset({Point.SETTLE}),
    FaultKind.LOSE_ANSWER: frozenset({Point.SEND, Point.SETTLE, Point.MANAGE}),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """Strikes `count` times at `point` of `entity`; at every point or entity where none is named.
    An entity is named by its path, as `topic/Subscriptions/name`; a topic's name alone means the
    topic, not its subscriptions."""

    kind: FaultKind
    entity: str | None = None
    point: Point | None = None
    count: int = 1
    delay_ms: int = 0

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count must be at least 1: {self.count}")
        if self.kind is FaultKind.DELAY and self.delay_ms < 1:
            raise ValueError("a delay needs delay_ms of at least 1")
        if self.point is not None and self.point not in _POINTS.get(self.kind, Point):
            allowed = ", ".join(sorted(_POINTS[self.kind]))
            raise ValueError(f"{self.kind} strikes only at {allowed}, not at {self.point}")

    def strikes(self, point: Point, entity: str) -> bool:
        if point not in _POINTS.get(self.kind, Point) or self.point not in (None, point):
            return False
        return self.entity is None or self.entity.lower() == entity.lower()


class Faults:
    """Those that have not struck as often as they shall, in the order in which they were added."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> None:
        self._faults.append(fault)

    def clear(self) -> None:
        self._faults.clear()

    def active(self) -> list[Fault]:
        """Each with what is left of its count."""
        return list(self._faults)

    def take(self, point: Point, entity: str) -> Fault | None:
        """The fault that strikes now, counted down."""
        for index, fault in enumerate(self._faults):
            if fault.strikes(point, entity):
                if fault.count == 1:
                    del self._faults[index]
                else:
                    self._faults[index] = replace(fault, count=fault.count - 1)
                return fault
        return None
