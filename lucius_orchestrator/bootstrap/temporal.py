"""The way to Temporal, and the parts of a process that go it.

The client's library is an extra: it is imported when a process needs it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from lucius_orchestrator.bootstrap.dev_server import ServerPlace, dev_server
from lucius_orchestrator.bootstrap.parts import Part
from lucius_orchestrator.bootstrap.roles import ServeRole
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.ports.invoker import Invoker
from lucius_orchestrator.settings import Settings
from lucius_orchestrator.settings.temporal import DEFAULT_ADDRESS
from lucius_orchestrator.temporal.signals import WorkflowSignals
from lucius_orchestrator.temporal.starts import WorkflowStarts

if TYPE_CHECKING:
    from lucius_orchestrator.temporal.client import TemporalWorkflows
    from lucius_orchestrator.temporal.connection import TemporalOptions


class OpenTemporal(NamedTuple):
    """Nothing is connected before it is needed: a server that is away keeps nobody from
    starting."""

    place: ServerPlace
    options: "TemporalOptions"
    workflows: "TemporalWorkflows"


@asynccontextmanager
async def open_temporal(settings: Settings, role: ServeRole) -> AsyncIterator[OpenTemporal]:
    """The server that the settings name; without one, the whole in one process has its own."""
    import_module("temporalio")  # where it is missing nothing is started in vain
    if role is ServeRole.ALL and settings.temporal_address is None:
        async with dev_server(settings) as place:
            yield _opened(settings, place)
    else:
        yield _opened(settings, ServerPlace(settings.temporal_address or DEFAULT_ADDRESS, None))


def _opened(settings: Settings, place: ServerPlace) -> OpenTemporal:
    from lucius_orchestrator.temporal.client import TemporalWorkflows, WorkflowSettings

    options = options_of(settings, place.address)
    workflows = WorkflowSettings(
        skew=settings.clock_skew, execution_timeout=settings.temporal_execution_timeout
    )
    return OpenTemporal(place, options, TemporalWorkflows(options, workflows))


def options_of(settings: Settings, address: str) -> "TemporalOptions":
    from lucius_orchestrator.temporal.connection import TemporalOptions

    key = settings.temporal_api_key
    return TemporalOptions(
        address=address,
        namespace=settings.temporal_namespace,
        task_queue=settings.temporal_task_queue,
        tls=settings.temporal_tls,
        api_key=None if key is None else key.reveal(),
    )


def worker_of(settings: Settings, temporal: OpenTemporal, invoker: Invoker) -> Part:
    from lucius_orchestrator.temporal.worker import TemporalWorker, WorkerSettings

    return TemporalWorker(temporal.options, invoker, WorkerSettings(grace=settings.shutdown_grace))


def couriers_of(
    settings: Settings, role: ServeRole, engine: LedgerEngine, temporal: OpenTemporal
) -> list[Part]:
    """Those that bring OUTBOX rows to Temporal."""
    couriers: list[Part] = []
    if role.starts_workflows(settings):
        couriers.append(WorkflowStarts(engine, temporal.workflows))
    if role.invokes(settings):
        couriers.append(WorkflowSignals(engine, temporal.workflows))
    return couriers
