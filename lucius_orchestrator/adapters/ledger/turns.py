"""From the answers of `Turns` to the queues of `lucius_outbox` that a ledger claims from."""

from collections.abc import Iterable, Mapping, Sequence

from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.ledger.outbox_rows import QUEUE_SEPARATOR, queue_name, queue_named
from lucius_orchestrator.ports.ledger import Turns
from lucius_outbox.store import Span

LAPSED_AT_ONCE = 100
"""How many rows of lapsed claims one call takes at most, beside what is allotted."""

_NO_QUEUE = ""
"""Also the service of its rows, which a release without queues has written."""

_AFTER_SEPARATOR = chr(ord(QUEUE_SEPARATOR) + 1)


def rooms_of(services: Iterable[str], turns: Turns) -> dict[str, int]:
    """Return the room of each service that has some."""
    rooms = {service: turns.room(service) for service in services}
    return {service: room for service, room in rooms.items() if room > 0}


def spans_of(rooms: Mapping[str, int], turns: Turns) -> list[Span]:
    """Return where queues of these services can be: two spans for each mode of each, the first of
    them behind the queue that was served last."""
    return [
        span
        for service, room in rooms.items()
        if service != _NO_QUEUE
        for mode in Mode
        for span in _ring(service, mode, room, turns)
    ]


def _ring(service: str, mode: Mode, room: int, turns: Turns) -> tuple[Span, Span]:
    """No tenant's name is empty, so every queue of the mode lies after `first` and before `end`."""
    last, start = turns.last(service, mode), f"{service}{QUEUE_SEPARATOR}{mode}"
    first, end = start + QUEUE_SEPARATOR, start + _AFTER_SEPARATOR
    turn = queue_name(last) if last else first
    return Span(turn, end, room), Span(first, turn, room)


def allotted(
    rooms: Mapping[str, int], found: Sequence[Sequence[str]], turns: Turns
) -> dict[str, int]:
    """Return how many rows to claim from which queues; `found` is what the spans hold."""
    sizes, lists = dict[str, int](), iter(found)
    for service, room in rooms.items():
        if service == _NO_QUEUE:
            sizes[_NO_QUEUE] = room
            continue
        rings = [[*next(lists), *next(lists)][:room] for _ in Mode]
        waiting = [queue_named(name) for ring in rings for name in ring]
        if waiting:
            share = turns.allot(service, waiting)
            sizes |= {queue_name(queue): size for queue, size in share.items() if size > 0}
    return sizes
