"""Directives, as the orchestrator would send them."""

from datetime import datetime, timedelta
from typing import Any

from lucius_bus.port import BusMessage
from lucius_contract.messages import Directive, bus_message_id, directive_properties
from lucius_contract.refs import tenant_folder
from lucius_contract.routing import lane_of, normalise, partition_key

LEASE = timedelta(minutes=15)
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def make_directive(now: datetime, folder: str, **members: Any) -> Directive:
    """One with everything that it must have; `members` replace or add to that, by their names on
    the wire. `folder` is a uri under which it finds its input, workspace and output."""
    tenant = members.get("tenant_id", "tenant")
    job = members.get("jobId", "job_1")
    key = normalise(tenant)
    own = f"{tenant_folder(tenant)}/{job}"
    document = {
        "type": "DIRECTIVE",
        "jobId": job,
        "stepId": "step_01",
        "tenant_id": tenant,
        "attempt_no": 1,
        "lease_id": f"{members.get('attempt_no', 1):032x}",
        "protocol_id": "test",
        "step_type": "TEST",
        "input_ref": {"uri": f"{folder}/input"},
        "workspace_ref": {"uri": f"{folder}/lucius/{own}/"},
        "output_ref": {"uri": f"{folder}/output"},
        "payload": {},
        "mode": "DEFAULT",
        "lane": lane_of(key),
        "routing_key_used": key,
        "correlation_id": "correlation",
        "traceparent": TRACEPARENT,
        "lease_expires_at": (now + LEASE).isoformat(),
        "lease_seconds": LEASE.total_seconds(),
        "heartbeat_seconds": LEASE.total_seconds() / 3,
    }
    return Directive.read(document | members)


def directive_message(directive: Directive, service: str) -> BusMessage:
    """As it lies on the bus."""
    return BusMessage(
        bus_message_id(directive),
        directive.to_bytes(),
        directive_properties(directive.to_json(), service),
        partition_key(directive.routing_key_used),
        expires_at=directive.lease_expires_at,
    )
