"""Attempts that no service has acknowledged."""

from dataclasses import replace

from lucius_orchestrator.domain.events import AckTimedOut, Timer
from lucius_orchestrator.domain.timers import TimerKind
from lucius_orchestrator.ports.ledger import Stored
from lucius_orchestrator.sweepers.sweeper import TimerSweeper


class AckTimeout(TimerSweeper):
    name = "ack_timeout"
    kinds = frozenset({TimerKind.ACK})
    waits_for_recovery = True

    def _passed(self, stored: Stored) -> Timer | None:
        """An attempt of a service that nothing was heard from since does not count as a try."""
        timer, step = super()._passed(stored), stored.aggregate.active
        if not isinstance(timer, AckTimedOut):
            return timer
        return replace(timer, absent=self.engine.traffic.is_unanswered(step))
