"""Publishes directives that were committed."""

from dataclasses import dataclass
from datetime import timedelta

from lucius_bus.port import Bus
from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.outbox.claiming import ClaimLoop, ClaimSettings
from lucius_orchestrator.outbox.publishing import ArtifactToken, DirectivePublisher, ReplyAddress


@dataclass(frozen=True, slots=True)
class DispatcherSettings(ClaimSettings):
    """A publish ends before the lease does, so that no other dispatcher publishes the same beside
    it."""

    publish_timeout: timedelta = timedelta(seconds=20)

    def __post_init__(self) -> None:
        ClaimSettings.__post_init__(self)
        if not timedelta(0) < self.publish_timeout < self.lease:
            raise ValueError("publish_timeout must be above zero and below the lease")


class Dispatcher(ClaimLoop):
    """Runs by `run()` until `stop()`, which returns when all that was claimed is settled."""

    def __init__(
        self,
        engine: LedgerEngine,
        bus: Bus,
        settings: DispatcherSettings | None = None,
        reply_address: ReplyAddress | None = None,
        artifact_token: ArtifactToken | None = None,
    ) -> None:
        settings = settings or DispatcherSettings()
        publisher = DirectivePublisher(
            engine, bus, settings.publish_timeout, reply_address, artifact_token
        )
        super().__init__(engine, OutboxKind.DIRECTIVE, publisher.deliver, settings, leads=True)
