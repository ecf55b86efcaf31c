"""The parts that drive jobs, and those that watch over what they need, by the role of a process."""

from collections.abc import Iterator

from lucius_orchestrator.bootstrap.parts import After, Part
from lucius_orchestrator.bootstrap.process import Process, artifact_token, reply_address
from lucius_orchestrator.bootstrap.registry import RegistryWatch
from lucius_orchestrator.bootstrap.temporal import couriers_of, worker_of
from lucius_orchestrator.engine.traffic_reports import TrafficReporter
from lucius_orchestrator.invoker.local import LocalInvoker
from lucius_orchestrator.outbox.dispatcher import Dispatcher, DispatcherSettings
from lucius_orchestrator.ports.registry import Snapshot
from lucius_orchestrator.replies.consumer import ReplyConsumer
from lucius_orchestrator.sweepers.index_repair import IndexRepair
from lucius_orchestrator.sweepers.retention import Retention
from lucius_orchestrator.sweepers.runner import Runnable, SweeperRunner, all_sweepers
from lucius_orchestrator.sweepers.sweeper import SweepSettings
from lucius_orchestrator.temporal.watch import WorkflowWatch


def drivers_of(process: Process) -> Iterator[Part]:
    """Those that bring something in come first, so that they are stopped first."""
    settings, role, engine = process.settings, process.role, process.engine
    temporal = process.temporal
    if temporal is not None and process.desk is not None and role.works(settings):
        yield worker_of(settings, temporal, LocalInvoker(process.desk))
    if process.bus is not None and role.consumes_replies:
        yield ReplyConsumer(engine, process.bus.opened.bus)
    if sweepers := list(_sweepers(process)):
        yield SweeperRunner(sweepers, engine.telemetry)
    if process.bus is not None and role.runs_dispatcher(settings):
        bus = process.bus.opened.bus
        dispatcher = Dispatcher(
            engine,
            bus,
            DispatcherSettings(burst_share=settings.burst_share),
            reply_address=reply_address(process),
            artifact_token=artifact_token(process),
            weight=lambda tenant_id: process.registry.snapshot().tenant(tenant_id).weight,
        )
        # What is published before there are subscriptions would be lost or refused for good.
        yield After(process.bus.keeper.settled, dispatcher)
    if temporal is not None:
        yield from couriers_of(settings, role, engine, temporal)


def watchers_of(process: Process) -> Iterator[Part]:
    """Those that drivers rely on: they begin before them, and are stopped after them."""
    source = process.source
    dispatches = process.role.runs_dispatcher(process.settings)
    yield TrafficReporter(process.engine, dispatches=dispatches)
    yield process.observation.gauges(process.engine.ledger)
    yield process.observation.service_gauges(process.services)
    if process.bus is None:
        yield RegistryWatch(source.registry, _nobody, source.interval)
    else:
        keeper = process.bus.keeper
        yield RegistryWatch(source.registry, keeper.changed, source.interval)
        yield keeper


def _sweepers(process: Process) -> Iterator[Runnable]:
    settings, role, engine = process.settings, process.role, process.engine
    sweeping = SweepSettings(skew=settings.clock_skew, retention=settings.retention)
    if role.dispatches:
        yield from all_sweepers(engine, sweeping)
    elif role.invokes(settings):
        yield IndexRepair(engine, sweeping)
        yield Retention(engine, sweeping)
    if process.temporal is not None and role.invokes(settings):
        yield WorkflowWatch(engine, process.temporal.workflows, sweeping)


async def _nobody(_: Snapshot) -> None:
    pass
