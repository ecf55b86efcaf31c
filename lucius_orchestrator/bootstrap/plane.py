"""The composition root: settings in, a control plane out."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from starlette.types import ASGIApp

from lucius_orchestrator.adapters.bus.memory import MemoryBus
from lucius_orchestrator.adapters.bus.topology import lane_topology
from lucius_orchestrator.adapters.registry.yaml_registry import YamlRegistry
from lucius_orchestrator.api.app import create_app
from lucius_orchestrator.api.loopback import LoopbackOnly
from lucius_orchestrator.api.parts import ApiLimits, ApiParts
from lucius_orchestrator.bootstrap.authentication import authenticator_of, callback_tokens_of
from lucius_orchestrator.bootstrap.callbacks import CallbackAddress
from lucius_orchestrator.bootstrap.checks import Readiness
from lucius_orchestrator.bootstrap.observation import Observation
from lucius_orchestrator.bootstrap.parts import Part, real_world
from lucius_orchestrator.bootstrap.registry import LimitedRegistry, RegistryWatch
from lucius_orchestrator.bootstrap.stores import open_ledger
from lucius_orchestrator.bootstrap.webhooks import open_webhooks, policy_of
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.engine.planning import PlanSettings
from lucius_orchestrator.outbox.dispatcher import Dispatcher
from lucius_orchestrator.ports.bus import Bus
from lucius_orchestrator.ports.registry import Snapshot
from lucius_orchestrator.replies.consumer import ReplyConsumer
from lucius_orchestrator.security.callback_tokens import CallbackTokens
from lucius_orchestrator.settings import Settings
from lucius_orchestrator.sweepers.runner import SweeperRunner, all_sweepers
from lucius_orchestrator.sweepers.sweeper import SweepSettings

_WATCH = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """`parts` run beside the app and are stopped after it, in their order; when `stopping` is set
    the app ends streams that would go on."""

    engine: LedgerEngine
    bus: MemoryBus | None
    app: ASGIApp
    parts: Sequence[Part]
    stopping: asyncio.Event


@asynccontextmanager
async def control_plane(
    settings: Settings, address: str, *, alone: bool = False
) -> AsyncIterator[ControlPlane]:
    """Everything that the settings name, opened and not yet running. `address` is where the API
    will be found; `alone`: the API without the parts that drive jobs."""
    world, observation = real_world(), Observation()
    files = YamlRegistry(settings.protocols_dir, settings.step_policy)
    files.load()
    registry, tokens = LimitedRegistry(files, settings), callback_tokens_of(settings, world)
    async with AsyncExitStack() as opened:
        opened.push_async_callback(observation.close)
        ledger = await opened.enter_async_context(open_ledger(settings, world))
        engine = LedgerEngine(ledger, world, observation.telemetry)
        bus = None if alone else MemoryBus(world.clock)
        parts: list[Part] = [observation.gauges(ledger), _watch(files, bus)]
        if bus is not None:
            base_url = settings.callback_base_url or address
            reply_address = _reply_address(base_url, tokens, registry)
            parts = [*_drivers(engine, bus, settings, reply_address), *parts]
            parts += await opened.enter_async_context(open_webhooks(settings, world, observation))
        api = ApiParts(
            engine=engine,
            registry=registry,
            authenticator=authenticator_of(settings, world),
            tokens=tokens,
            plan=PlanSettings(settings.workspace_root, settings.system),
            refs=settings.refs,
            check_webhooks=policy_of(settings).check,
            readiness=Readiness(ledger, bus, files),
            metrics=observation.metrics.render,
            limits=ApiLimits(settings.max_body_bytes, settings.request_timeout),
        )
        app = create_app(api)
        served = observation.observed(app if settings.auth else LoopbackOnly(app))
        yield ControlPlane(engine, bus, served, parts, app.state.stopping)


def _drivers(
    engine: LedgerEngine, bus: Bus, settings: Settings, reply_address: CallbackAddress
) -> list[Part]:
    """Those that bring messages in come first, so that they are stopped first."""
    sweeping = SweepSettings(skew=settings.clock_skew, retention=settings.retention)
    return [
        ReplyConsumer(engine, bus),
        SweeperRunner(all_sweepers(engine, sweeping), engine.telemetry),
        Dispatcher(engine, bus, reply_address=reply_address),
    ]


def _reply_address(
    base_url: str, tokens: CallbackTokens, registry: LimitedRegistry
) -> CallbackAddress:
    return CallbackAddress(base_url, tokens, lambda: registry.snapshot().defaults.job_sla)


def _watch(files: YamlRegistry, bus: MemoryBus | None) -> RegistryWatch:
    """A protocol may name services that the bus does not know yet."""

    def changed(snapshot: Snapshot) -> None:
        if bus is not None:
            services = {
                step.service for protocol in snapshot.protocols.values() for step in protocol.steps
            }
            bus.apply(lane_topology(sorted(services)))

    changed(files.snapshot())
    return RegistryWatch(files, changed, _WATCH)
