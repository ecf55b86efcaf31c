"""The delivery of webhooks, where the settings allow any."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from lucius_orchestrator.bootstrap.observation import Observation
from lucius_orchestrator.bootstrap.parts import Part
from lucius_orchestrator.bootstrap.stores import open_webhook_store
from lucius_orchestrator.engine.engine import World
from lucius_orchestrator.ports.ledger import Ledger
from lucius_orchestrator.settings import Settings
from lucius_orchestrator.webhooks.delivery import WebhookDelivery
from lucius_orchestrator.webhooks.policy import WebhookPolicy
from lucius_orchestrator.webhooks.sender import WebhookSender


def policy_of(settings: Settings) -> WebhookPolicy:
    return WebhookPolicy(settings.webhook_hosts, settings.webhook_allow_private)


@asynccontextmanager
async def open_webhooks(
    settings: Settings, ledger: Ledger, world: World, observation: Observation
) -> AsyncIterator[Sequence[Part]]:
    if not settings.webhook_keys:
        yield ()
        return
    keys = [key.reveal().encode() for key in settings.webhook_keys]
    sender = WebhookSender(keys, policy_of(settings), world.clock, ca_file=settings.webhook_ca_file)
    async with open_webhook_store(settings, ledger) as store, sender:
        yield (WebhookDelivery(store, sender, metrics=observation.metrics),)
