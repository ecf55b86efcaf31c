"""What a script asks the mock for: one job of one step, and how its directive goes out."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from lucius_orchestrator.domain.aggregate import JsonObject, ReplyVia, StepPolicy

Body = Mapping[str, Any]
_AT_ONCE = (timedelta(0),)


@dataclass(frozen=True, slots=True)
class Order:
    """`lease` counts from the ACK; the directive's own covers `ack_timeout` besides. Refs that are
    not given are made by the mock. The tenant decides the lane."""

    service: str
    step_type: str
    payload: JsonObject = field(default_factory=dict)
    tenant_id: str = "tenant"
    input_ref: JsonObject | None = None
    workspace_ref: JsonObject | None = None
    output_ref: JsonObject | None = None
    prior_artifacts: Mapping[str, Sequence[JsonObject]] = field(default_factory=dict)
    reply_via: ReplyVia = ReplyVia.HTTP
    ack_timeout: timedelta = timedelta(seconds=60)
    lease: timedelta = timedelta(seconds=60)
    heartbeat: timedelta = timedelta(seconds=20)
    max_attempts: int = 10
    correlation_id: str | None = None
    traceparent: str | None = None

    def policy(self) -> StepPolicy:
        return StepPolicy(
            ack_timeout=self.ack_timeout,
            lease=self.lease,
            heartbeat=self.heartbeat,
            max_attempts=self.max_attempts,
            backoff=_AT_ONCE,
            dispatch_backoff=_AT_ONCE,
            reply_via=self.reply_via,
        )


class Kind(StrEnum):
    """How a directive is spoilt before it goes out."""

    VALID = "valid"
    EXPIRED = "expired"
    UNKNOWN_FIELDS = "unknown-fields"
    FOREIGN_STEP_TYPE = "foreign-step-type"
    NOT_JSON = "not-json"
    NOT_AN_OBJECT = "not-an-object"
    FIELD_MISSING = "field-missing"
    FIELD_OF_WRONG_TYPE = "field-of-wrong-type"
    OTHER_VERSION = "other-version"


MALFORMED = (
    Kind.NOT_JSON,
    Kind.NOT_AN_OBJECT,
    Kind.FIELD_MISSING,
    Kind.FIELD_OF_WRONG_TYPE,
    Kind.OTHER_VERSION,
)
FOREIGN = "STEP_OF_SOMEBODY_ELSE"
_LONG_AGO = timedelta(hours=1)


def encoded(kind: Kind, body: Body) -> bytes:
    """The directive as it goes out."""
    return _SPOILERS[kind](body)


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _expired(body: Body) -> bytes:
    then = datetime.now(UTC) - _LONG_AGO
    return _json({**body, "lease_expires_at": then.isoformat().replace("+00:00", "Z")})


def _unknown_fields(body: Body) -> bytes:
    added = {"x_new": {"deep": [1, None]}, "x_more": "text", "schema_version": "1.7"}
    refs = {"input_ref": {**body["input_ref"], "x_region": "north"}}
    return _json({**body, **added, **refs})


def _without(body: Body, name: str) -> bytes:
    return _json({key: value for key, value in body.items() if key != name})


_SPOILERS: Mapping[Kind, Callable[[Body], bytes]] = {
    Kind.VALID: _json,
    Kind.EXPIRED: _expired,
    Kind.UNKNOWN_FIELDS: _unknown_fields,
    Kind.FOREIGN_STEP_TYPE: lambda body: _json({**body, "step_type": FOREIGN}),
    Kind.NOT_JSON: lambda body: _json(body)[:-7],
    Kind.NOT_AN_OBJECT: lambda body: _json([body]),
    Kind.FIELD_OF_WRONG_TYPE: lambda body: _json({**body, "attempt_no": "one"}),
    Kind.FIELD_MISSING: lambda body: _without(body, "lease_id"),
    Kind.OTHER_VERSION: lambda body: _json({**body, "schema_version": "2"}),
}
