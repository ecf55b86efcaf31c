"""What brings OUTBOX rows to Temporal: rows that were delivered end, the others wait."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.outbox.claiming import ClaimLoop, ClaimSettings, Deliver
from lucius_orchestrator.ports.ledger import Claim, LedgerError


@dataclass(frozen=True, slots=True)
class CourierSettings(ClaimSettings):
    """`pause` is how long to wait when Temporal is away; `linger` how long an ACK may wait for the
    RESULT that makes it superfluous."""

    concurrency: int = 16
    pause: timedelta = timedelta(seconds=2)
    linger: timedelta = timedelta(milliseconds=250)


class Courier(ClaimLoop):
    def __init__(
        self,
        engine: LedgerEngine,
        kind: OutboxKind,
        deliver: Deliver,
        settings: CourierSettings | None = None,
    ) -> None:
        self.settings = settings or CourierSettings()
        super().__init__(engine, kind, deliver, self.settings, leads=False)

    async def settle(self, claims: Sequence[Claim], delivered: Sequence[bool]) -> None:
        """End the rows that are done with. The others are due again after a pause, which keeps this
        courier from taking more than it can deliver."""
        pairs = list(zip(claims, delivered, strict=True))
        done = [claim for claim, is_done in pairs if is_done]
        away = [claim for claim, is_done in pairs if not is_done]
        try:
            if done:
                await self._engine.ledger.discard(done)
            if away:
                await self.pause(self.settings.pause)
                await self._engine.ledger.release(away)
        except LedgerError as error:  # their leases run out
            self._engine.telemetry.workflows_away("settle", error)
