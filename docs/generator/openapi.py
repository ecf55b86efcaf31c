"""The OpenAPI document of the API, as the application itself serves it."""

from collections.abc import Sequence
from datetime import UTC, datetime

from docs.generator.schemas import as_text
from lucius_contract.refs import RefPolicy
from lucius_orchestrator.adapters.ledger.memory import MemoryLedger
from lucius_orchestrator.adapters.registry import YamlRegistry
from lucius_orchestrator.api import ApiParts, Check, create_app
from lucius_orchestrator.engine.backlogs import Backlogs
from lucius_orchestrator.engine.engine import LedgerEngine, World
from lucius_orchestrator.engine.planning import PlanSettings
from lucius_orchestrator.engine.services import Services
from lucius_orchestrator.security.authentication import NoAuthentication
from lucius_orchestrator.security.callback_tokens import KEY_BYTES, CallbackTokens


def openapi_document() -> str:
    return as_text(create_app(_parts()).openapi())


def _parts() -> ApiParts:
    """Enough for an application that describes itself and serves nobody."""
    world = World(_clock, bytes, lambda: 0.0)
    engine = LedgerEngine(MemoryLedger(clock=_clock), world)
    registry = YamlRegistry(None)
    return ApiParts(
        engine=engine,
        registry=registry,
        authenticator=NoAuthentication(),
        tokens=CallbackTokens([bytes(KEY_BYTES)], _clock),
        plan=PlanSettings(""),
        refs=RefPolicy(),
        check_webhooks=lambda _: None,
        services=Services(engine.traffic, Backlogs(engine.ledger), registry.snapshot, _clock),
        readiness=_ready,
        metrics=bytes,
    )


def _clock() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


async def _ready() -> Sequence[Check]:
    return ()
