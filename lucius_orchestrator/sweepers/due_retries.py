"""Steps whose next attempt is due."""

from lucius_orchestrator.domain.timers import TimerKind
from lucius_orchestrator.sweepers.sweeper import TimerSweeper


class DueRetries(TimerSweeper):
    name = "due_retries"
    kinds = frozenset({TimerKind.RETRY})
