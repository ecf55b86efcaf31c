"""Delivers the webhooks that commits of the ledger have enqueued.

It is the outbox's dispatcher with a sender as its publisher. Many webhooks are under way at once,
in small batches: a receiver that does not answer holds up its own batches until the sender gives up
on it, and then waits for its next try apart from all others.
"""

from collections.abc import Sequence
from datetime import timedelta

from lucius_orchestrator.ports.webhooks import webhook_of
from lucius_orchestrator.webhooks.sender import WebhookSender
from lucius_outbox.dispatcher import Dispatcher, DispatchSettings
from lucius_outbox.message import Claimed, Failure
from lucius_outbox.publishing import one_by_one
from lucius_outbox.store import Store
from lucius_outbox.telemetry import Metrics

SETTINGS = DispatchSettings(
    batch_size=8,
    concurrency=16,
    lease=timedelta(seconds=60),
    poll_interval=timedelta(seconds=1),
    publish_timeout=timedelta(seconds=60),
    retention=None,  # delivered rows are deleted by the ledger's `prune`
)


class WebhookDelivery:
    """Runs by `run()` until `stop()`, which returns when all that was claimed is settled."""

    def __init__(
        self,
        store: Store,
        sender: WebhookSender,
        settings: DispatchSettings = SETTINGS,
        metrics: Metrics | None = None,
    ) -> None:
        self._sender = sender
        self._publish = one_by_one(self._send)
        self._dispatcher = Dispatcher(store, self.publish, settings, metrics)

    async def run(self) -> None:
        await self._dispatcher.run()

    async def stop(self) -> None:
        await self._dispatcher.stop()

    def wake(self) -> None:
        """Look for webhooks now. Call it in the event loop."""
        self._dispatcher.wake()

    async def publish(self, claims: Sequence[Claimed]) -> list[Failure]:
        """Send them side by side; returns those that were not delivered."""
        return list(await self._publish(claims) or ())

    async def _send(self, claimed: Claimed) -> None:
        await self._sender.send(webhook_of(claimed))
