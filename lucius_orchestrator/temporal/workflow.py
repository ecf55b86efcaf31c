"""`JobWorkflow`: the loop that drives one job, whatever its protocol.

What a workflow did is replayed from its history, perhaps by a later release: given the same
history, the code must ask for the same things in the same order. So a change of what it asks for
(another activity, another timer, an upsert more or less, in another order) goes behind
`workflow.patched("name-of-the-change")`: True for workflows that reach it from now on, False for
those that passed it before. When no workflow that began before the change can still run (job SLA +
grace), the old branch goes and `workflow.deprecate_patch` stays; when none that began before that
can, it goes too. Everything else (how an answer is read, what the invoker decides) may change
freely. The histories in `tests/temporal/histories` stand for the workflows that run today.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ApplicationError, FailureError

from lucius_orchestrator.temporal.shapes import (
    LONG_AGO,
    NOT_FOUND,
    STATE,
    WORKFLOW,
    Answer,
    AttemptCall,
    CommandCall,
    DeadlineCall,
    JobInput,
    Malformed,
    NextMove,
    Outcome,
    Timer,
    parsed,
    written,
)

_NEVER = datetime.max.replace(tzinfo=UTC)
_STATE = SearchAttributeKey.for_keyword(STATE)
_SLA = "SLA_EXCEEDED"
_FAILED = "FAILED_FINAL"
_CANCEL = "cancel"
_LEASE_CHARACTERS = 32

_FIRST_REST, _LONGEST_REST = 1.0, 30.0
_QUICK_TIMEOUT = timedelta(seconds=5)
_QUICK_RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=50), maximum_attempts=2)
_CALL_TIMEOUT = timedelta(seconds=20)
_A_MOMENT = 0.001
_LEAST_CALL = timedelta(seconds=1)
_LONGEST_WAIT = timedelta(days=30)
_PATIENT_RETRY = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(seconds=30),
)

_log = workflow.LoggerAdapter(logging.getLogger("lucius_orchestrator.temporal"), None)
_log.workflow_info_on_message = False


@workflow.defn(name=WORKFLOW)
class JobWorkflow:
    @workflow.init
    def __init__(self, job: JobInput) -> None:
        self._job = job
        self._next = NextMove.of(job.next)
        self._times_heard = 0
        self._is_gone = False
        self._has_passed_on_cancel = False
        self._shown_state = self._next.state
        self._rests: dict[str, datetime] = {}
        self._in_vain = 0
        workflow.set_current_details(f"{job.request_type} of {job.tenant_id}")

    @workflow.run
    async def run(self, job: JobInput) -> Outcome:  # noqa: ARG002 - it came to __init__ too
        driving = asyncio.create_task(self._drive())
        with suppress(asyncio.CancelledError):
            return await asyncio.shield(driving)
        # Asked for by Temporal's own tools, once. The job is to end properly.
        return await driving

    @workflow.query
    def state(self) -> dict[str, Any]:
        return self._next.raw

    # Signals take whatever comes: an argument too many would stop the workflow for good.

    @workflow.signal
    def step_ack(self, *said: Any) -> None:
        self._hear("step_ack", said)

    @workflow.signal
    def step_result(self, *said: Any) -> None:
        self._hear("step_result", said)

    @workflow.signal
    def step_heartbeat(self, *said: Any) -> None:
        self._hear("step_heartbeat", said)

    @workflow.signal
    def cancel(self, *said: Any) -> None:
        self._hear("cancel", said)

    @workflow.signal
    def pause(self, *said: Any) -> None:
        self._hear("pause", said)

    @workflow.signal
    def resume(self, *said: Any) -> None:
        self._hear("resume", said)

    @workflow.signal
    def job_moved(self, *said: Any) -> None:
        self._hear("job_moved", said)

    @workflow.signal(dynamic=True)
    def other(self, name: str, args: Sequence[RawValue]) -> None:  # noqa: ARG002
        """Perhaps a newer invoker's; whatever it says is learnt at the next deadline."""
        _log.warning("workflow.signal_unknown", extra=self._extra(signal=name))

    def _hear(self, name: str, said: tuple[Any, ...]) -> None:
        body = said[0] if said else None
        try:
            self._take(body.get("next") if isinstance(body, dict) else body)
        except Malformed as error:
            _log.warning(
                "workflow.signal_malformed", extra=self._extra(signal=name, error=str(error))
            )

    def _take(self, raw: object) -> None:
        """What was said later counts; what was said before, or twice, changes nothing."""
        heard = NextMove.of(raw)
        if heard.order > self._next.order:
            self._next = heard
            self._times_heard += 1
            self._rests.clear()
            self._in_vain = 0

    async def _drive(self) -> Outcome:
        while not self._has_ended():
            self._show_state()
            if self._is_long() and not self._must_cancel():
                await self._begin_another_history()
            else:
                await self._move()
        self._show_state()
        return self._outcome()

    def _has_ended(self) -> bool:
        return self._is_gone or self._next.action == "END"

    async def _begin_another_history(self) -> None:
        """Not in a task in which something was heard: signals are told first, and a cancel that
        came with them would be forgotten. What comes from now on makes the server repeat this
        task."""
        await asyncio.sleep(_A_MOMENT)
        if workflow.all_handlers_finished() and not (self._has_ended() or self._must_cancel()):
            workflow.continue_as_new(replace(self._job, next=self._next.raw))

    async def _move(self) -> None:
        now = workflow.now()
        due = next((t for t in self._next.timers if self._due_at(t) <= now), None)
        if self._must_cancel():
            await self._pass_on_cancel()
        elif due is not None:
            await self._report(due)
        elif self._acts_at() > now:
            await self._wait(min([self._acts_at(), *map(self._due_at, self._next.timers)]))
        elif self._next.action == "OPEN":
            await self._open()
        else:
            await self._publish()

    def _due_at(self, timer: Timer) -> datetime:
        due_at = timer.deadline + timedelta(seconds=self._job.skew_seconds)
        return max(due_at, self._rests.get(timer.event, LONG_AGO))

    def _acts_at(self) -> datetime:
        """An action of a newer release is waited out: the timers are known, and signals come."""
        action = self._next.action
        if action not in ("OPEN", "PUBLISH"):
            return _NEVER
        return max(self._next.at, self._rests.get(action, LONG_AGO))

    async def _wait(self, until: datetime) -> None:
        heard = self._times_heard
        at_most = min(until - workflow.now(), _LONGEST_WAIT)
        await _until(lambda: self._times_heard != heard or self._must_cancel(), at_most)

    async def _open(self) -> None:
        """At once, if the invoker and the bus are there; else with patience."""
        call = self._attempt_to_open()
        heard = self._times_heard
        try:
            answer = await workflow.execute_local_activity(
                "dispatch_attempt",
                call,
                result_type=Answer,
                schedule_to_close_timeout=_QUICK_TIMEOUT,
                retry_policy=_QUICK_RETRY,
            )
        except FailureError as error:
            _log.warning("workflow.attempt_delayed", extra=self._extra(error=str(error)))
            await self._ask("record_attempt_lease", call, "OPEN", self._until_sla())
        else:
            self._obey(answer, "OPEN", heard)

    def _attempt_to_open(self) -> AttemptCall:
        """The lease is the same however often the attempt is asked for."""
        move, job = self._next, self._job
        made_of = f"{job.lease_key}:{move.step_id}:{move.attempt_no}"
        lease_id = hashlib.sha256(made_of.encode()).hexdigest()[:_LEASE_CHARACTERS]
        ends = workflow.now() + timedelta(seconds=move.lease_seconds)
        return AttemptCall(
            job.job_id, job.tenant_id, move.step_id, move.attempt_no, lease_id, written(ends)
        )

    async def _publish(self) -> None:
        await self._ask("publish_directive", self._attempt(), "PUBLISH", self._until_sla())

    async def _report(self, timer: Timer) -> None:
        call = DeadlineCall(self._attempt(), timer.event, written(timer.deadline))
        await self._ask("report_deadline", call, timer.event)

    async def _pass_on_cancel(self) -> None:
        self._has_passed_on_cancel = True
        call = CommandCall(self._job.job_id, _CANCEL)
        await self._ask("command_job", call, _CANCEL)

    def _must_cancel(self) -> bool:
        return workflow.cancellation_reason() is not None and not self._has_passed_on_cancel

    def _attempt(self) -> AttemptCall:
        move, job = self._next, self._job
        return AttemptCall(job.job_id, job.tenant_id, move.step_id, move.attempt_no, move.lease_id)

    def _until_sla(self) -> timedelta | None:
        ends = [self._due_at(timer) for timer in self._next.timers if timer.event == _SLA]
        return max(min(ends) - workflow.now(), _LEAST_CALL) if ends else None

    async def _ask(
        self, activity: str, call: object, what: str, at_most: timedelta | None = None
    ) -> None:
        heard = self._times_heard
        asking = workflow.start_activity(
            activity,
            call,
            result_type=Answer,
            start_to_close_timeout=_CALL_TIMEOUT,
            schedule_to_close_timeout=at_most,
            retry_policy=_PATIENT_RETRY,
        )
        await _until(lambda: asking.done() or self._is_overtaken(what, heard))
        if not asking.done():
            asking.add_done_callback(_look_at)
            asking.cancel()
            return
        try:
            answer = asking.result()
        except FailureError:  # out of time
            answer = Answer()
        self._obey(answer, what, heard)

    def _is_overtaken(self, what: str, heard: int) -> bool:
        """By something newer that was heard: the answer is not needed any more, and the ledger
        knows whether it was done. A cancel is overtaken by the end alone."""
        if what == _CANCEL:
            return self._next.action == "END"
        return self._times_heard != heard or self._must_cancel()

    def _obey(self, answer: Answer, what: str, heard: int) -> None:
        """What is asked in vain is not asked again at once."""
        self._is_gone |= answer.is_gone
        if answer.next is not None:
            try:
                self._take(answer.next)
            except Malformed as error:
                _log.warning("workflow.answer_malformed", extra=self._extra(error=str(error)))
        if self._times_heard == heard:
            rest = max(self._job.skew_seconds, _FIRST_REST) * 2**self._in_vain
            self._in_vain = min(self._in_vain + 1, 16)
            until = workflow.now() + timedelta(seconds=min(rest, _LONGEST_REST))
            asked_for = parsed(answer.not_before) if answer.not_before else LONG_AGO
            self._rests[what] = max(until, asked_for)

    def _show_state(self) -> None:
        if self._job.is_searchable and self._next.state != self._shown_state:
            self._shown_state = self._next.state
            workflow.upsert_search_attributes([_STATE.value_set(self._shown_state)])

    def _is_long(self) -> bool:
        info = workflow.info()
        length = info.get_current_history_length()
        return info.is_continue_as_new_suggested() or length > self._job.history_limit

    def _outcome(self) -> Outcome:
        if self._is_gone:
            return Outcome(NOT_FOUND)
        if self._next.state == _FAILED:
            raise ApplicationError("the job failed for good", type=_FAILED, non_retryable=True)
        return Outcome(self._next.state)

    def _extra(self, **fields: object) -> dict[str, object]:
        move = self._next
        return {
            "jobId": self._job.job_id,
            "stepId": move.step_id,
            "tenant_id": self._job.tenant_id,
            "attempt_no": move.attempt_no,
            **fields,
        }


async def _until(condition: Callable[[], bool], at_most: timedelta | None = None) -> None:
    """A cancel is one of the things that conditions look for, and must not end the wait in another
    way; what ends it without one is the eviction of the workflow from memory."""
    try:
        await workflow.wait_condition(condition, timeout=at_most)
    except TimeoutError:
        return
    except asyncio.CancelledError:
        if workflow.cancellation_reason() is None:
            raise


def _look_at(ended: "asyncio.Task[Answer]") -> None:
    """Else the loop would complain that nobody did."""
    if not ended.cancelled():
        ended.exception()
