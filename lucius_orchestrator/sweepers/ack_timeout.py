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
        attempt = step.attempt(step.attempt_no)
        sent_at = attempt.sent_at if attempt else None
        absent = sent_at is not None and self.engine.traffic.is_absent(step.service, sent_at)
        return replace(timer, absent=absent)
