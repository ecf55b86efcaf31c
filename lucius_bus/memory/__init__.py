"""A bus inside the process, with the semantics of Azure Service Bus: for tests and benchmarks, and
for a service and the orchestrator in one process. Nothing survives the process."""

from lucius_bus.memory.bus import MemoryBus
from lucius_bus.memory.errors import Misused, SessionUnavailable
from lucius_bus.memory.sessions import MemorySession
from lucius_bus.memory.subscription import Counts

__all__ = ["Counts", "MemoryBus", "MemorySession", "Misused", "SessionUnavailable"]
