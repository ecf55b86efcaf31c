"""The composition root: settings in, a control plane out."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from fastapi import FastAPI
from starlette.types import ASGIApp

from lucius_orchestrator.api.app import create_app, create_health_app
from lucius_orchestrator.api.loopback import LoopbackOnly
from lucius_orchestrator.api.parts import ApiLimits, ApiParts, HealthParts
from lucius_orchestrator.bootstrap.authentication import authenticator_of, callback_tokens_of
from lucius_orchestrator.bootstrap.bus import OpenBus, open_bus
from lucius_orchestrator.bootstrap.callbacks import CallbackAddress
from lucius_orchestrator.bootstrap.checks import Readiness
from lucius_orchestrator.bootstrap.observation import Observation
from lucius_orchestrator.bootstrap.parts import After, Part, real_world
from lucius_orchestrator.bootstrap.protocol_source import OpenRegistry, open_registry
from lucius_orchestrator.bootstrap.registry import LimitedRegistry, RegistryWatch
from lucius_orchestrator.bootstrap.roles import ServeRole
from lucius_orchestrator.bootstrap.stores import open_ledger
from lucius_orchestrator.bootstrap.topology import topology_of
from lucius_orchestrator.bootstrap.topology_keeper import TopologyKeeper
from lucius_orchestrator.bootstrap.webhooks import open_webhooks, policy_of
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.engine.planning import PlanSettings
from lucius_orchestrator.outbox.dispatcher import Dispatcher
from lucius_orchestrator.ports.registry import Snapshot
from lucius_orchestrator.replies.consumer import ReplyConsumer
from lucius_orchestrator.settings import Settings
from lucius_orchestrator.sweepers.runner import SweeperRunner, all_sweepers
from lucius_orchestrator.sweepers.sweeper import SweepSettings


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """`parts` run beside the app and are stopped after it, in their order; when `stopping` is set
    the app ends streams that would go on. The bus is closed after all of them."""

    engine: LedgerEngine
    bus: OpenBus | None
    app: ASGIApp
    parts: Sequence[Part]
    stopping: asyncio.Event


class _Process(NamedTuple):
    """What the parts of one process are made of."""

    settings: Settings
    role: ServeRole
    address: str
    source: OpenRegistry
    registry: LimitedRegistry
    engine: LedgerEngine
    observation: Observation


@asynccontextmanager
async def control_plane(
    settings: Settings, address: str, role: ServeRole = ServeRole.ALL
) -> AsyncIterator[ControlPlane]:
    """What the role needs of all that the settings name, opened and not yet running. `address` is
    where the process will be found."""
    world, observation = real_world(), Observation()
    async with AsyncExitStack() as opened:
        opened.push_async_callback(observation.close)
        source = await opened.enter_async_context(open_registry(settings, world.clock))
        registry = LimitedRegistry(source.registry, settings)
        ledger = await opened.enter_async_context(open_ledger(settings, world))
        engine = LedgerEngine(ledger, world, observation.telemetry)
        process = _Process(settings, role, address, source, registry, engine, observation)
        bus = await opened.enter_async_context(open_bus(settings)) if role.uses_bus else None
        keeper = None if bus is None else _keeper(process, bus)
        if keeper is not None and not settings.shares_bus:
            await keeper.bring()  # nothing can be away
        parts: list[Part] = [observation.gauges(ledger), _watch(source, keeper)]
        if bus is not None and keeper is not None:
            parts = [*_drivers(process, bus, keeper), *parts, keeper]
        if role.dispatches:
            parts += await opened.enter_async_context(
                open_webhooks(settings, ledger, world, observation)
            )
        app = _app(process, bus, keeper)
        served = observation.observed(app if settings.auth else LoopbackOnly(app))
        yield ControlPlane(engine, bus, served, parts, app.state.stopping)


def _app(process: _Process, bus: OpenBus | None, keeper: TopologyKeeper | None) -> FastAPI:
    settings, engine = process.settings, process.engine
    readiness = Readiness(
        engine.ledger,
        process.source.registry,
        None if bus is None else bus.bus,
        None if keeper is None else keeper.check,
    )
    authenticator = authenticator_of(settings, engine.world)
    limits = ApiLimits(settings.max_body_bytes, settings.request_timeout)
    metrics = process.observation.metrics.render
    if not process.role.serves_api:
        return create_health_app(
            HealthParts(
                engine=engine,
                authenticator=authenticator,
                readiness=readiness,
                metrics=metrics,
                limits=limits,
            )
        )
    return create_app(
        ApiParts(
            engine=engine,
            authenticator=authenticator,
            readiness=readiness,
            metrics=metrics,
            limits=limits,
            registry=process.registry,
            tokens=callback_tokens_of(settings, engine.world),
            plan=PlanSettings(settings.workspace_root, settings.system),
            refs=settings.refs,
            check_webhooks=policy_of(settings).check,
        )
    )


def _drivers(process: _Process, bus: OpenBus, keeper: TopologyKeeper) -> list[Part]:
    """Those that bring messages in come first, so that they are stopped first."""
    engine, settings, role = process.engine, process.settings, process.role
    parts: list[Part] = []
    if role.consumes_replies:
        parts.append(ReplyConsumer(engine, bus.bus))
    if role.dispatches:
        sweeping = SweepSettings(skew=settings.clock_skew, retention=settings.retention)
        parts.append(SweeperRunner(all_sweepers(engine, sweeping), engine.telemetry))
        dispatcher = Dispatcher(engine, bus.bus, reply_address=_reply_address(process))
        # What is published before there are subscriptions would be lost or refused for good.
        parts.append(After(keeper.settled, dispatcher))
    return parts


def _reply_address(process: _Process) -> CallbackAddress | None:
    """None: all directives are answered over the bus."""
    settings, registry = process.settings, process.registry
    base_url = settings.callback_base_url or (process.role.serves_api and process.address)
    if not base_url:
        return None
    tokens = callback_tokens_of(settings, process.engine.world)
    return CallbackAddress(base_url, tokens, lambda: registry.snapshot().defaults.job_sla)


def _keeper(process: _Process, bus: OpenBus) -> TopologyKeeper:
    wanted = topology_of(process.source.registry.snapshot())
    return TopologyKeeper(bus.topology, wanted, creates=process.role.dispatches, fresh=bus.fresh)


def _watch(source: OpenRegistry, keeper: TopologyKeeper | None) -> RegistryWatch:
    async def nobody(_: Snapshot) -> None:
        pass

    changed = nobody if keeper is None else keeper.changed
    return RegistryWatch(source.registry, changed, source.interval)
