"""What all steps of a running service share."""

from dataclasses import dataclass
from typing import Protocol

from lucius_bus.port import Bus
from lucius_contract.messages import Capacity
from lucius_sdk.ack_client import AckClient
from lucius_sdk.clock import Clock
from lucius_sdk.handlers import HandlerPool
from lucius_sdk.idempotency_store import Claims
from lucius_sdk.metrics import StepMetrics
from lucius_sdk.result_client import ResultClient
from lucius_sdk.service import Service
from lucius_sdk.tracing import Tracing
from lucius_sdk.workspace_io import Storages


class Slots(Protocol):
    """Room for as many handlers at once as the service states."""

    def free(self, seconds: float = 0.0) -> None:
        """Give one back; `seconds` is how long a handler had it."""

    async def take(self) -> None:
        """Wait for one."""


class Slot:
    """The room of one step, which comes with its message, or is waited for. Freed once."""

    def __init__(self, slots: Slots, *, is_held: bool) -> None:
        self._slots = slots
        self.is_held = is_held

    async def take(self) -> None:
        if not self.is_held:
            await self._slots.take()
            self.is_held = True

    def free(self, seconds: float = 0.0) -> None:
        if self.is_held:
            self.is_held = False
            self._slots.free(seconds)


@dataclass(frozen=True, slots=True)
class Parts:
    """`capacity`: what ACKs and HEARTBEATs state. `ack_seconds`: how long work waits for the answer
    to its ACK; `skew`: how far clocks may differ, in seconds."""

    name: str
    service: Service
    bus: Bus
    claims: Claims
    acks: AckClient
    results: ResultClient
    pool: HandlerPool
    storages: Storages
    clock: Clock
    metrics: StepMetrics
    tracing: Tracing
    capacity: Capacity
    ack_seconds: float
    skew: float
