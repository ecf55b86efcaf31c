"""Attempts whose service has gone silent, or has worked for longer than an attempt may."""

from lucius_orchestrator.domain.timers import TimerKind
from lucius_orchestrator.sweepers.sweeper import TimerSweeper


class ExpiredLease(TimerSweeper):
    name = "expired_lease"
    kinds = frozenset({TimerKind.LEASE, TimerKind.CEILING})
    waits_for_recovery = True
