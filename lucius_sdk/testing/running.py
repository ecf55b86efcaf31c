"""One directive through a service, in memory: the real runtime, no bus, no orchestrator."""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lucius_bus.memory import MemoryBus
from lucius_bus.topology import lane_topology
from lucius_contract.documents import Artifact
from lucius_contract.messages import Directive, Progress, Result, StepError
from lucius_contract.routing import directive_topic
from lucius_sdk.idempotency_store import MemoryStore
from lucius_sdk.runtime.runtime import Limits, ServiceRuntime
from lucius_sdk.service import Service
from lucius_sdk.testing.clock import FakeClock
from lucius_sdk.testing.directives import directive_message, make_directive
from lucius_sdk.testing.replies import RecordedReplies
from lucius_sdk.testing.watching import Watch
from lucius_sdk.workspace_io import LocalStorage, Storages

_DEADLINE = 60.0
_GRACE = 5.0

Prior = Mapping[str, Mapping[str, bytes]]
"""What the steps before have written: by step type, by name."""


@dataclass(frozen=True, slots=True)
class StepRun:
    """What came of a directive."""

    result: Result
    files: Mapping[str, bytes]
    """Content of the artifacts, by name."""
    published: bytes | None
    """What was put where `output_ref` says."""
    progress: Progress | None
    """What the handler told last, as a heartbeat would carry it."""

    @property
    def status(self) -> str:
        """SUCCEEDED, FAILED_RETRY or FAILED_FINAL."""
        return self.result.status.value

    @property
    def error(self) -> StepError | None:
        return self.result.error

    @property
    def code(self) -> str | None:
        """Of the error, if it failed."""
        return None if self.result.error is None else self.result.error.code

    @property
    def artifacts(self) -> list[Artifact]:
        return self.result.artifacts

    def text(self, name: str) -> str:
        return self.files[name].decode()

    def json(self, name: str) -> Any:
        return json.loads(self.files[name])


def run_step(
    service: Service,
    payload: Mapping[str, Any] | None = None,
    input: bytes = b"",
    *,
    prior: Prior | None = None,
    step_type: str | None = None,
    cancel: bool = False,
    **members: Any,
) -> StepRun:
    """Run the service's handler on a directive with this payload and input, and see what it says.

    `step_type` is needed where the service has several. With `cancel` the job is cancelled when
    the handler has begun, before its first line: a plain `def` meets that at its next look at the
    context, an `async def` where it waits next. Further `members` of the directive go by their
    names on the wire, as `attempt_no=2`. In an `async def` test use `arun_step`.
    """
    work = arun_step(
        service, payload, input, prior=prior, step_type=step_type, cancel=cancel, **members
    )
    return asyncio.run(work)


async def arun_step(
    service: Service,
    payload: Mapping[str, Any] | None = None,
    input: bytes = b"",
    *,
    prior: Prior | None = None,
    step_type: str | None = None,
    cancel: bool = False,
    **members: Any,
) -> StepRun:
    clock = FakeClock()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="lucius-")))
        (folder / "input").write_bytes(input)
        members["step_type"] = step_type or _only_step_type(service)
        members["payload"] = dict(payload or {})
        members["prior_artifacts"] = _write_prior(folder, prior or {})
        directive = make_directive(clock.now(), folder.as_uri(), **members)
        watch, replies = Watch(service, cancel=cancel), RecordedReplies()
        await _run(watch.service, directive, replies, folder, clock)
        return _outcome(folder, replies, watch.progress)


async def _run(
    service: Service,
    directive: Directive,
    replies: RecordedReplies,
    folder: Path,
    clock: FakeClock,
) -> None:
    name = service.name or "service"
    bus = MemoryBus(clock.now)
    bus.apply(lane_topology([name]))
    storages = Storages(LocalStorage(folder, readable=(folder,), writable=(folder,)))
    store, limits = MemoryStore(), Limits(concurrency=1, lanes=(directive.lane,))
    runtime = ServiceRuntime(service, name, bus, store, replies, storages, limits, clock=clock)
    topic = directive_topic(directive.lane)
    await bus.publish(topic, [directive_message(directive, name)])
    await runtime.start()
    try:
        async with asyncio.timeout(_DEADLINE):
            await replies.has_result.wait()
    finally:
        await runtime.stop(_GRACE)
        storages.close()


def _only_step_type(service: Service) -> str:
    names = sorted(service.handlers)
    if len(names) != 1:
        raise ValueError(f"name a step_type: the service has {', '.join(names) or 'none'}")
    return names[0]


def _write_prior(folder: Path, prior: Prior) -> dict[str, list[dict[str, Any]]]:
    return {
        step_type: [
            _write_one(folder / "prior" / step_type, name, data) for name, data in of.items()
        ]
        for step_type, of in prior.items()
    }


def _write_one(folder: Path, name: str, data: bytes) -> dict[str, Any]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    return {"name": name, "uri": path.as_uri(), "sha256": digest, "size": len(data)}


def _outcome(folder: Path, replies: RecordedReplies, progress: Progress | None) -> StepRun:
    (result,) = replies.results
    storage = LocalStorage(folder)
    files = {}
    for artifact in result.artifacts:
        with storage.open_read(artifact.uri) as stream:
            files[artifact.name] = stream.read()
    output = folder / "output"
    published = output.read_bytes() if output.exists() else None
    return StepRun(result, files, published, progress)
