"""What jobs and artifacts know of each other."""

from lucius_orchestrator.adapters.artifacts.inputs import ArtifactInputs
from lucius_orchestrator.adapters.artifacts.jobs import LedgerJobs

__all__ = ["ArtifactInputs", "LedgerJobs"]
