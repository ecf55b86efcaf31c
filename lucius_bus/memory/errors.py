"""What only this bus says, beside the errors of the port."""

from lucius_bus.port import BusError, Misused

__all__ = ["Misused", "SessionUnavailable"]


class SessionUnavailable(BusError):
    """Another receiver holds the session, or none is free: try again later."""
