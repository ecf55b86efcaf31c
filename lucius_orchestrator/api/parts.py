"""What the API is made of; the composition root hands it over."""

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from lucius_artifacts.artifacts import Artifacts
from lucius_contract.refs import RefPolicy
from lucius_orchestrator.api.health import Check
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.engine.planning import PlanSettings
from lucius_orchestrator.engine.services import Services
from lucius_orchestrator.engine.steering import Steering
from lucius_orchestrator.ports.registry import Registry
from lucius_orchestrator.security.callback_tokens import CallbackTokens
from lucius_orchestrator.security.callers import Authenticator


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """`request_timeout` is how long a body may take to arrive and an answer to be taken;
    `retry_after` is what a client that was refused for now is told to wait. Who completes an upload
    waits for `verification_patience`, while it is verified; `object_idle` is how long the bytes of
    an object may stand still on their way in or out; `credential_interval` is how long a stream
    trusts its credential without checking it again."""

    max_body_bytes: int = 1024 * 1024
    request_timeout: timedelta = timedelta(seconds=30)
    max_page: int = 200
    stream_interval: timedelta = timedelta(seconds=0.5)
    stream_keepalive: timedelta = timedelta(seconds=15)
    credential_interval: timedelta = timedelta(seconds=2)
    retry_after: timedelta = timedelta(seconds=5)
    verification_patience: timedelta = timedelta(seconds=10)
    object_idle: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthParts:
    """What every process that answers about its health needs; `metrics` answers in Prometheus
    text."""

    authenticator: Authenticator
    readiness: Callable[[], Awaitable[Sequence[Check]]]
    metrics: Callable[[], bytes]
    limits: ApiLimits = ApiLimits()
    entropy: Callable[[int], bytes] = os.urandom


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackParts(HealthParts):
    """What a process needs that services answer."""

    engine: LedgerEngine
    tokens: CallbackTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiParts(CallbackParts):
    """`check_webhooks` raises REF_FORBIDDEN with pointers `/callback_urls/N`; `steering` is None
    where no job is driven elsewhere. Without `artifacts`, whoever asks for them is told why they
    are off."""

    registry: Registry
    plan: PlanSettings
    refs: RefPolicy
    check_webhooks: Callable[[Sequence[str]], None]
    services: Services
    steering: Steering | None = None
    artifacts: Artifacts | None = None
    artifacts_off: str = "artifacts are off"
