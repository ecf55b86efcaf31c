"""An invoker whose answers a test has written down."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from lucius_orchestrator.domain.workflow import Next
from lucius_orchestrator.ports.invoker import AttemptName, Invoker, Reported
from tests.runner.deadlines import DEADLINE

_NOBODY = AttemptName("", "", "", 0, "")
_NEVER = datetime.min.replace(tzinfo=UTC)


class Call(NamedTuple):
    """`event` is the event of a report, or the verb of a command; `at` its deadline, or the end of
    the lease to open; `came` is when it was made."""

    attempt: AttemptName
    event: str = ""
    at: datetime = _NEVER
    by: str | None = None
    came: datetime = _NEVER


Answer = Next | Reported | Exception | Callable[[Call], Next | Reported | Exception]


class ScriptedInvoker:
    """Answers what `says` gave it, in that order; the last answer stays. What it has no answer for
    waits until it has one."""

    def __init__(self) -> None:
        self.calls: dict[str, list[Call]] = defaultdict(list)
        self._answers: dict[str, deque[Answer]] = defaultdict(deque)
        self._changed = asyncio.Condition()

    async def says(self, verb: str, *answers: Answer) -> None:
        """Instead of whatever was left to say."""
        async with self._changed:
            self._answers[verb] = deque(answers)
            self._changed.notify_all()

    async def called(self, verb: str, times: int = 1) -> Call:
        """The call of that number, when it has come."""
        async with asyncio.timeout(DEADLINE), self._changed:
            await self._changed.wait_for(lambda: len(self.calls[verb]) >= times)
            return self.calls[verb][times - 1]

    async def open_attempt(self, attempt: AttemptName, lease_expires_at: datetime) -> Next:
        return _next(await self._answer("open", Call(attempt, at=lease_expires_at)))

    async def publish(self, attempt: AttemptName) -> Next:
        return _next(await self._answer("publish", Call(attempt)))

    async def report(self, attempt: AttemptName, event: str, deadline: datetime) -> Reported:
        answer = await self._answer("report", Call(attempt, event, deadline))
        return answer if isinstance(answer, Reported) else Reported(answer, None)

    async def command(self, job_id: str, verb: str, by: str | None) -> Next:
        call = Call(_NOBODY._replace(job_id=job_id), verb, by=by)
        return _next(await self._answer("command", call))

    async def _answer(self, verb: str, call: Call) -> Next | Reported:
        async with self._changed:
            self.calls[verb].append(call._replace(came=datetime.now(UTC)))
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self._answers[verb])
            answers = self._answers[verb]
            answer = answers.popleft() if len(answers) > 1 else answers[0]
        found = answer(call) if callable(answer) else answer
        if isinstance(found, Exception):
            raise found
        return found


def _next(answer: Next | Reported) -> Next:
    assert not isinstance(answer, Reported)
    return answer


def _is_an_invoker(double: ScriptedInvoker) -> Invoker:
    return double
