"""A recording as people read it: who did what, and when."""

from collections.abc import Iterable

from contract_tests.verdicts import Moment
from orchestrator_mock import Entry, What

SERVICE, BUS, HARNESS = "service", "bus", "harness"
_LIMIT = 400
_WHO = {
    What.ACK: SERVICE,
    What.RESULT: SERVICE,
    What.HEARTBEAT: SERVICE,
    What.UNREADABLE: SERVICE,
    What.READ: SERVICE,
    What.COMPLETED: SERVICE,
    What.ABANDONED: SERVICE,
    What.DEAD_LETTERED: SERVICE,
    What.DEFERRED: SERVICE,
    What.RENEWED: SERVICE,
    What.DELIVERED: BUS,
    What.LOCK_LOST: BUS,
    What.EXPIRED: BUS,
    What.READ_ENDED: HARNESS,
    What.PUBLISHED: HARNESS,
    What.FAULT: HARNESS,
    What.NOTE: HARNESS,
}


def timeline(entries: Iterable[Entry]) -> tuple[Moment, ...]:
    """At most some hundred lines: the first, where a failure has its cause, and the last."""
    found = list(entries)
    if not found:
        return ()
    began = found[0].at
    told = [Moment(e.at - began, _WHO[e.what], e.shown(), e.job_id[-6:]) for e in found]
    left_out = len(told) - _LIMIT
    if left_out <= 0:
        return tuple(told)
    half = _LIMIT // 2
    gap = Moment(told[half].at, HARNESS, f"{left_out} more are left out here")
    return (*told[:half], gap, *told[-half:])
