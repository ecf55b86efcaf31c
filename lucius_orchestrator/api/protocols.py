"""Which requests there are, and what they consist of."""

from starlette.responses import Response

from lucius_orchestrator.api.answers import json_response
from lucius_orchestrator.api.job_views import View
from lucius_orchestrator.api.parameters import ProtocolId
from lucius_orchestrator.api.problems import not_found
from lucius_orchestrator.ports.registry import ProtocolDefinition, ProtocolStep, Registry


class Protocols:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def list(self) -> Response:
        found = sorted(self._registry.snapshot().protocols.items())
        items = [protocol_view(protocol) for _, protocol in found]
        return json_response({"items": items, "next_cursor": None})

    async def read(self, protocol_id: ProtocolId) -> Response:
        protocol = self._registry.snapshot().protocols.get(protocol_id)
        if protocol is None:
            raise not_found(f"there is no protocol {protocol_id}")
        return json_response(protocol_view(protocol))


def protocol_view(protocol: ProtocolDefinition) -> View:
    return {
        "protocol_id": protocol.protocol_id,
        "version": protocol.version,
        "request_type": protocol.request_type,
        "aliases": protocol.aliases,
        "steps": [_step_view(step) for step in protocol.steps],
    }


def _step_view(step: ProtocolStep) -> View:
    policy = step.policy
    return {
        "step_type": step.step_type,
        "service": step.service,
        "payload_key": step.payload_key,
        "payload_schema": step.payload_schema,
        "ack_timeout_seconds": policy.ack_timeout.total_seconds(),
        "lease_seconds": policy.lease.total_seconds(),
        "heartbeat_seconds": policy.heartbeat_interval.total_seconds(),
        "timeout_seconds": policy.ceiling.total_seconds(),
        "max_attempts": policy.max_attempts,
        "backoff_seconds": [delay.total_seconds() for delay in policy.backoff],
        "reply_via": policy.reply_via,
    }
