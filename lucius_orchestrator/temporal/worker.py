"""The part of a process that runs workflows and what they ask for."""

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version

from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion
from temporalio.service import RPCError
from temporalio.worker import (
    PollerBehaviorAutoscaling,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkerDeploymentConfig,
    WorkflowRunner,
)

from lucius_bus.waiting import until_set
from lucius_orchestrator.ports.invoker import Invoker
from lucius_orchestrator.temporal.activities import JobActivities
from lucius_orchestrator.temporal.connection import TemporalOptions, connected
from lucius_orchestrator.temporal.workflow import JobWorkflow

_log = logging.getLogger("lucius_orchestrator.temporal")


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Workflows are small and wait most of the time: many are kept at hand, since one that is not
    is replayed from its history when something happens to it. `grace` is what activities have to
    end at a stop."""

    cached_workflows: int = 5_000
    workflow_tasks: int = 100
    activities: int = 100
    pollers: int = 10
    grace: timedelta = timedelta(seconds=10)
    pause: timedelta = timedelta(seconds=1)


class TemporalWorker:
    """Runs by `run()` until `stop()`. While the server is away it keeps trying, from the start or
    later: workflows wait there and lose nothing."""

    def __init__(
        self,
        options: TemporalOptions,
        invoker: Invoker,
        settings: WorkerSettings | None = None,
        runner: WorkflowRunner | None = None,
    ) -> None:
        self._options = options
        self._activities = JobActivities(invoker).all()
        self._settings = settings or WorkerSettings()
        self._runner = runner or UnsandboxedWorkflowRunner()
        self._stopping = asyncio.Event()
        self._stopped = asyncio.Event()
        self._stopped.set()
        self._is_away = False

    async def stop(self) -> None:
        self._stopping.set()
        await self._stopped.wait()

    async def run(self) -> None:
        self._stopped.clear()
        try:
            while not self._stopping.is_set():
                await self._run_once()
        finally:
            self._stopped.set()

    async def _run_once(self) -> None:
        """Until the stop, or until the server is found away or unfit."""
        try:
            worker = self._worker(await connected(self._options))
            self._is_away = False
            await self._work(worker)
        except (RuntimeError, RPCError) as error:
            if not self._is_away:
                _log.warning("temporal.away", extra={"error": str(error)})
            self._is_away = True
            await until_set(self._stopping, self._settings.pause)

    async def _work(self, worker: Worker) -> None:
        stopper = asyncio.create_task(self._shut_down(worker))
        try:
            await worker.run()
        finally:
            stopper.cancel()
            await asyncio.gather(stopper, return_exceptions=True)

    async def _shut_down(self, worker: Worker) -> None:
        await self._stopping.wait()
        await worker.shutdown()

    def _worker(self, client: Client) -> Worker:
        settings = self._settings
        pollers = PollerBehaviorAutoscaling(maximum=settings.pollers, initial=5)
        return Worker(
            client,
            task_queue=self._options.task_queue,
            workflows=[JobWorkflow],
            activities=self._activities,
            workflow_runner=self._runner,
            # A mark in histories. Workflows may move between releases, hence no versioning.
            deployment_config=WorkerDeploymentConfig(
                WorkerDeploymentVersion("lucius", version("lucius-sdk")),
                use_worker_versioning=False,
            ),
            max_cached_workflows=settings.cached_workflows,
            max_concurrent_workflow_tasks=settings.workflow_tasks,
            max_concurrent_activities=settings.activities,
            max_concurrent_local_activities=settings.activities,
            workflow_task_poller_behavior=pollers,
            activity_task_poller_behavior=pollers,
            graceful_shutdown_timeout=settings.grace,
        )
