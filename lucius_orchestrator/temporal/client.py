"""`TemporalWorkflows`: starts the workflows of jobs, signals them, asks whether they still run. An
implementation of the port `Workflows`."""

import asyncio
import secrets
from dataclasses import dataclass
from datetime import timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    DescribeWorkflowExecutionRequest,
)
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from lucius_orchestrator.domain.aggregate import JsonObject
from lucius_orchestrator.domain.workflow import Signal
from lucius_orchestrator.ports.workflows import WorkflowNotFound, WorkflowStatus
from lucius_orchestrator.temporal.connection import TemporalOptions, connected
from lucius_orchestrator.temporal.errors import TemporalRefused, own_errors
from lucius_orchestrator.temporal.search import add_attributes, attributes_of
from lucius_orchestrator.temporal.shapes import WORKFLOW, JobInput

_LEASE_KEY_BYTES = 32
_MISSING = "MISSING"
_PREFIX = "WORKFLOW_EXECUTION_STATUS_"
_CLOSED = frozenset(
    {"COMPLETED", "FAILED", "CANCELED", "TERMINATED", "CONTINUED_AS_NEW", "TIMED_OUT"}
)


@dataclass(frozen=True, slots=True)
class WorkflowSettings:
    """How workflows are started. `execution_timeout` is Temporal's own limit on a job, for those
    who want one beside the SLA."""

    skew: timedelta = timedelta(seconds=2)
    execution_timeout: timedelta | None = None
    history_limit: int = 2_000
    rpc_timeout: timedelta = timedelta(seconds=10)


class TemporalWorkflows:
    """It connects when it is first needed, and again by itself; there is nothing to close."""

    def __init__(self, options: TemporalOptions, settings: WorkflowSettings | None = None) -> None:
        self._options = options
        self._settings = settings or WorkflowSettings()
        self._connecting = asyncio.Lock()
        self._client: Client | None = None
        self._is_searchable: bool | None = None

    async def check(self) -> None:
        """Returns if the server answers and has the namespace."""
        request = DescribeNamespaceRequest(namespace=self._options.namespace)
        with own_errors():
            service = (await self._connected()).workflow_service
            await service.describe_namespace(request, timeout=self._settings.rpc_timeout)

    async def start(self, body: JsonObject) -> None:
        """The workflow of a START row. The first one of a job is started once, however often it is
        asked for; another one, if none is running."""
        is_searchable = await self._is_perhaps_searchable()
        try:
            await self._start(body, is_searchable=is_searchable)
        except TemporalRefused:
            if not is_searchable:
                raise
            self._is_searchable = False
            await self._start(body, is_searchable=False)

    async def signal(self, job_id: str, name: str, body: JsonObject) -> None:
        with own_errors():
            handle = (await self._connected()).get_workflow_handle(job_id)
            await handle.signal(name, dict(body), rpc_timeout=self._settings.rpc_timeout)

    async def status(self, job_id: str) -> WorkflowStatus:
        """What is not surely closed or missing counts as running."""
        try:
            name = await self._described(job_id)
        except WorkflowNotFound:
            return WorkflowStatus(is_running=False, name=_MISSING)
        return WorkflowStatus(name not in _CLOSED, name)

    async def ensure_search_attributes(self) -> bool:
        """Whether the namespace has them now; workflows do without. TemporalRefused: it cannot be
        known, since not every server lets everybody ask."""
        with own_errors():
            self._is_searchable = await add_attributes(await self._connected())
        return self._is_searchable

    async def _is_perhaps_searchable(self) -> bool:
        if self._is_searchable is None:
            try:
                await self.ensure_search_attributes()
            except TemporalRefused:
                self._is_searchable = True  # until the first start shows that they are missing
        return bool(self._is_searchable)

    async def _start(self, body: JsonObject, *, is_searchable: bool) -> None:
        reuse = WorkflowIDReusePolicy
        with own_errors():
            client = await self._connected()
            try:
                await client.start_workflow(
                    WORKFLOW,
                    self._input(body, is_searchable=is_searchable),
                    id=body["jobId"],
                    task_queue=self._options.task_queue,
                    execution_timeout=self._settings.execution_timeout,
                    id_reuse_policy=reuse.ALLOW_DUPLICATE
                    if body["restarts"]
                    else reuse.REJECT_DUPLICATE,
                    id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                    search_attributes=attributes_of(body) if is_searchable else None,
                    static_summary=f"{body['request_type']} of {body['tenant_id']}",
                    # One that runs after all, with older news of its job, learns where it stands.
                    start_signal=Signal.JOB_MOVED.value if body["restarts"] else None,
                    start_signal_args=[{"next": dict(body["next"])}] if body["restarts"] else [],
                    rpc_timeout=self._settings.rpc_timeout,
                )
            except WorkflowAlreadyStartedError:
                return

    def _input(self, body: JsonObject, *, is_searchable: bool) -> JobInput:
        settings = self._settings
        return JobInput(
            job_id=body["jobId"],
            tenant_id=body["tenant_id"],
            request_type=body["request_type"],
            next=dict(body["next"]),
            lease_key=secrets.token_hex(_LEASE_KEY_BYTES),
            skew_seconds=settings.skew.total_seconds(),
            is_searchable=is_searchable,
            history_limit=settings.history_limit,
        )

    async def _described(self, job_id: str) -> str:
        request = DescribeWorkflowExecutionRequest(
            namespace=self._options.namespace, execution=WorkflowExecution(workflow_id=job_id)
        )
        with own_errors():
            service = (await self._connected()).workflow_service
            found = await service.describe_workflow_execution(
                request, timeout=self._settings.rpc_timeout
            )
        status = found.workflow_execution_info.status
        return WorkflowExecutionStatus.Name(status).removeprefix(_PREFIX)

    async def _connected(self) -> Client:
        async with self._connecting:
            if self._client is None:
                self._client = await connected(self._options)
            return self._client
