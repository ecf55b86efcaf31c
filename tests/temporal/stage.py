"""Workflows on a real server, a worker, and the invoker that a test has scripted."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle, WorkflowHistory
from temporalio.worker import WorkflowRunner

from lucius_orchestrator.domain.workflow import Next
from lucius_orchestrator.temporal.client import TemporalWorkflows, WorkflowSettings
from lucius_orchestrator.temporal.connection import TemporalOptions, connected
from lucius_orchestrator.temporal.shapes import Outcome
from lucius_orchestrator.temporal.worker import TemporalWorker, WorkerSettings
from tests.runner.deadlines import DEADLINE
from tests.temporal.invoker import ScriptedInvoker
from tests.temporal.story import HOUR, Story, signal_body

SKEW = timedelta(milliseconds=20)
SETTINGS = WorkflowSettings(skew=SKEW)
QUICKLY = WorkerSettings(grace=timedelta(0))


class Stage:
    """One job at a time, of its own task queue."""

    def __init__(
        self, client: Client, options: TemporalOptions, settings: WorkflowSettings = SETTINGS
    ) -> None:
        self.client = client
        self.options = options
        self.workflows = TemporalWorkflows(options, settings)
        self.invoker = ScriptedInvoker()
        self.story = Story()
        self.job_id = f"job_{secrets.token_hex(8)}"

    @classmethod
    async def new(cls, address: str, settings: WorkflowSettings = SETTINGS) -> "Stage":
        options = cls.options_for(address)
        return cls(await connected(options), options, settings)

    @staticmethod
    def options_for(address: str) -> TemporalOptions:
        queue = f"queue-{secrets.token_hex(4)}"
        return TemporalOptions(address, task_queue=queue, identity="lucius")

    @property
    def handle(self) -> WorkflowHandle[Any, Outcome]:
        return self.client.get_workflow_handle(self.job_id, result_type=Outcome)

    async def start(self, following: Next | None = None, *, restarts: bool = False) -> None:
        await self.workflows.start(
            {
                "jobId": self.job_id,
                "tenant_id": "acme",
                "request_type": "OCR",
                "protocol_id": "ocr_v1",
                "correlation_id": "c-1",
                "restarts": restarts,
                "next": following or self.story.open(),
            }
        )

    async def signal(self, name: str, following: Next, **members: Any) -> None:
        await self.workflows.signal(self.job_id, name, signal_body(following, **members))

    async def outcome(self) -> str:
        async with asyncio.timeout(DEADLINE):
            return (await self.handle.result()).state

    async def goes_smoothly(self, *, acks: bool = True, steps: int = 3) -> None:
        """All attempts are opened, published and answered at once."""
        await self.invoker.says("open", lambda call: self.story.publish(call.attempt))
        published = lambda call: self.story.wait(  # noqa: E731
            call.attempt, ACK_TIMEOUT=HOUR
        )
        await self.invoker.says("publish", published)
        for number in range(steps):
            call = await self.invoker.called("publish", number + 1)
            if acks:
                following = self.story.wait(call.attempt, LEASE_EXPIRED=timedelta(minutes=15))
                await self.signal("step_ack", following)
            is_last = number == steps - 1
            after = self.story.end() if is_last else self.story.open(f"s{number + 1}")
            await self.signal("step_result", after)


@asynccontextmanager
async def employed(
    options: TemporalOptions,
    invoker: ScriptedInvoker,
    settings: WorkerSettings = QUICKLY,
    runner: WorkflowRunner | None = None,
) -> AsyncIterator[None]:
    worker = TemporalWorker(options, invoker, settings, runner)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run())
        try:
            yield
        finally:
            await worker.stop()


def working(
    stage: Stage, settings: WorkerSettings = QUICKLY, runner: WorkflowRunner | None = None
) -> AbstractAsyncContextManager[None]:
    return employed(stage.options, stage.invoker, settings, runner)


async def input_of(stage: Stage) -> dict[str, Any]:
    """What the workflow was started with."""
    history = await stage.handle.fetch_history()
    given = history.events[0].workflow_execution_started_event_attributes.input.payloads[0]
    found: dict[str, Any] = json.loads(given.data)
    return found


async def events_of(stage: Stage) -> list[str]:
    history = await stage.handle.fetch_history()
    return [
        EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") for event in history.events
    ]


async def timers_of(stage: Stage) -> list[timedelta]:
    """How long each was to take."""
    history = await stage.handle.fetch_history()
    return [
        event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta()
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_TIMER_STARTED
    ]


async def happened(stage: Stage, *names: str) -> None:
    """Returns when these events are in the history, the last one last."""
    async with asyncio.timeout(DEADLINE):
        while not set(names) <= set(events := await events_of(stage)) or events[-1] != names[-1]:
            await asyncio.sleep(0)


async def runs_of(stage: Stage) -> list[WorkflowHistory]:
    """The histories of the job, the first one first."""
    histories = [await stage.handle.fetch_history()]
    while before := _run_before(histories[0]):
        handle = stage.client.get_workflow_handle(stage.job_id, run_id=before)
        histories.insert(0, await handle.fetch_history())
    return histories


def _run_before(history: WorkflowHistory) -> str:
    started = history.events[0].workflow_execution_started_event_attributes
    return started.continued_execution_run_id
