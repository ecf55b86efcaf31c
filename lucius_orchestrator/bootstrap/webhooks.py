"""The delivery of webhooks, where the settings allow any."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from lucius_orchestrator.bootstrap.observation import Observation
from lucius_orchestrator.bootstrap.parts import Part
from lucius_orchestrator.bootstrap.stores import open_webhook_store
from lucius_orchestrator.engine.engine import World
from lucius_orchestrator.ports.ledger import Ledger
from lucius_orchestrator.ports.registry import Registry, Snapshot
from lucius_orchestrator.settings import Settings
from lucius_orchestrator.webhooks.delivery import WebhookDelivery
from lucius_orchestrator.webhooks.policy import WebhookPolicy
from lucius_orchestrator.webhooks.sender import WebhookSender
from lucius_orchestrator.webhooks.signature import WebhookKeys


def policy_of(settings: Settings) -> WebhookPolicy:
    return WebhookPolicy(settings.webhook_hosts, settings.webhook_allow_private)


def webhook_keys_of(settings: Settings, snapshot: Callable[[], Snapshot]) -> WebhookKeys | None:
    """None where nothing is signed, and so nothing sent."""
    masters = [key.reveal().encode() for key in settings.webhook_master_keys]
    shared = [key.reveal().encode() for key in settings.webhook_keys]
    if not masters and not shared:
        return None
    return WebhookKeys(masters, lambda tenant: snapshot().tenant(tenant).webhook_keys, shared)


@asynccontextmanager
async def open_webhooks(
    settings: Settings, ledger: Ledger, registry: Registry, world: World, observation: Observation
) -> AsyncIterator[Sequence[Part]]:
    keys = webhook_keys_of(settings, registry.snapshot)
    if keys is None:
        yield ()
        return
    sender = WebhookSender(keys, policy_of(settings), world.clock, ca_file=settings.webhook_ca_file)
    async with open_webhook_store(settings, ledger) as store, sender:
        yield (WebhookDelivery(store, sender, metrics=observation.metrics),)
