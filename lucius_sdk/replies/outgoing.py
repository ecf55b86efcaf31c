"""A reply as it leaves: its bytes, and what the way there needs to know of it.

Bytes are made once. A RESULT is stored as these bytes and sent as these bytes, however often.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pydantic_core

from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_contract.ids import message_id
from lucius_contract.messages import REPLY_LIMIT, MessageType, Reply, bus_message_id
from lucius_sdk.addresses import ReplyAddress

_NAMES = ("jobId", "stepId", "tenant_id", "lease_id")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """`properties` are those of the message on the bus: for people and filters, and few, since
    each costs as much as the rest of a small message. What is shown of it hides the lease."""

    type: MessageType
    body: bytes = field(repr=False)
    message_id: str = field(repr=False)
    traceparent: str | None
    properties: Mapping[str, str | int]

    def url_in(self, address: ReplyAddress) -> str | None:
        """Where it goes over HTTP; None if it goes by the bus."""
        if self.type is MessageType.ACK:
            return address.ack_url
        if self.type is MessageType.RESULT:
            return address.result_url
        return address.heartbeat_url


def outgoing(message: Reply) -> Outgoing:
    """`ContractError` (TOO_LARGE) for one that nobody would take."""
    body = message.to_bytes()
    _check_size(body)
    properties: dict[str, str | int] = {"type": message.type.value, "jobId": message.job_id}
    return _with_trace(message.type, body, bus_message_id(message), message.traceparent, properties)


def outgoing_result(body: bytes) -> Outgoing:
    """Of the stored bytes of a RESULT. They were a valid one when they were stored, so only what
    the way needs is looked at. `ContractError` if that is not in them."""
    _check_size(body)
    value = _object(body)
    names = {name: _text(value, name) for name in _NAMES}
    attempt_no = value.get("attempt_no")
    if value.get("type") != MessageType.RESULT or type(attempt_no) is not int:
        raise _invalid("/type", "must be RESULT, and attempt_no a number")
    lease_id = names.pop("lease_id")
    id = message_id(names["jobId"], names["stepId"], attempt_no, lease_id, MessageType.RESULT)
    properties: dict[str, str | int] = {
        "type": MessageType.RESULT.value,
        "jobId": names["jobId"],
    }
    trace = value.get("traceparent")
    known_trace = trace if isinstance(trace, str) else None
    return _with_trace(MessageType.RESULT, body, id, known_trace, properties)


def _with_trace(
    type: MessageType,
    body: bytes,
    id: str,
    traceparent: str | None,
    properties: dict[str, str | int],
) -> Outgoing:
    if traceparent is not None:
        properties["traceparent"] = traceparent
    return Outgoing(type, body, id, traceparent, properties)


def _check_size(body: bytes) -> None:
    if len(body) > REPLY_LIMIT:
        raise ContractError(
            ErrorCode.TOO_LARGE, f"the reply has {len(body)} bytes; at most {REPLY_LIMIT} are taken"
        )


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = pydantic_core.from_json(body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise _invalid("", "must be a JSON object")
    return value


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    if not isinstance(found, str) or not found:
        raise _invalid(f"/{name}", "must be text")
    return found


def _invalid(pointer: str, problem: str) -> ContractError:
    return ContractError(
        ErrorCode.ENVELOPE_INVALID, "not a stored RESULT", [Problem(pointer, problem)]
    )
