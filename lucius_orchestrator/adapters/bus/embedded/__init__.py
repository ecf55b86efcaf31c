"""A bus inside the process that others reach over a port: the emulator of Service Bus runs here,
and this process uses its broker without a connection."""

from lucius_orchestrator.adapters.bus.embedded.administration import EmbeddedTopology
from lucius_orchestrator.adapters.bus.embedded.bus import EmbeddedBus

__all__ = ["EmbeddedBus", "EmbeddedTopology"]
