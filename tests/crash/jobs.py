"""The jobs of the crash test, and what must become of each."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from lucius_bus.topology import Topology, lane_topology
from lucius_contract.documents import Ref
from lucius_contract.envelope import Envelope
from lucius_contract.messages import Outcome
from lucius_contract.states import JobState
from lucius_orchestrator.domain.aggregate import ReplyVia, StepPolicy
from lucius_orchestrator.ports.registry import (
    GlobalConfig,
    ProtocolDefinition,
    ProtocolStep,
    Snapshot,
)
from tests.runner.deadlines import seconds

LIMIT = 60
"""Jobs in flight at a time: enough that every kill meets some, and so few that on a busy machine
they do not keep each other waiting until their time is over and all are tried again."""

BACKLOG = "backlog"
"""The name of another workload: no limit, jobs of one step, one tenant with most of them."""

SERVICES = ("first", "second", "third")
LOCK = timedelta(seconds=seconds(3))


def snapshot(patience: float = 1, limit: int = LIMIT) -> Snapshot:
    """`patience`: how many times as long everything may take; `limit`: jobs in flight at a time."""
    policy = StepPolicy(
        ack_timeout=timedelta(seconds=seconds(3)) * patience,
        lease=timedelta(seconds=seconds(6)) * patience,
        max_attempts=30,
        backoff=(timedelta(milliseconds=100),),
        dispatch_backoff=(timedelta(milliseconds=200),),
        stale_dispatch=timedelta(seconds=seconds(3)) * patience,
        reply_via=ReplyVia.BUS,
    )
    steps = tuple(ProtocolStep(name.upper(), name, {"type": "object"}, policy) for name in SERVICES)
    protocol = ProtocolDefinition("crash", "1", "CRASH", (), steps)
    return Snapshot({"crash": protocol}, {"CRASH": protocol}, {}, GlobalConfig(max_inflight=limit))


def backlog() -> Snapshot:
    """Times that are as short as in `snapshot`, but tries that may be used up."""
    policy = StepPolicy(
        ack_timeout=timedelta(seconds=seconds(3)),
        lease=timedelta(seconds=seconds(10)),
        max_attempts=10,
        backoff=(timedelta(milliseconds=500),),
        dispatch_backoff=(timedelta(milliseconds=200),),
        reply_via=ReplyVia.BUS,
    )
    step = ProtocolStep("FIRST", "first", {"type": "object"}, policy)
    protocol = ProtocolDefinition("crash", "1", "CRASH", (), (step,))
    return Snapshot({"crash": protocol}, {"CRASH": protocol}, {}, GlobalConfig())


def tenant_of(number: int, workload: str = "") -> str:
    """Of a backlog every fourth job is of one of five small tenants."""
    if workload == BACKLOG:
        return f"tenant-{number // 4 % 5 + 1 if number % 4 == 3 else 0}"
    return f"tenant-{number % 20}"


def envelope(number: int, workload: str = "") -> Envelope:
    if workload == BACKLOG:
        return _envelope(number, tenant_of(number, workload), {"number": number})
    payload = {"first": {"number": number}, "second": {"number": number}, "third": {}}
    return _envelope(number, tenant_of(number), payload)


def _envelope(number: int, tenant_id: str, payload: dict[str, Any]) -> Envelope:
    return Envelope(
        tenant_id=tenant_id,
        request_type="CRASH",
        input_ref=Ref(uri=f"az://in/{number}"),
        output_ref=Ref(uri=f"az://out/{number}"),
        payload=payload,
        schema_version="1",
        idempotency_key=key(number),
    )


def key(number: int) -> str:
    return f"job-{number}"


def outcome(number: int, step: str, attempt_no: int) -> Outcome:
    """What the service makes of a directive: always the same for the same attempt."""
    if number % 10 == 3 and step == "SECOND":
        return Outcome.FAILED_FINAL
    if number % 10 in (5, 6) and step == "FIRST" and attempt_no == 1:
        return Outcome.FAILED_RETRY
    return Outcome.SUCCEEDED


def expected(number: int) -> JobState:
    return JobState.FAILED_FINAL if number % 10 == 3 else JobState.SUCCEEDED


def topology() -> Topology:
    """With short locks, so that what a killed process held is soon received again."""
    usual = lane_topology(SERVICES).topics
    return Topology(
        {
            topic: tuple(replace(s, lock_duration=LOCK, max_delivery_count=100) for s in settings)
            for topic, settings in usual.items()
        }
    )
