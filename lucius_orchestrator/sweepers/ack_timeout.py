"""Attempts that no service has acknowledged."""

from lucius_orchestrator.domain.timers import TimerKind
from lucius_orchestrator.sweepers.sweeper import TimerSweeper


class AckTimeout(TimerSweeper):
    name = "ack_timeout"
    kinds = frozenset({TimerKind.ACK})
    waits_for_recovery = True
