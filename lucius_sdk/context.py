"""What a handler is given: the directive, places to read and write, and word of when to stop."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

from lucius_contract.documents import Artifact
from lucius_contract.messages import Directive
from lucius_sdk.error_model import StopReason
from lucius_sdk.work_state import WorkState
from lucius_sdk.workspace_io import Input, PriorArtifacts, Workspace

__all__ = ["Publisher", "StepContext", "StopReason", "WorkState"]

Publisher = Callable[[Artifact | bytes, str | None], str]
"""Content and media type; gives the uri."""

P_co = TypeVar("P_co", covariant=True)


class StepContext(Generic[P_co]):
    """One attempt of one step, as its handler sees it."""

    __slots__ = (
        "_now",
        "_published",
        "_publisher",
        "directive",
        "input",
        "log",
        "payload",
        "prior",
        "state",
        "workspace",
    )

    def __init__(
        self,
        *,
        directive: Directive,
        payload: P_co,
        input: Input,
        prior: PriorArtifacts,
        workspace: Workspace,
        log: logging.LoggerAdapter[logging.Logger],
        state: WorkState,
        publisher: Publisher,
        now: Callable[[], datetime],
    ) -> None:
        self.directive = directive
        """The message that asked for the work, as it came."""
        self.payload = payload
        """The step's parameters, valid for the model that the handler was registered with."""
        self.input = input
        """What the job's `input_ref` names."""
        self.prior = prior
        """What the steps before have written."""
        self.workspace = workspace
        """Where this attempt writes; what is written there is reported."""
        self.log = log
        """Carries the ids of the job and the step."""
        self.state = state
        """Belongs to the runtime; handlers have the methods below."""
        self._publisher = publisher
        self._now = now
        self._published: str | None = None

    @property
    def job_id(self) -> str:
        return self.directive.job_id

    @property
    def tenant_id(self) -> str:
        return self.directive.tenant_id

    @property
    def attempt_no(self) -> int:
        """Counts from 1."""
        return self.directive.attempt_no

    @property
    def is_retry(self) -> bool:
        return self.directive.attempt_no > 1

    @property
    def deadline(self) -> datetime:
        """When the lease ends, in UTC; it moves on as heartbeats are answered."""
        return self.state.deadline

    def seconds_left(self) -> float:
        """Until the deadline; 0 after it."""
        return max((self.state.deadline - self._now()).total_seconds(), 0.0)

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked to cancel the job."""
        return self.state.is_cancelled

    @property
    def stopping(self) -> bool:
        """Whether there is any reason to stop."""
        return self.state.must_stop

    def check(self) -> None:
        """Call it now and then in long work: raises when there is a reason to stop."""
        self.state.check()

    def wait(self, seconds: float) -> None:
        """Sleep in a plain `def`; raises, and early, when there is a reason to stop."""
        if self.state.wait(seconds):
            self.state.check()

    def progress(self, fraction: float | None = None, note: str | None = None) -> None:
        """Tell people how far the work is, with the next heartbeat; cheap. What is not given stays
        as it was."""
        self.state.note_progress(fraction, note)

    def publish(self, content: Artifact | bytes, media_type: str | None = None) -> str:
        """Put the job's outcome where its `output_ref` says; the last step does. Gives the uri."""
        self.state.check()
        self._published = self._publisher(content, media_type)
        return self._published

    async def apublish(self, content: Artifact | bytes, media_type: str | None = None) -> str:
        """As `publish`, for an `async def`."""
        return await asyncio.to_thread(self.publish, content, media_type)

    @property
    def published(self) -> str | None:
        """Where the outcome was published; None if it was not."""
        return self._published

    def __repr__(self) -> str:
        directive = self.directive
        return f"<StepContext {directive.step_type} {directive.job_id} attempt {self.attempt_no}>"
