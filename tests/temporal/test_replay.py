"""A change of the workflow must not break jobs that run: it makes of every recorded history what
was made of it then."""

import asyncio
import re
import socket
from pathlib import Path

import pytest
from temporalio.client import WorkflowFailureError, WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner
from temporalio.workflow import NondeterminismError

from lucius_orchestrator.temporal.workflow import JobWorkflow
from tests.runner.deadlines import DEADLINE
from tests.temporal.record import HISTORIES
from tests.temporal.scenarios import SCENARIOS
from tests.temporal.stage import Stage

FILES = sorted(HISTORIES.glob("*.json"))


async def replay(file: Path, text: str | None = None) -> None:
    replayer = Replayer(
        workflows=[JobWorkflow], workflow_runner=UnsandboxedWorkflowRunner(), identity="lucius"
    )
    await replayer.replay_workflow(WorkflowHistory.from_json(file.stem, text or file.read_text()))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_a_recorded_history_is_replayed(file: Path) -> None:
    await replay(file)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_course_is_recorded(name: str) -> None:
    assert any(file.name.startswith(f"{name}.") for file in FILES)


async def test_a_history_that_begins_with_another_deed_is_noticed() -> None:
    """So that the tests above can fail."""
    file = HISTORIES / "three_steps.1.json"
    with pytest.raises(NondeterminismError):
        await replay(file, file.read_text().replace("core_local_activity", "another_marker"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_recorded_history_names_no_machine(file: Path) -> None:
    text = file.read_text()
    assert set(re.findall(r'"identity": "(.*)"', text)) == {"lucius"}
    for name in (socket.gethostname(), str(HISTORIES.parent), "stackTrace", ".py"):
        assert name not in text


@pytest.mark.parametrize("name", SCENARIOS)
async def test_each_course_leads_to_its_end(stage: Stage, name: str) -> None:
    plays, state = SCENARIOS[name]
    async with asyncio.timeout(DEADLINE):
        await plays(stage)
    if state == "FAILED_FINAL":
        with pytest.raises(WorkflowFailureError):
            await stage.outcome()
    else:
        assert await stage.outcome() == state
