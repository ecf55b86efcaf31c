"""The invoker under test: its desk over a plane whose workflows and services tests play."""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

import httpx

from lucius_contract.messages import Directive
from lucius_orchestrator.api import ApiLimits
from lucius_orchestrator.api.app import create_health_app
from lucius_orchestrator.api.internal import InternalApi, InternalCredential, WithInternalApi
from lucius_orchestrator.api.parts import HealthParts
from lucius_orchestrator.domain.aggregate import Engine, JsonObject
from lucius_orchestrator.domain.workflow import Next, what_next
from lucius_orchestrator.invoker.desk import DeskSettings, InvokerDesk
from lucius_orchestrator.outbox.publishing import DirectivePublisher
from lucius_orchestrator.ports.invoker import AttemptName
from lucius_orchestrator.ports.workflows import (
    WorkflowNotFound,
    WorkflowStatus,
    WorkflowsUnavailable,
)
from lucius_orchestrator.security.authentication import NoAuthentication
from tests.engine.plane import TENANT, Plane, request

KEY = "k" * 32
QUICK = DeskSettings(pause=timedelta(milliseconds=1), recovery_grace=timedelta(0))
LEASE = "1" * 32


class RecordedWorkflows:
    """Workflows as Temporal would have them, with what they were told."""

    def __init__(self) -> None:
        self.away = False
        self.running: dict[str, JsonObject] = {}
        self.closed: set[str] = set()
        self.told: dict[str, list[str]] = defaultdict(list)
        self.bodies: list[JsonObject] = []

    async def start(self, body: JsonObject) -> None:
        self._reach()
        job_id = body["jobId"]
        if job_id in self.running or (job_id in self.closed and not body["restarts"]):
            return
        self.closed.discard(job_id)
        self.running[job_id] = body

    async def signal(self, job_id: str, name: str, body: JsonObject) -> None:
        self._reach()
        if job_id not in self.running:
            raise WorkflowNotFound(job_id)
        self.told[job_id].append(name)
        self.bodies.append(body)

    async def status(self, job_id: str) -> WorkflowStatus:
        self._reach()
        if job_id in self.running:
            return WorkflowStatus(True, "RUNNING")
        return WorkflowStatus(False, "TERMINATED" if job_id in self.closed else "MISSING")

    def terminate(self, job_id: str) -> None:
        del self.running[job_id]
        self.closed.add(job_id)

    def _reach(self) -> None:
        if self.away:
            raise WorkflowsUnavailable("no server")


class InvokerStage:
    def __init__(self, plane: Plane, settings: DeskSettings = QUICK) -> None:
        self.plane = plane
        bus: Any = plane.bus_detour
        self.publisher = DirectivePublisher(plane.engine, bus, timedelta(seconds=5))
        self.desk = InvokerDesk(plane.engine, self.publisher, settings)
        parts = HealthParts(
            authenticator=NoAuthentication(),
            readiness=_no_checks,
            metrics=lambda: b"",
        )
        internal = InternalApi(
            self.desk, InternalCredential([KEY, "other" * 8]), ApiLimits().retry_after
        )
        self.app = WithInternalApi(create_health_app(parts), internal, parts)

    async def submitted(self, **members: Any) -> str:
        return await self.plane.submit(request(engine=Engine.TEMPORAL, **members))

    async def next(self, job_id: str) -> Next:
        return what_next((await self.plane.stored(job_id)).aggregate)

    async def opened(self, **members: Any) -> AttemptName:
        """A new job whose first attempt is open."""
        name = attempt(await self.submitted(**members))
        await self.desk.open_attempt(name, self.lease_end())
        return name

    async def published(self, **members: Any) -> Directive:
        """A new job whose first directive the service has."""
        name = await self.opened(**members)
        await self.desk.publish(name)
        (directive,) = await self.plane.directives()
        return directive

    def lease_end(self) -> datetime:
        return self.plane.clock() + timedelta(minutes=30)

    async def post(self, path: str, body: Any, key: str | None = KEY) -> httpx.Response:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://invoker") as client:
            return await client.post(f"/v1/internal/{path}", json=body, headers=headers)


async def _no_checks() -> list[Any]:
    return []


def attempt(job_id: str, attempt_no: int = 1, lease_id: str = LEASE) -> AttemptName:
    return AttemptName(job_id, TENANT, "step_01", attempt_no, lease_id)


def identity(name: AttemptName) -> dict[str, Any]:
    return {
        "jobId": name.job_id,
        "stepId": name.step_id,
        "tenant_id": name.tenant_id,
        "attempt_no": name.attempt_no,
        "lease_id": name.lease_id,
    }
