"""Writes jobs on behalf of workflows and services."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from socket import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from lucius_orchestrator.api import ApiLimits
from lucius_orchestrator.api.app import create_health_app
from lucius_orchestrator.api.internal import InternalApi, InternalCredential, WithInternalApi
from lucius_orchestrator.api.parts import HealthParts
from lucius_orchestrator.bootstrap import Part
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.engine.traffic_reports import ReportSettings, TrafficReporter
from lucius_orchestrator.invoker.desk import DeskSettings, InvokerDesk
from lucius_orchestrator.outbox.dispatcher import Dispatcher, DispatcherSettings
from lucius_orchestrator.outbox.publishing import DirectivePublisher
from lucius_orchestrator.replies.consumer import ConsumerSettings, ReplyConsumer
from lucius_orchestrator.security.authentication import NoAuthentication
from lucius_orchestrator.sweepers.index_repair import IndexRepair
from lucius_orchestrator.sweepers.runner import Runnable, SweeperRunner
from lucius_orchestrator.sweepers.sweeper import SweepSettings
from lucius_orchestrator.temporal.signals import WorkflowSignals
from lucius_orchestrator.temporal.watch import WorkflowWatch
from tests.crash.roles.place import (
    COURIERS,
    KEY,
    NO_SKEW,
    QUICK,
    Place,
    run,
    shared_listener,
)
from tests.crash.shared_bus import SharedBus

_PUBLISH_TIMEOUT = timedelta(seconds=1)
_CLAIM = timedelta(seconds=2)
_DISPATCHER = DispatcherSettings(
    lease=_CLAIM, publish_timeout=_PUBLISH_TIMEOUT, poll_interval=QUICK
)
_REPORTS = ReportSettings(QUICK, renewal=2 * QUICK, life=10 * QUICK)
_REPLIES = ConsumerSettings(wait=timedelta(seconds=1), pause=QUICK)


class Served:
    """The internal API, as a part."""

    def __init__(self, app: ASGIApp, listener: socket) -> None:
        config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none")
        self._server = uvicorn.Server(config)
        self._listener = listener

    async def run(self) -> None:
        await self._server.serve([self._listener])

    async def stop(self) -> None:
        self._server.should_exit = True


@asynccontextmanager
async def parts(place: Place) -> AsyncIterator[Sequence[Part]]:
    async with place.engine() as engine:
        bus, workflows = await SharedBus.connect(place.bus), place.workflows()
        desk_settings = DeskSettings(claim=_CLAIM, recovery_grace=QUICK)
        desk = InvokerDesk(engine, DirectivePublisher(engine, bus, _PUBLISH_TIMEOUT), desk_settings)
        settings = SweepSettings(skew=NO_SKEW)
        with shared_listener(int(place.invoker_port)) as listener:
            yield [
                TrafficReporter(engine, dispatches=True, settings=_REPORTS),
                Dispatcher(engine, bus, _DISPATCHER),
                ReplyConsumer(engine, bus, _REPLIES),
                WorkflowSignals(engine, workflows, COURIERS),
                _sweeping(
                    engine,
                    [WorkflowWatch(engine, workflows, settings), IndexRepair(engine, settings)],
                ),
                Served(_app(desk), listener),
            ]


def _sweeping(engine: LedgerEngine, sweepers: Sequence[Runnable]) -> SweeperRunner:
    intervals = {sweeper.name: QUICK for sweeper in sweepers}
    return SweeperRunner(sweepers, engine.telemetry, recovery_grace=QUICK, intervals=intervals)


def _app(desk: InvokerDesk) -> ASGIApp:
    parts = HealthParts(authenticator=NoAuthentication(), readiness=_nothing, metrics=lambda: b"")
    internal = InternalApi(desk, InternalCredential([KEY]), ApiLimits().retry_after)
    return WithInternalApi(create_health_app(parts), internal, parts)


async def _nothing() -> list[Any]:
    return []


if __name__ == "__main__":
    run(parts)
