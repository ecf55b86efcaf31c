"""The invoker of a deployment: the desk where this process is one, the way to it elsewhere."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from starlette.types import ASGIApp

from lucius_bus.port import Bus
from lucius_orchestrator.api.internal import InternalApi, InternalCredential, WithInternalApi
from lucius_orchestrator.api.parts import HealthParts
from lucius_orchestrator.bootstrap.authentication import invoker_keys_of
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.invoker.client import HttpInvoker
from lucius_orchestrator.invoker.desk import InvokerDesk
from lucius_orchestrator.outbox.publishing import ArtifactToken, DirectivePublisher, ReplyAddress
from lucius_orchestrator.ports.ledger import Claim
from lucius_orchestrator.settings import Settings

_PUBLISH_TIMEOUT = timedelta(seconds=5)
"""All tries of a publish end before the one who asked for it gives up."""


class SettledPublisher(DirectivePublisher):
    """What is published before there are subscriptions would be lost or refused for good; until
    then it waits."""

    def __init__(
        self,
        engine: LedgerEngine,
        bus: Bus,
        reply_address: ReplyAddress | None,
        settled: asyncio.Event,
        artifact_token: ArtifactToken | None = None,
    ) -> None:
        super().__init__(engine, bus, _PUBLISH_TIMEOUT, reply_address, artifact_token)
        self._ledger = engine.ledger
        self._settled = settled

    async def deliver(self, claims: Sequence[Claim]) -> None:
        if self._settled.is_set():
            await super().deliver(claims)
        else:
            await self._ledger.release(claims)


def with_internal_api(
    app: ASGIApp, desk: InvokerDesk, settings: Settings, parts: HealthParts
) -> WithInternalApi:
    credential = InternalCredential(invoker_keys_of(settings))
    return WithInternalApi(app, InternalApi(desk, credential, parts.limits.retry_after), parts)


@asynccontextmanager
async def open_invoker(settings: Settings) -> AsyncIterator[HttpInvoker]:
    """The one that the settings name."""
    assert settings.invoker_url is not None, "the role was checked"
    async with HttpInvoker(settings.invoker_url, invoker_keys_of(settings)[0]) as invoker:
        yield invoker
