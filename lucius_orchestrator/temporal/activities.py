"""What a workflow asks the invoker for.

What the invoker refuses is an answer too: it says what comes next. Everything else that goes wrong
is tried again, and shown in Temporal's own tools beside the activity.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.ports.invoker import (
    AttemptName,
    Invoker,
    InvokerError,
    InvokerRefused,
    InvokerUnavailable,
)
from lucius_orchestrator.temporal.shapes import (
    Answer,
    AttemptCall,
    CommandCall,
    DeadlineCall,
    Raw,
    parsed,
    written,
)

_BY = "temporal"
_log = logging.getLogger("lucius_orchestrator.temporal")


class JobActivities:
    def __init__(self, invoker: Invoker) -> None:
        self._invoker = invoker

    def all(self) -> Sequence[Callable[..., Any]]:
        return (
            self.dispatch_attempt,
            self.record_attempt_lease,
            self.publish_directive,
            self.report_deadline,
            self.command_job,
        )

    @activity.defn
    async def dispatch_attempt(self, call: AttemptCall) -> Answer:
        """Record and publish in one go. If only the first can be done, its answer stands: what
        comes next is then to publish, which is done with patience."""
        recorded = await _asked(call.job_id, self._open(call))
        if recorded.next is None or not _awaits_publish(recorded.next, call):
            return recorded
        try:
            return await _asked(call.job_id, self._publish(call))
        except ApplicationError:
            return recorded

    @activity.defn
    async def record_attempt_lease(self, call: AttemptCall) -> Answer:
        return await _asked(call.job_id, self._open(call))

    @activity.defn
    async def publish_directive(self, call: AttemptCall) -> Answer:
        return await _asked(call.job_id, self._publish(call))

    @activity.defn
    async def report_deadline(self, call: DeadlineCall) -> Answer:
        return await _asked(call.attempt.job_id, self._report(call))

    @activity.defn
    async def command_job(self, call: CommandCall) -> Answer:
        return await _asked(call.job_id, self._command(call))

    async def _open(self, call: AttemptCall) -> Answer:
        ends = parsed(call.lease_expires_at)
        return _answer(await self._invoker.open_attempt(_name(call), ends))

    async def _publish(self, call: AttemptCall) -> Answer:
        return _answer(await self._invoker.publish(_name(call)))

    async def _report(self, call: DeadlineCall) -> Answer:
        deadline = parsed(call.deadline)
        found = await self._invoker.report(_name(call.attempt), call.event, deadline)
        not_before = None if found.not_before is None else written(found.not_before)
        return Answer(dict(found.following), not_before)

    async def _command(self, call: CommandCall) -> Answer:
        try:
            return _answer(await self._invoker.command(call.job_id, call.verb, _BY))
        except InvokerRefused as refused:
            if refused.code is ErrorCode.STATE_CONFLICT and refused.following is None:
                return Answer()  # it came too late
            raise


async def _asked(job_id: str, asking: Awaitable[Answer]) -> Answer:
    try:
        return await asking
    except InvokerRefused as refused:
        if refused.code is ErrorCode.JOB_NOT_FOUND:
            return Answer(is_gone=True)
        if refused.following is not None:
            return _answer(refused.following)
        raise _failed(job_id, refused, refused.code) from refused
    except InvokerUnavailable as error:
        raise _failed(job_id, error, None) from error


def _failed(job_id: str, error: InvokerError, code: ErrorCode | None) -> ApplicationError:
    """As Temporal tries it again. Benign: else the client's library would log it once more."""
    event = "workflow.invoker_away" if code is None else "workflow.call_refused"
    _log.warning(event, extra={"jobId": job_id, "code": code, "error": str(error)})
    kind = type(error).__name__ if code is None else code.value
    return ApplicationError(str(error), type=kind, category=ApplicationErrorCategory.BENIGN)


def _answer(following: Mapping[str, Any]) -> Answer:
    return Answer(dict(following))


def _name(call: AttemptCall) -> AttemptName:
    return AttemptName(call.job_id, call.tenant_id, call.step_id, call.attempt_no, call.lease_id)


def _awaits_publish(following: Raw, call: AttemptCall) -> bool:
    asked_for = (call.step_id, call.attempt_no, call.lease_id)
    current = (following["stepId"], following["attempt_no"], following["lease_id"])
    return following["action"] == "PUBLISH" and current == asked_for
