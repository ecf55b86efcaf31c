"""What the ledger must say of every job in the end, whoever was killed."""

import asyncio
from collections import Counter

from lucius_contract.states import TERMINAL_JOB_STATES, TERMINAL_STEP_STATES, StepState
from lucius_contract.transitions import StepTrigger
from lucius_orchestrator.domain.aggregate import Aggregate
from lucius_orchestrator.domain.decision import AuditEvent
from lucius_orchestrator.ports.ledger import Ledger
from tests.crash.jobs import key, tenant_of
from tests.crash.service import UnreliableService

_RESULTS = {
    StepTrigger.RESULT_SUCCEEDED,
    StepTrigger.RESULT_RETRYABLE,
    StepTrigger.RESULT_FINAL,
}


async def all_ended(ledger: Ledger, jobs: int, limit: int, workload: str = "") -> None:
    """Look at the counters until nothing is in flight; they never go above the limit."""
    found = 0
    while found < jobs:
        total = (await ledger.in_flight()).total
        assert 0 <= total <= limit
        if total == 0:
            found = sum([await is_terminal(ledger, number, workload) for number in range(jobs)])
        await asyncio.sleep(0.2)


async def is_terminal(ledger: Ledger, number: int, workload: str = "") -> bool:
    found = await ledger.find(tenant_of(number, workload), f"key:{key(number)}")
    stored = await ledger.load(found.job_id) if found else None
    return stored is not None and stored.aggregate.job.state in TERMINAL_JOB_STATES


async def aggregate_of(ledger: Ledger, number: int, workload: str = "") -> Aggregate:
    found = await ledger.find(tenant_of(number, workload), f"key:{key(number)}")
    assert found is not None
    stored = await ledger.load(found.job_id)
    assert stored is not None
    return stored.aggregate


async def history_of(
    ledger: Ledger, number: int, workload: str = ""
) -> tuple[Aggregate, list[AuditEvent]]:
    """Of one moment: what the service repeats is recorded also when the job has ended."""
    while True:
        aggregate = await aggregate_of(ledger, number, workload)
        events = await ledger.events(aggregate.job.job_id, limit=10_000)
        if (await aggregate_of(ledger, number, workload)).job.seq == aggregate.job.seq:
            return aggregate, events


def check_history(aggregate: Aggregate, events: list[AuditEvent]) -> None:
    """One RESULT per attempt at most, steps in order, no gap in the events."""
    assert [event.seq for event in events] == list(range(1, aggregate.job.seq + 1))
    results = Counter(
        (event.step_id, event.attempt_no) for event in events if event.cause in _RESULTS
    )
    assert set(results.values()) <= {1}
    ended: list[str] = []
    for event in events:
        if event.target == StepState.DISPATCHING and event.step_id is not None:
            assert ended == [f"step_{n + 1:02d}" for n in range(len(ended))]
            assert event.step_id == f"step_{len(ended) + 1:02d}"
        if event.target == StepState.SUCCEEDED and event.step_id is not None:
            ended.append(event.step_id)


def check_attempts(aggregate: Aggregate, service: UnreliableService) -> None:
    """What the ledger says was done, the service did."""
    for step in aggregate.steps:
        assert step.state in TERMINAL_STEP_STATES
        assert [attempt.attempt_no for attempt in step.attempts] == list(
            range(1, len(step.attempts) + 1)
        )
        for attempt in step.attempts:
            if attempt.result_digest is not None:
                made = (aggregate.job.job_id, step.step_id, attempt.attempt_no)
                assert service.directives[made] >= 1
