"""The composition root: settings in, a control plane out."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, fields
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp

from lucius_orchestrator.api.app import create_app, create_callback_app, create_health_app
from lucius_orchestrator.api.loopback import LoopbackOnly
from lucius_orchestrator.api.parts import ApiLimits, ApiParts, CallbackParts, HealthParts
from lucius_orchestrator.bootstrap.artifact_parts import open_artifact_parts
from lucius_orchestrator.bootstrap.artifacts import why_off
from lucius_orchestrator.bootstrap.authentication import authenticator_of, callback_tokens_of
from lucius_orchestrator.bootstrap.bus import OpenBus
from lucius_orchestrator.bootstrap.checks import Readiness
from lucius_orchestrator.bootstrap.dev_server import ServerPlace
from lucius_orchestrator.bootstrap.drivers import drivers_of, watchers_of
from lucius_orchestrator.bootstrap.invoking import with_internal_api
from lucius_orchestrator.bootstrap.parts import Part
from lucius_orchestrator.bootstrap.places import plan_settings_of
from lucius_orchestrator.bootstrap.process import Process, open_process
from lucius_orchestrator.bootstrap.roles import ServeRole
from lucius_orchestrator.bootstrap.webhooks import open_webhooks, policy_of
from lucius_orchestrator.engine.steering import Steering
from lucius_orchestrator.settings import Settings


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """`parts` run beside the app and are stopped after it, in their order; when `stopping` is set
    the app ends streams that would go on. The bus, and a Temporal server of its own, are closed
    after all of them."""

    app: ASGIApp
    parts: Sequence[Part]
    stopping: asyncio.Event
    bus: OpenBus | None
    temporal: ServerPlace | None


@asynccontextmanager
async def control_plane(
    settings: Settings, address: str, role: ServeRole = ServeRole.ALL
) -> AsyncIterator[ControlPlane]:
    """What the role needs of all that the settings name, opened and not yet running. `address` is
    where the process will be found. A worker, which has no ledger, is put together elsewhere."""
    async with AsyncExitStack() as opened:
        process = await open_process(settings, address, role, opened)
        parts = [*drivers_of(process), *watchers_of(process)]
        if role.keeps_house:
            ledger, world = process.engine.ledger, process.engine.world
            parts += await opened.enter_async_context(
                open_webhooks(settings, ledger, process.registry, world, process.observation)
            )
            parts += await opened.enter_async_context(open_artifact_parts(process))
        app, served = _app(process)
        yield ControlPlane(
            process.observation.observed(served if settings.auth else LoopbackOnly(served)),
            parts,
            app.state.stopping,
            bus=None if process.bus is None else process.bus.opened,
            temporal=None if process.temporal is None else process.temporal.place,
        )


def _app(process: Process) -> tuple[FastAPI, ASGIApp]:
    """The application, and what is served: an invoker has the internal API beside it."""
    health = _health_parts(process)
    if process.role.serves_api:
        app = create_app(_api_parts(process, health))
    elif process.desk is not None:
        app = create_callback_app(_callback_parts(process, health))
    else:
        app = create_health_app(health)
    if process.desk is None:
        return app, app
    return app, with_internal_api(app, process.desk, process.settings, health)


def _health_parts(process: Process) -> HealthParts:
    settings, world = process.settings, process.engine.world
    return HealthParts(
        authenticator=authenticator_of(settings, world),
        readiness=_readiness(process),
        metrics=process.observation.metrics.render,
        limits=ApiLimits(settings.max_body_bytes, settings.request_timeout),
        entropy=world.entropy,
    )


def _callback_parts(process: Process, health: HealthParts) -> CallbackParts:
    tokens = callback_tokens_of(process.settings, process.engine.world)
    return CallbackParts(engine=process.engine, tokens=tokens, **_members(health))


def _api_parts(process: Process, health: HealthParts) -> ApiParts:
    settings = process.settings
    return ApiParts(
        **_members(_callback_parts(process, health)),
        registry=process.registry,
        plan=plan_settings_of(settings),
        refs=settings.refs,
        check_webhooks=policy_of(settings).check,
        services=process.services,
        steering=Steering(process.engine, process.commander),
        artifacts=process.artifacts,
        artifacts_off=why_off(settings),
    )


def _members(parts: HealthParts) -> dict[str, Any]:
    return {field.name: getattr(parts, field.name) for field in fields(parts)}


def _readiness(process: Process) -> Readiness:
    bus, temporal = process.bus, process.temporal
    return Readiness(
        process.engine.ledger,
        process.source.registry,
        None if bus is None else bus.opened.bus,
        None if bus is None else bus.keeper.check,
        None if temporal is None else temporal.workflows.check,
        process.artifacts,
    )
