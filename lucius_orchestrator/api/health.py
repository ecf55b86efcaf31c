"""Whether the process lives, whether it can work, and what it has counted."""

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import NamedTuple

from starlette.responses import Response

from lucius_orchestrator.api.answers import json_response

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class Check(NamedTuple):
    """One thing that this process cannot work without."""

    name: str
    ok: bool
    detail: str


class Health:
    def __init__(
        self, readiness: Callable[[], Awaitable[Sequence[Check]]], metrics: Callable[[], bytes]
    ) -> None:
        self._readiness = readiness
        self._metrics = metrics

    async def live(self) -> Response:
        return json_response({"status": "live"})

    async def ready(self) -> Response:
        checks = await self._readiness()
        ready = all(check.ok for check in checks)
        body = {
            "status": "ready" if ready else "not ready",
            "checks": [check._asdict() for check in checks],
        }
        return json_response(body, HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE)

    async def metrics(self) -> Response:
        return Response(self._metrics(), media_type=PROMETHEUS)
