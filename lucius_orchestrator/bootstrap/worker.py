"""A process that runs workflows and nothing else: it has neither a ledger nor a bus."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from lucius_orchestrator.api.app import create_health_app
from lucius_orchestrator.api.loopback import LoopbackOnly
from lucius_orchestrator.api.parts import ApiLimits, HealthParts
from lucius_orchestrator.bootstrap.authentication import authenticator_of
from lucius_orchestrator.bootstrap.checks import worker_readiness
from lucius_orchestrator.bootstrap.invoking import open_invoker
from lucius_orchestrator.bootstrap.observation import Observation
from lucius_orchestrator.bootstrap.parts import real_world
from lucius_orchestrator.bootstrap.plane import ControlPlane
from lucius_orchestrator.bootstrap.roles import ServeRole
from lucius_orchestrator.bootstrap.temporal import open_temporal, worker_of
from lucius_orchestrator.settings import Settings


@asynccontextmanager
async def worker_plane(settings: Settings) -> AsyncIterator[ControlPlane]:
    world, observation = real_world(), Observation()
    async with AsyncExitStack() as opened:
        opened.push_async_callback(observation.close)
        temporal = await opened.enter_async_context(open_temporal(settings, ServeRole.WORKER))
        invoker = await opened.enter_async_context(open_invoker(settings))
        app = create_health_app(
            HealthParts(
                authenticator=authenticator_of(settings, world),
                readiness=partial(worker_readiness, temporal.workflows.check, invoker.check),
                metrics=observation.metrics.render,
                limits=ApiLimits(settings.max_body_bytes, settings.request_timeout),
                entropy=world.entropy,
            )
        )
        yield ControlPlane(
            observation.observed(app if settings.auth else LoopbackOnly(app)),
            [worker_of(settings, temporal, invoker)],
            app.state.stopping,
            bus=None,
            temporal=temporal.place,
        )
