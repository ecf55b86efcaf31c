"""What the orchestrator makes of replies that come over the bus, as its ledger tells it."""

from typing import NamedTuple

from lucius_contract.audit import EventType, Verdict
from lucius_contract.errors import ErrorCode
from lucius_contract.routing import REPLY_TOPIC_PREFIX
from lucius_orchestrator.ports.ledger import Ledger
from orchestrator_mock import Recording
from servicebus_emulator.broker import Happening, Observation
from tests.runner.deadlines import DEADLINE


class Taken(NamedTuple):
    """A reply that came over the bus and was settled."""

    what: Happening
    reason: str


class Expected(NamedTuple):
    """A reply that is about to come, and how many events its job has before."""

    job_id: str
    events: int


class BusReplies:
    """Watches the reply topics."""

    def __init__(self, ledger: Ledger, recording: Recording) -> None:
        self._ledger = ledger
        self._recording = recording
        self._expected: dict[int, Expected] = {}
        self.taken: list[Taken] = []

    def __call__(self, seen: Observation) -> None:
        is_settled = seen.what in (Happening.COMPLETED, Happening.DEAD_LETTERED)
        if is_settled and seen.path.startswith(REPLY_TOPIC_PREFIX):
            self.taken.append(Taken(seen.what, seen.reason or ""))
            self._recording.wake()

    async def expect(self, job_id: str) -> int:
        number, stored = len(self.taken), await self._ledger.load(job_id)
        events = 0 if stored is None else stored.aggregate.job.seq
        self._expected[number] = Expected(job_id, events)
        return number

    async def verdict(self, number: int) -> str:
        """As the job's events tell it. A reply that is applied leaves the events of what it moved,
        or none."""
        taken = await self._recording.wait(lambda: next(iter(self.taken[number:]), None), DEADLINE)
        assert taken is not None, f"no reply {number} came over the bus"
        if taken.what is Happening.DEAD_LETTERED:
            return taken.reason
        job_id, before = self._expected[number]
        for event in await self._ledger.events(job_id, before):
            if event.type is EventType.REPLY_IGNORED:
                return event.detail or ""
            if event.type is EventType.REFUSED:
                return ErrorCode.JOB_NOT_FOUND
        is_known = await self._ledger.load(job_id) is not None
        return Verdict.APPLIED if is_known else ErrorCode.JOB_NOT_FOUND
