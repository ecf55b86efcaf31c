"""Ways to get a service wrong, in the order of the suite's scenarios."""

from tests.conform.broken_services.flaws import (
    capacity,
    failing,
    heartbeats,
    lasting,
    reading,
    repeating,
    replying,
    storing,
)
from tests.conform.broken_services.flaws.flaw import Flaw
from tests.conform.broken_services.sound import Service

FLAWS: tuple[Flaw, ...] = tuple(
    sorted(
        (
            *replying.FLAWS,
            *repeating.FLAWS,
            *storing.FLAWS,
            *reading.FLAWS,
            *failing.FLAWS,
            *lasting.FLAWS,
            *capacity.FLAWS,
            *heartbeats.FLAWS,
        ),
        key=lambda flaw: flaw.rule_id,
    )
)


def service_type(name: str) -> type[Service]:
    """The service with the flaw of this name; the sound one for no name."""
    if not name:
        return Service
    return next(flaw.service for flaw in FLAWS if flaw.name == name)


__all__ = ["FLAWS", "Flaw", "service_type"]
