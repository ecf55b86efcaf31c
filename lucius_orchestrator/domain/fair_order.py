"""Who is served next: deficit round robin over the queues of a service.

Each directive costs the same, so a queue's turn is `weight` directives. A turn that is cut short
for want of room is finished first when there is room again; so shares hold however little room
there is at a time. DEFAULT and BURST have turns of their own, see `split`.
"""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

Queue = TypeVar("Queue")


class Turn(NamedTuple, Generic[Queue]):
    """Where the round stands: the queue that was served last, and what is left of its turn."""

    queue: Queue
    left: int


class Allotment(NamedTuple, Generic[Queue]):
    shares: dict[Queue, int]
    turn: Turn[Queue] | None


def allot(
    waiting: Sequence[Queue],
    room: int,
    turn: Turn[Queue] | None,
    weight: Callable[[Queue], int],
) -> Allotment[Queue]:
    """Divide `room` among the queues that wait, in rounds.

    `waiting` begins behind the queue of `turn` and goes once round. How long the queues are is not
    known: one that has fewer directives than its share leaves room for the next call.
    """
    shares: dict[Queue, int] = {}
    if turn is not None and turn.left > 0 and room > 0:
        turn, room = _serve(shares, turn.queue, turn.left, room)
    while room > 0 and waiting:
        for queue in waiting:
            turn, room = _serve(shares, queue, max(weight(queue), 1), room)
            if room == 0:
                break
    return Allotment(shares, turn)


def _serve(shares: dict[Queue, int], queue: Queue, due: int, room: int) -> tuple[Turn[Queue], int]:
    count = min(due, room)
    shares[queue] = shares.get(queue, 0) + count
    return Turn(queue, due - count), room - count


class Split(NamedTuple):
    """How a room is divided between the modes; `credit` is the part of a directive that BURST was
    not given yet."""

    default: int
    burst: int
    credit: float


def split(
    room: int, *, default_waits: bool, burst_waits: bool, burst_share: float, credit: float
) -> Split:
    """Divide a room between DEFAULT and BURST. While both wait, BURST gets its share and no more;
    while one waits, it gets everything."""
    if not burst_waits:
        return Split(room if default_waits else 0, 0, 0.0)
    if not default_waits:
        return Split(0, room, 0.0)
    earned = room * burst_share + credit
    burst = min(int(earned), room)
    return Split(room - burst, burst, earned - burst)
