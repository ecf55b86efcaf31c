"""What an invoker says of a job, step by step."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from lucius_orchestrator.domain.directive import on_the_wire
from lucius_orchestrator.domain.workflow import Next, Timer
from lucius_orchestrator.ports.invoker import AttemptName

HOUR = timedelta(hours=1)
NOW = timedelta(0)


class Story:
    """Each thing that it says is later than the one before. Deadlines are given from now on."""

    def __init__(self, sla: timedelta = HOUR, *, lease_seconds: float = 900.0) -> None:
        self._sla = datetime.now(UTC) + sla
        self._lease_seconds = lease_seconds
        self._seq = 0

    def open(
        self, step: str = "s0", attempt_no: int = 1, state: str = "QUEUED", *, at: str | None = None
    ) -> Next:
        return self._next("OPEN", state, step, attempt_no, at=at)

    def publish(self, attempt: AttemptName, state: str = "DISPATCHING") -> Next:
        return self._of("PUBLISH", state, attempt)

    def wait(
        self, attempt: AttemptName | None, state: str = "IN_PROGRESS", **timers: timedelta
    ) -> Next:
        now = datetime.now(UTC)
        found = [_timer(event, now + after) for event, after in timers.items()]
        if attempt is None:
            return self._next("WAIT", state, "s0", 0, timers=found)
        return self._of("WAIT", state, attempt, found)

    def end(self, state: str = "SUCCEEDED") -> Next:
        return self._next("END", state, "s0", 1)

    def ends(self, state: str = "SUCCEEDED") -> Callable[[object], Next]:
        """An answer that is later than whatever was said until it is given."""
        return lambda _: self.end(state)

    def later(self, following: Next) -> Next:
        """The same, said now."""
        self._seq += 1
        return {**following, "seq": self._seq}

    def _of(
        self, action: str, state: str, attempt: AttemptName, timers: list[Timer] | None = None
    ) -> Next:
        step, attempt_no, lease_id = attempt.step_id, attempt.attempt_no, attempt.lease_id
        return self._next(action, state, step, attempt_no, lease_id=lease_id, timers=timers)

    def _next(
        self,
        action: str,
        state: str,
        step: str,
        attempt_no: int,
        *,
        at: str | None = None,
        lease_id: str | None = None,
        timers: list[Timer] | None = None,
    ) -> Next:
        self._seq += 1
        ends = _timer("SLA_EXCEEDED", self._sla)
        return {
            "action": action,
            "state": state,
            "seq": self._seq,
            "stepId": step,
            "attempt_no": attempt_no,
            "lease_id": lease_id,
            "lease_expires_at": None,
            "lease_seconds": self._lease_seconds,
            "at": at,
            "timers": [] if action == "END" else [ends, *(timers or [])],
        }


def soon(after: timedelta) -> str:
    return on_the_wire(datetime.now(UTC) + after)


def signal_body(following: Next, **members: Any) -> dict[str, Any]:
    return {"next": following, **members}


def _timer(event: str, deadline: datetime) -> Timer:
    return {"event": event, "deadline": on_the_wire(deadline)}
