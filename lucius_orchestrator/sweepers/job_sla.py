"""Jobs that did not end in time."""

from lucius_orchestrator.domain.timers import TimerKind
from lucius_orchestrator.sweepers.sweeper import TimerSweeper


class JobSla(TimerSweeper):
    name = "job_sla"
    kinds = frozenset({TimerKind.SLA})
