"""The application itself, on a socket of this machine, in a thread of its own. Its catalogue is in
memory; its objects are files, or elsewhere; and tests move its clock."""

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from lucius_artifacts.artifacts import Artifacts, Rules
from lucius_artifacts.catalogue.memory import MemoryCatalogue
from lucius_artifacts.model import Version
from lucius_artifacts.objects.files import FileObjects
from lucius_artifacts.ports.objects import Objects
from lucius_artifacts.ports.policy import Allow, Quarantine
from lucius_artifacts.signing import UrlSigner
from lucius_artifacts.world import Limits, World
from lucius_bus.memory import MemoryBus
from lucius_contract.refs import RefPolicy
from lucius_orchestrator.adapters.artifacts import LedgerJobs
from lucius_orchestrator.api import ApiLimits, ApiParts, Check, create_app
from lucius_orchestrator.engine.backlogs import Backlogs
from lucius_orchestrator.engine.planning import PlanSettings
from lucius_orchestrator.engine.services import Services
from lucius_orchestrator.security.callback_tokens import CallbackTokens
from tests.api.serving import address, served
from tests.api.stage import NamedCallers, Protocols
from tests.artifacts.client.gate import Gate
from tests.engine.plane import TENANT, Plane
from tests.ledger.backends import Clock, MemoryBackend
from tests.runner.deadlines import DEADLINE

T = TypeVar("T")

KEY = "ada"
"""Of a caller who may do everything for TENANT."""
__all__ = ["KEY", "TENANT", "Server", "producer_token", "running_server"]
_SIGNING = b"k" * 32


def producer_token(job_id: str, step_id: str, attempt_no: int, tenant_id: str = TENANT) -> str:
    """The `artifact_token` of an attempt's directive."""
    tokens, ends = CallbackTokens([_SIGNING], Clock()), datetime(2100, 1, 1, tzinfo=UTC)
    return tokens.issue_producer(tenant_id, job_id, step_id, attempt_no, ends)


class Policy:
    """Lets everything pass, unless there is a reason."""

    def __init__(self) -> None:
        self.reason: str | None = None

    async def judge(self, version: Version) -> Allow | Quarantine:  # noqa: ARG002 - any version
        return Allow() if self.reason is None else Quarantine(self.reason)


class Server:
    """`elsewhere` opens objects that clients reach by themselves."""

    def __init__(
        self,
        folder: Path,
        limits: Limits,
        clock: Clock | None = None,
        elsewhere: Callable[[], Awaitable[Objects]] | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.policy = Policy()
        self.catalogue = MemoryCatalogue()
        self.url = ""
        self.gate: Gate
        self.artifacts: Artifacts
        self._folder = folder
        self._limits = limits
        self._elsewhere = elsewhere
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(DEADLINE), "the server did not start"

    def stop(self) -> None:
        self.gate.open()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(DEADLINE)

    def forget(self) -> None:
        """What was asked, and what troubles it."""
        self.gate.open()
        self.gate.wait_until_idle()
        self.gate.asked.clear()
        self.gate.troubles.clear()
        self.policy.reason = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(DEADLINE)

    def versions(self, name: str) -> list[Version]:
        """The newest first."""
        return self.run(self.artifacts.listing.versions(TENANT, name, None, 100))

    def received(self, upload_id: str) -> list[int]:
        progress = self.run(self.artifacts.uploads.progress(TENANT, upload_id))
        return sorted(progress.received)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        backend, bus = MemoryBackend(self.clock), MemoryBus(self.clock)
        await backend.start()
        plane = Plane.new(backend, bus)
        signer = UrlSigner([secrets.token_bytes(32)], self.clock)
        objects = await self._objects(signer)
        self.artifacts = Artifacts.over(
            self.catalogue,
            objects,
            LedgerJobs(backend.ledger),
            World(self.clock, secrets.token_bytes),
            Rules(limits=self._limits, policy=self.policy),
            signer=signer,
        )
        self.gate = Gate(create_app(self._parts(plane)))
        async with served(self.gate) as port:
            self.url = address(port)
            self._ready.set()
            await self._stop.wait()
        await self.artifacts.verifications.close()
        await objects.close()
        await bus.close()
        await backend.stop()

    async def _objects(self, signer: UrlSigner) -> Objects:
        if self._elsewhere is not None:
            return await self._elsewhere()
        return FileObjects(self._folder, signer, lambda: self.url)

    def _parts(self, plane: Plane) -> ApiParts:
        registry = Protocols()
        return ApiParts(
            engine=plane.engine,
            registry=registry,
            authenticator=NamedCallers(),
            tokens=CallbackTokens([_SIGNING], self.clock),
            plan=PlanSettings("az://workspace"),
            refs=RefPolicy(),
            check_webhooks=lambda _urls: None,
            services=Services(
                plane.engine.traffic, Backlogs(plane.ledger), registry.snapshot, self.clock
            ),
            readiness=_ready,
            metrics=lambda: b"",
            limits=ApiLimits(
                verification_patience=timedelta(seconds=DEADLINE), retry_after=timedelta(0)
            ),
            artifacts=self.artifacts,
        )


async def _ready() -> Sequence[Check]:
    return ()


@contextmanager
def running_server(folder: Path, **limits: Any) -> Iterator[Server]:
    with serving(Server(folder, Limits(**limits))) as server:
        yield server


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    server.start()
    try:
        yield server
    finally:
        server.stop()
