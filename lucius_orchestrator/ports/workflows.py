"""The workflows of jobs, as the control plane sees them: each job that Temporal drives has one.

WorkflowError
├── WorkflowNotFound       it is closed, or was never started
└── WorkflowsUnavailable   try again later; what was asked may or may not have been done
"""

from typing import NamedTuple, Protocol

from lucius_orchestrator.domain.aggregate import JsonObject


class WorkflowError(Exception):
    """Base of all errors of workflows."""


class WorkflowNotFound(WorkflowError):
    """No workflow of this job runs."""


class WorkflowsUnavailable(WorkflowError):
    """Temporal could not be reached, or could not do it now."""


class WorkflowStatus(NamedTuple):
    """`name` is Temporal's word for it, MISSING if it knows none."""

    is_running: bool
    name: str


class Workflows(Protocol):
    async def start(self, body: JsonObject) -> None:
        """See to it that the workflow runs, as a START row says. One that runs is left alone; one
        that has closed is not started again, unless the row `restarts` it."""

    async def signal(self, job_id: str, name: str, body: JsonObject) -> None:
        """Tell the running workflow; `WorkflowNotFound`."""

    async def status(self, job_id: str) -> WorkflowStatus:
        """How the workflow stands."""
