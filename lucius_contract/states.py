"""States of jobs, steps and outbox rows, and the status that is derived from them.

The ledger stores `state`. `status`, the shorter vocabulary that clients see beside it, is always
computed from the state by the two tables below.
"""

from enum import StrEnum


class JobState(StrEnum):
    QUEUED = "QUEUED"
    DISPATCHING = "DISPATCHING"
    IN_PROGRESS = "IN_PROGRESS"
    PAUSING = "PAUSING"
    PAUSED = "PAUSED"
    CANCELLING = "CANCELLING"
    SUCCEEDED = "SUCCEEDED"
    FAILED_FINAL = "FAILED_FINAL"
    CANCELLED = "CANCELLED"


class JobStatus(StrEnum):
    QUEUED = "QUEUED"
    IN_PROGRESS = "IN_PROGRESS"
    PAUSED = "PAUSED"
    SUCCEEDED = "SUCCEEDED"
    FAILED_FINAL = "FAILED_FINAL"
    CANCELLED = "CANCELLED"


class StepState(StrEnum):
    PENDING = "PENDING"
    DISPATCHING = "DISPATCHING"
    AWAITING_ACK = "AWAITING_ACK"
    IN_PROGRESS = "IN_PROGRESS"
    FAILED_RETRY = "FAILED_RETRY"
    SUCCEEDED = "SUCCEEDED"
    FAILED_FINAL = "FAILED_FINAL"
    CANCELLED = "CANCELLED"


class StepStatus(StrEnum):
    PENDING = "PENDING"
    INITIATED = "INITIATED"
    PROCESSING = "PROCESSING"
    FAILED_RETRY = "FAILED_RETRY"
    SUCCEEDED = "SUCCEEDED"
    FAILED_FINAL = "FAILED_FINAL"
    CANCELLED = "CANCELLED"


class OutboxState(StrEnum):
    PENDING = "PENDING"
    SENT = "SENT"
    FAILED_FINAL = "FAILED_FINAL"
    SUPERSEDED = "SUPERSEDED"


JOB_STATUS: dict[JobState, JobStatus] = {
    JobState.QUEUED: JobStatus.QUEUED,
    JobState.DISPATCHING: JobStatus.QUEUED,
    JobState.IN_PROGRESS: JobStatus.IN_PROGRESS,
    JobState.PAUSING: JobStatus.IN_PROGRESS,
    JobState.CANCELLING: JobStatus.IN_PROGRESS,
    JobState.PAUSED: JobStatus.PAUSED,
    JobState.SUCCEEDED: JobStatus.SUCCEEDED,
    JobState.FAILED_FINAL: JobStatus.FAILED_FINAL,
    JobState.CANCELLED: JobStatus.CANCELLED,
}

STEP_STATUS: dict[StepState, StepStatus] = {
    StepState.PENDING: StepStatus.PENDING,
    StepState.DISPATCHING: StepStatus.INITIATED,
    StepState.AWAITING_ACK: StepStatus.INITIATED,
    StepState.IN_PROGRESS: StepStatus.PROCESSING,
    StepState.FAILED_RETRY: StepStatus.FAILED_RETRY,
    StepState.SUCCEEDED: StepStatus.SUCCEEDED,
    StepState.FAILED_FINAL: StepStatus.FAILED_FINAL,
    StepState.CANCELLED: StepStatus.CANCELLED,
}

TERMINAL_JOB_STATES = frozenset({JobState.SUCCEEDED, JobState.FAILED_FINAL, JobState.CANCELLED})
TERMINAL_STEP_STATES = frozenset({StepState.SUCCEEDED, StepState.FAILED_FINAL, StepState.CANCELLED})
TERMINAL_OUTBOX_STATES = frozenset(
    {OutboxState.SENT, OutboxState.FAILED_FINAL, OutboxState.SUPERSEDED}
)

IN_FLIGHT_STEP_STATES = frozenset(
    {StepState.DISPATCHING, StepState.AWAITING_ACK, StepState.IN_PROGRESS}
)
"""A directive of the step is on its way or being worked on; at most one step of a job is."""

ADVANCING_JOB_STATES = frozenset({JobState.DISPATCHING, JobState.IN_PROGRESS})
"""Only in these does a job start a step or a further attempt."""
