"""What replies say."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.conform.broken_services.directives import Directive

SUCCEEDED, FAILED_RETRY, FAILED_FINAL = "SUCCEEDED", "FAILED_RETRY", "FAILED_FINAL"
_CLASSES = {FAILED_RETRY: "RETRYABLE", FAILED_FINAL: "NON_RETRYABLE"}
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the work ended. `code` is why it failed."""

    status: str
    artifacts: Sequence[Mapping[str, Any]] = ()
    code: str = ""
    message: str = ""


class Wording:
    """Replies as objects; whoever sends one encodes it once."""

    def timestamp(self) -> str:
        return datetime.now(UTC).isoformat().replace("+00:00", "Z")

    def traceparent(self, directive: Directive) -> str:
        """A span of the service's own in the directive's trace."""
        version, trace_id, _, flags = directive.traceparent.split("-")[:4]
        return f"{version}-{trace_id}-{os.urandom(8).hex()}-{flags}"

    def reply(self, directive: Directive, type: str) -> Body:
        return {
            "type": type,
            **directive.identity,
            "timestamp": self.timestamp(),
            "traceparent": self.traceparent(directive),
        }

    def ack(self, directive: Directive) -> Body:
        return {**self.reply(directive, "ACK"), "status": "ACKED"}

    def heartbeat(self, directive: Directive) -> Body:
        return {**self.reply(directive, "HEARTBEAT"), "progress": {"note": "at work"}}

    def result(self, directive: Directive, outcome: Outcome) -> Body:
        body = {**self.reply(directive, "RESULT"), "status": outcome.status}
        if outcome.status == SUCCEEDED:
            return {**body, "artifacts": [dict(each) for each in outcome.artifacts]}
        error = {"code": outcome.code, "message": outcome.message}
        return {**body, "failure_class": _CLASSES[outcome.status], "error": error}


def encoded(body: Body) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()
