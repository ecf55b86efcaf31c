"""What the parts of one process are made of, opened as its role needs it."""

from contextlib import AsyncExitStack
from typing import NamedTuple

from lucius_artifacts.artifacts import Artifacts
from lucius_orchestrator.adapters.artifacts import ArtifactInputs
from lucius_orchestrator.bootstrap.artifacts import open_artifacts
from lucius_orchestrator.bootstrap.authentication import callback_tokens_of
from lucius_orchestrator.bootstrap.bus import OpenBus, open_bus
from lucius_orchestrator.bootstrap.callbacks import CallbackAddress, ProducerProof
from lucius_orchestrator.bootstrap.invoking import SettledPublisher, open_invoker
from lucius_orchestrator.bootstrap.observation import Observation
from lucius_orchestrator.bootstrap.parts import real_world
from lucius_orchestrator.bootstrap.protocol_source import OpenRegistry, open_registry
from lucius_orchestrator.bootstrap.registry import LimitedRegistry
from lucius_orchestrator.bootstrap.roles import ServeRole
from lucius_orchestrator.bootstrap.stores import open_ledger
from lucius_orchestrator.bootstrap.temporal import OpenTemporal, open_temporal
from lucius_orchestrator.bootstrap.topology import topology_of
from lucius_orchestrator.bootstrap.topology_keeper import TopologyKeeper
from lucius_orchestrator.engine.backlogs import Backlogs, PendingLimit
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.engine.services import Services
from lucius_orchestrator.engine.traffic import Traffic
from lucius_orchestrator.invoker.desk import InvokerDesk
from lucius_orchestrator.invoker.local import LocalInvoker
from lucius_orchestrator.ports.invoker import Commander
from lucius_orchestrator.settings import Settings


class BusParts(NamedTuple):
    opened: OpenBus
    keeper: TopologyKeeper


class Process(NamedTuple):
    """An invoker has a desk; who can tell jobs what to do that Temporal drives has a commander."""

    settings: Settings
    role: ServeRole
    address: str
    source: OpenRegistry
    registry: LimitedRegistry
    engine: LedgerEngine
    services: Services
    observation: Observation
    bus: BusParts | None = None
    temporal: OpenTemporal | None = None
    artifacts: Artifacts | None = None
    desk: InvokerDesk | None = None
    commander: Commander | None = None


async def open_process(
    settings: Settings, address: str, role: ServeRole, opened: AsyncExitStack
) -> Process:
    world, observation = real_world(), Observation()
    opened.push_async_callback(observation.close)
    source = await opened.enter_async_context(open_registry(settings, world.clock))
    registry = LimitedRegistry(source.registry, settings)
    ledger = await opened.enter_async_context(open_ledger(settings, world))
    artifacts = None
    if role.serves_api or role.keeps_house:
        opening = open_artifacts(settings, world, ledger, address, observation.metrics)
        artifacts = await opened.enter_async_context(opening)
    inputs = None if artifacts is None else ArtifactInputs(artifacts.reading)
    traffic = Traffic(world.clock, settings.dispatch_window, settings.dispatch_window_per_lane)
    backlogs = Backlogs(ledger)
    opened.push_async_callback(backlogs.close)
    limit = PendingLimit(backlogs, traffic.rate, settings.max_pending_per_lane)
    engine = LedgerEngine(
        ledger, world, observation.telemetry, inputs=inputs, traffic=traffic, pending_limit=limit
    )
    services = Services(traffic, backlogs, registry.snapshot, world.clock)
    process = Process(settings, role, address, source, registry, engine, services, observation)
    process = process._replace(artifacts=artifacts)
    if role.uses_bus:
        process = process._replace(bus=await _bus(process, opened))
    if role.uses_temporal(settings):
        temporal = await opened.enter_async_context(open_temporal(settings, role))
        process = process._replace(temporal=temporal)
    if role.invokes(settings):
        desk = _desk(process)
        return process._replace(desk=desk, commander=LocalInvoker(desk))
    if role.serves_api and settings.invoker_url is not None:
        invoker = await opened.enter_async_context(open_invoker(settings))
        return process._replace(commander=invoker)
    return process


def reply_address(process: Process) -> CallbackAddress | None:
    """None: all directives are answered over the bus."""
    settings, registry, role = process.settings, process.registry, process.role
    takes_callbacks = role.serves_api or role is ServeRole.INVOKER
    base_url = settings.callback_base_url or (takes_callbacks and process.address)
    if not base_url:
        return None
    tokens = callback_tokens_of(settings, process.engine.world)
    return CallbackAddress(base_url, tokens, lambda: registry.snapshot().defaults.job_sla)


def artifact_token(process: Process) -> ProducerProof | None:
    """None where artifacts are off."""
    if not process.settings.artifacts.is_on:
        return None
    tokens = callback_tokens_of(process.settings, process.engine.world)
    return ProducerProof(tokens, lambda: process.registry.snapshot().defaults.job_sla)


async def _bus(process: Process, opened: AsyncExitStack) -> BusParts:
    bus = await opened.enter_async_context(open_bus(process.settings))
    events_topic = process.settings.artifacts.events_topic
    wanted = topology_of(process.source.registry.snapshot(), events_topic)
    keeper = TopologyKeeper(
        bus.topology,
        wanted,
        creates=process.role.keeps_house,
        events_topic=events_topic,
        fresh=bus.fresh,
    )
    if not process.settings.shares_bus:
        await keeper.bring()  # nothing can be away
    return BusParts(bus, keeper)


def _desk(process: Process) -> InvokerDesk:
    assert process.bus is not None, "an invoker has one"
    bus, settled = process.bus.opened.bus, process.bus.keeper.settled
    publisher = SettledPublisher(
        process.engine, bus, reply_address(process), settled, artifact_token(process)
    )
    return InvokerDesk(process.engine, publisher)
