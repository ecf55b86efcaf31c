"""The tables themselves: complete, without dead ends, terminal where they say so."""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import pytest

from lucius_contract.states import (
    JOB_STATUS,
    STEP_STATUS,
    TERMINAL_JOB_STATES,
    TERMINAL_OUTBOX_STATES,
    TERMINAL_STEP_STATES,
    JobState,
    OutboxState,
    StepState,
)
from lucius_contract.transitions import (
    JOB_TRANSITIONS,
    OUTBOX_TARGETS,
    OUTBOX_TRANSITIONS,
    STEP_TRANSITIONS,
    OutboxTrigger,
    Transition,
)


class Machine(NamedTuple):
    table: Sequence[Transition[Any, Any]]
    states: type[StrEnum]
    initial: StrEnum
    terminal: Collection[StrEnum]


MACHINES = {
    "job": Machine(JOB_TRANSITIONS, JobState, JobState.QUEUED, TERMINAL_JOB_STATES),
    "step": Machine(STEP_TRANSITIONS, StepState, StepState.PENDING, TERMINAL_STEP_STATES),
    "outbox": Machine(OUTBOX_TRANSITIONS, OutboxState, OutboxState.PENDING, TERMINAL_OUTBOX_STATES),
}


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
class TestEveryTable:
    def test_every_state_can_be_reached(self, machine: Machine) -> None:
        reached = {machine.initial}
        while more := {r.target for r in machine.table if r.source in reached} - reached:
            reached |= more
        assert reached == set(machine.states)

    def test_only_terminal_states_lead_nowhere(self, machine: Machine) -> None:
        left = {row.source for row in machine.table}
        assert set(machine.states) - left == set(machine.terminal)

    def test_no_row_stands_twice(self, machine: Machine) -> None:
        rows = {(row.source, row.trigger, row.target) for row in machine.table}
        assert len(rows) == len(machine.table)


def test_every_state_has_its_status() -> None:
    assert set(JOB_STATUS) == set(JobState)
    assert set(STEP_STATUS) == set(StepState)


def test_a_table_can_be_looked_up_by_cause() -> None:
    cause = (OutboxState.PENDING, OutboxTrigger.PUBLISHED)
    assert OUTBOX_TARGETS[cause] == {OutboxState.SENT}
