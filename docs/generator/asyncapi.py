"""The AsyncAPI document: both bus directions, as a platform service sees them."""

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import models_json_schema

from docs.generator.schemas import as_text
from lucius_contract import CONTRACT_VERSION
from lucius_contract.messages import (
    DIRECTIVE_LIMIT,
    PROPERTY_TYPES,
    REPLY_LIMIT,
    Ack,
    Directive,
    Heartbeat,
    Message,
    Result,
)
from lucius_contract.routing import DIRECTIVE_TOPIC_PREFIX, LANES, REPLY_TOPIC_PREFIX

_MESSAGES: tuple[type[Message], ...] = (Directive, Ack, Result, Heartbeat)


def document() -> dict[str, Any]:
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "LUCIUS bus contract",
            "version": f"{CONTRACT_VERSION}.0.0",
            "description": (
                "What a platform service receives and sends on Azure Service Bus. The lane of a "
                "reply is the lane of its directive; a directive with callback_urls is answered "
                "over HTTP instead. Unknown members are tolerated everywhere."
            ),
        },
        "defaultContentType": "application/json",
        "channels": {
            "directives": _channel(DIRECTIVE_TOPIC_PREFIX, "Directives of one lane.", [Directive]),
            "replies": _channel(
                REPLY_TOPIC_PREFIX, "Replies of one lane.", [Ack, Result, Heartbeat]
            ),
        },
        "operations": {
            "receiveDirective": _operation(
                "receive", "directives", [Directive], "Take work from the service's subscription."
            ),
            "sendAck": _operation("send", "replies", [Ack], "Before the work begins."),
            "sendHeartbeat": _operation("send", "replies", [Heartbeat], "While the work goes on."),
            "sendResult": _operation("send", "replies", [Result], "Once per attempt."),
        },
        "components": {
            "messages": {_name(model): _message(model) for model in _MESSAGES},
            "schemas": _schemas(),
        },
    }


def files() -> Mapping[str, str]:
    return {"lucius_contract/schemas/asyncapi.json": as_text(document())}


def _channel(prefix: str, description: str, models: list[type[Message]]) -> dict[str, Any]:
    return {
        "address": prefix + "{lane}",
        "description": description,
        "parameters": {
            "lane": {
                "description": "CRC32 of the routing key, modulo 16.",
                "enum": [str(lane) for lane in range(LANES)],
            }
        },
        "messages": {
            _name(model): {"$ref": f"#/components/messages/{_name(model)}"} for model in models
        },
    }


def _operation(
    action: str, channel: str, models: list[type[Message]], summary: str
) -> dict[str, Any]:
    return {
        "action": action,
        "summary": summary,
        "channel": {"$ref": f"#/channels/{channel}"},
        "messages": [{"$ref": f"#/channels/{channel}/messages/{_name(m)}"} for m in models],
    }


def _message(model: type[Message]) -> dict[str, Any]:
    limit = DIRECTIVE_LIMIT if model is Directive else REPLY_LIMIT
    message: dict[str, Any] = {
        "name": model.__name__.upper(),
        "summary": model.__doc__,
        "description": f"At most {limit // 1024} KiB.",
        "payload": {"$ref": f"#/components/schemas/{model.__name__}"},
    }
    if model is Directive:
        message["headers"] = {
            "type": "object",
            "description": "Application properties of the Service Bus message.",
            "properties": _directive_headers(),
        }
    return message


def _directive_headers() -> dict[str, Any]:
    return {
        name: {"type": "integer" if kind is int else "string"}
        for name, kind in PROPERTY_TYPES.items()
    }


def _schemas() -> dict[str, Any]:
    _, merged = models_json_schema(
        [(model, "validation") for model in _MESSAGES],
        ref_template="#/components/schemas/{model}",
    )
    return dict(merged["$defs"])


def _name(model: type[Message]) -> str:
    return model.__name__.lower()
