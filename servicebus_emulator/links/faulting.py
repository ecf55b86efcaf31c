"""Where a fault strikes a connection."""

from servicebus_emulator.faults import Fault, FaultKind, Point
from servicebus_emulator.links.host import Delayed, Dropped, Host


def struck(host: Host, point: Point, entity: str) -> Fault | None:
    """The fault that the caller has to act out; one that drops or delays acts by itself, so the
    caller must not have done anything yet."""
    fault = host.faults.take(point, entity)
    if fault is None:
        return None
    if fault.kind is FaultKind.DROP:
        raise Dropped
    if fault.kind is FaultKind.DELAY:
        raise Delayed(fault.delay_ms)
    return fault
