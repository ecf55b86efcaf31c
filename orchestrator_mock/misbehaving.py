"""A mock that misbehaves as buses, networks and storage do, by a plan that a seed repeats.

What a seed does to the nth job depends on the seed and n alone, so a failure that a seed has found
can be looked for again with the same seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from lucius_contract.canonical import digest
from lucius_contract.states import TERMINAL_STEP_STATES, StepState
from orchestrator_mock.faults import Fault
from orchestrator_mock.mock import Issued, Mock
from orchestrator_mock.recording import What
from orchestrator_mock.stage import Sending, Stage

_REPLY_FAULTS = ("callback-cut", "callback-500", "callback-503", "callback-lost-answer")
_STORAGE_FAULTS = ("storage-503", "storage-cut")
_OPEN = frozenset({StepState.FAILED_RETRY})


class Mischief(NamedTuple):
    """What is done to one job."""

    copies: int
    late_copies: int
    reply_faults: tuple[Fault, ...]
    storage_fault: Fault | None
    drops_bus: bool
    loses_settlement: bool


@dataclass(frozen=True, slots=True)
class Found:
    """How a run with a seed ended. `problems` is empty when the service kept its promises."""

    seed: int
    jobs: int
    problems: tuple[str, ...]

    def __str__(self) -> str:
        if not self.problems:
            return f"seed {self.seed}: {self.jobs} jobs, nothing wrong"
        told = "\n".join(f"  {problem}" for problem in self.problems[:20])
        return f"seed {self.seed} found {len(self.problems)} problems; it repeats them:\n{told}"


def mischief(seed: int, number: int, job_id: str) -> Mischief:
    """The plan for a job; `number` counts the jobs of the seed."""
    chance = Random(f"{seed}/{number}")  # noqa: S311 - it must repeat
    faults = []
    for type in ("ACK", "RESULT"):
        if chance.random() < 0.4:
            name, count = chance.choice(_REPLY_FAULTS), chance.randint(1, 3)
            faults.append(Fault(name, count, frozenset({type}), job_id))
    storage = None
    if chance.random() < 0.15:
        storage = Fault(chance.choice(_STORAGE_FAULTS), 1, job_id=job_id)
    return Mischief(
        copies=1 + (chance.random() < 0.3),
        late_copies=int(chance.random() < 0.2),
        reply_faults=tuple(faults),
        storage_fault=storage,
        drops_bus=chance.random() < 0.05,
        loses_settlement=chance.random() < 0.1,
    )


async def misbehave(
    stage: Stage, sending: Sending, seed: int, jobs: int, within: float = 120.0
) -> Found:
    """Send that many jobs and do to each what the seed says; then see whether every job ended, with
    one RESULT for each attempt. A job that has to be tried again is."""
    order = list(range(jobs))
    Random(seed).shuffle(order)  # noqa: S311 - it must repeat
    sent = [await _send(stage, sending, seed, number) for number in order]
    mock = stage.mock
    try:
        await mock.recording.wait(lambda: _goes_on(stage, sent), within)
        for issued, number in zip(sent, order, strict=True):
            late = mischief(seed, number, issued.job_id).late_copies
            if late:
                mock.publish(stage.job(issued.job_id).issued, late)
        await mock.recording.wait(lambda: mock.waiting() == 0 or None, within)
    finally:
        await mock.clear_faults()
    problems = [text for issued in sent for text in _problems(mock, issued)]
    if mock.waiting():
        problems.append(f"{mock.waiting()} directives were never settled")
    return Found(seed, jobs, tuple(problems))


async def _send(stage: Stage, sending: Sending, seed: int, number: int) -> Issued:
    own = sending.model_copy(update={"tenant_id": f"{sending.tenant_id}-{seed}-{number}"})
    issued = stage.send(own, publish=False)
    plan = mischief(seed, number, issued.job_id)
    for fault in (*plan.reply_faults, plan.storage_fault):
        if fault is not None:
            await stage.mock.add_fault(fault)
    if plan.loses_settlement:
        await stage.mock.add_fault(Fault("settlement-lost"))
    stage.mock.publish(issued, plan.copies)
    if plan.drops_bus:
        await stage.mock.add_fault(Fault("bus-dropped"))
    return issued


def _goes_on(stage: Stage, sent: Sequence[Issued]) -> bool | None:
    """Whether every job has ended; those that failed and may be tried again are."""
    is_over = True
    for issued in sent:
        (step,) = stage.mock.job(issued.job_id).steps
        if step.state in _OPEN:
            stage.next_attempt(issued.job_id)
        is_over = is_over and step.state in TERMINAL_STEP_STATES
    return is_over or None


def _problems(mock: Mock, issued: Issued) -> list[str]:
    (step,) = mock.job(issued.job_id).steps
    found = []
    if step.state is not StepState.SUCCEEDED:
        found.append(f"{issued.job_id} ended as {step.state}, {step.last_error_code}")
    contents: dict[int, set[str]] = {}
    for entry in mock.recording.of(issued.job_id, What.RESULT):
        contents.setdefault(entry.attempt_no, set()).add(digest(entry.body or {}))
    found += [
        f"{issued.job_id}: {len(each)} different RESULTs of attempt {number}"
        for number, each in contents.items()
        if len(each) > 1
    ]
    return found
