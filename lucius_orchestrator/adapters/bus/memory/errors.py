"""What only this bus says, beside the errors of the port.

BusError
├── Misused             the topology does not allow it: mend the call or the topology
└── SessionUnavailable  another receiver holds the session, or none is free: try again later
"""

from lucius_orchestrator.ports.bus import BusError


class Misused(BusError):
    """No such subscription, or not one that is used in this way."""


class SessionUnavailable(BusError):
    """No session can be held now."""
