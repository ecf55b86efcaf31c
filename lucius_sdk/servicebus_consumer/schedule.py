"""Which lanes are looked at next, and for how many directives: a pure decision.

A look asks the bus for at most as many directives as slots are set aside for it, so that nothing is
locked here that nobody works on. A lane that gave something at its last look is hot. Free slots are
shared among the hot lanes, one lane after the other, so that a tenant with much work on one lane
does not keep others from being served.

A cold lane is looked at for one directive. While slots are plenty, all of them are, and the looks
last long; with fewer slots than lanes they are so short that going around takes `ROUND`. When slots
are contended, a look at a cold lane keeps a slot from work that is known to wait: the looks are
short, go around the lanes, and use about a quarter of one slot's time, or an eighth of all
slots. So a directive on a quiet lane is found within a few handler times.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

LONG_LOOK = 1.0
SHORT_LOOK = 0.01
ROUND = 0.25
"""Seconds for a look at each lane in turn, while slots are fewer than lanes."""

_PAUSES = (0.2, 1.0, 5.0)
_COLD_SHARE = 8
_COLD_TIME = 0.25
_LEAST_CREDIT = 0.05
_BATCHES = 4
_ENOUGH = 4


class Look(NamedTuple):
    lane: int
    limit: int
    wait: float
    """Seconds."""


@dataclass(slots=True)
class _Lane:
    number: int
    is_hot: bool = False
    is_looked_at: bool = False
    turn: int = 0
    failures: int = 0
    rests_until: float = 0.0


class LaneSchedule:
    """Time is a parameter: seconds that only grow."""

    def __init__(self, lanes: Iterable[int], slots: int) -> None:
        self._lanes = {number: _Lane(number) for number in lanes}
        self._slots = slots
        self._free = slots
        self._turns = 0
        self._cold_looks = 0
        self._cold_credit = 1.0

    @property
    def free(self) -> int:
        return self._free

    @property
    def is_worth_a_look(self) -> bool:
        """Whether there are enough free slots for a good batch, or no work is known to wait."""
        return self._free >= self._slots // _ENOUGH or not self._is_contended()

    def next_looks(self, now: float) -> list[Look]:
        """What to look at now; the slots for it are set aside until `looked` or `failed`."""
        if not self._free:
            return []
        lanes = self._lanes.values()
        idle = [one for one in lanes if not one.is_looked_at and one.rests_until <= now]
        idle.sort(key=_turn)
        hot = [lane for lane in idle if lane.is_hot]
        cold = [lane for lane in idle if not lane.is_hot]
        return [*self._cold_now(cold), *self._hot_now(hot)]

    def looked(self, look: Look, received: int) -> None:
        """Directives that came keep their slots until they are given back by `freed`."""
        lane = self._end(look)
        self._free += look.limit - received
        lane.is_hot = received > 0
        lane.failures = 0

    def failed(self, look: Look, now: float) -> None:
        lane = self._end(look)
        self._free += look.limit
        lane.is_hot = False
        lane.rests_until = now + _PAUSES[min(lane.failures, len(_PAUSES) - 1)]
        lane.failures += 1

    def take(self) -> bool:
        """A slot for a directive that came before and has to run now after all."""
        if not self._free:
            return False
        self._free -= 1
        return True

    def freed(self, seconds: float = 0.0) -> None:
        """A slot is free; `seconds` is how long a handler had it."""
        self._free += 1
        earned = max(seconds * _COLD_TIME / SHORT_LOOK, _LEAST_CREDIT)
        self._cold_credit = min(self._cold_credit + earned, float(len(self._lanes)))

    def next_due(self, now: float) -> float | None:
        """When the next lane that rests after a failure is due."""
        resting = (one.rests_until for one in self._lanes.values() if one.rests_until > now)
        return min(resting, default=None)

    def _cold_now(self, cold: list[_Lane]) -> list[Look]:
        if not self._is_contended():
            is_each = self._slots >= len(self._lanes)
            wait = LONG_LOOK if is_each else max(ROUND * self._slots / len(self._lanes), SHORT_LOOK)
            return [self._begin(lane, 1, wait) for lane in cold[: self._free]]
        room = max(1, self._slots // _COLD_SHARE) - self._cold_looks
        count = max(0, min(room, self._free, int(self._cold_credit)))
        looks = [self._begin(lane, 1, SHORT_LOOK) for lane in cold[:count]]
        self._cold_credit -= len(looks)
        return looks

    def _hot_now(self, hot: list[_Lane]) -> list[Look]:
        """A few lanes for several directives each rather than each lane for one: what comes and is
        answered together costs less."""
        looks = []
        for index, lane in enumerate(hot):
            even = -(-self._free // (len(hot) - index))
            share = min(max(even, self._slots // _BATCHES), self._free)
            if share:
                looks.append(self._begin(lane, share, SHORT_LOOK))
        return looks

    def _is_contended(self) -> bool:
        """Whether some lane may have more than there are slots for."""
        return self._free < len(self._lanes) and any(one.is_hot for one in self._lanes.values())

    def _begin(self, lane: _Lane, limit: int, wait: float) -> Look:
        self._turns += 1
        lane.turn = self._turns
        lane.is_looked_at = True
        lane.rests_until = 0.0
        self._free -= limit
        self._cold_looks += not lane.is_hot
        return Look(lane.number, limit, wait)

    def _end(self, look: Look) -> _Lane:
        lane = self._lanes[look.lane]
        lane.is_looked_at = False
        self._cold_looks -= not lane.is_hot
        return lane


def _turn(lane: _Lane) -> int:
    return lane.turn
