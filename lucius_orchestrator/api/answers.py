"""Answers as bytes."""

from collections.abc import Mapping
from typing import Any

import pydantic_core
from starlette.responses import Response
from starlette.types import Send

from lucius_orchestrator.api.problems import MEDIA_TYPE, Refusal

JSON = "application/json"


async def send_json(send: Send, status: int, value: Any, *headers: tuple[bytes, bytes]) -> None:
    """For plain ASGI endpoints."""
    await _send(send, status, JSON, pydantic_core.to_json(value), *headers)


async def send_refusal(refusal: Refusal, send: Send) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
    await _send(send, refusal.status, MEDIA_TYPE, refusal.body(), *headers)


async def _send(
    send: Send, status: int, media_type: str, body: bytes, *headers: tuple[bytes, bytes]
) -> None:
    own = [
        (b"content-type", media_type.encode()),
        (b"content-length", b"%d" % len(body)),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": own})
    await send({"type": "http.response.body", "body": body})


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """For FastAPI routes, which pass a response on as it is."""
    return Response(pydantic_core.to_json(value), status, headers, JSON)


def refusal_response(refusal: Refusal) -> Response:
    return Response(refusal.body(), refusal.status, refusal.headers, MEDIA_TYPE)
