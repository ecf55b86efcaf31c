"""Whether the process lives, whether it can work, and what it has counted.

Anybody may ask whether each part works. Why one does not may name hosts, files and tenants: that is
for operators and for the log.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from lucius_orchestrator.api.answers import json_response
from lucius_outbox.telemetry import EventInfo

_log = logging.getLogger("lucius_orchestrator.api")

EVENTS: tuple[EventInfo, ...] = (
    EventInfo(
        "health.not_ready",
        "WARNING",
        ("check", "detail"),
        "A part without which the process cannot work has failed, or fails for another reason.",
    ),
    EventInfo("health.ready", "INFO", ("check",), "It works again."),
)
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class Check(NamedTuple):
    """One thing that this process cannot work without."""

    name: str
    ok: bool
    detail: str


class Health:
    """`shows_details` says whether a request may see why something is not ready."""

    def __init__(
        self,
        readiness: Callable[[], Awaitable[Sequence[Check]]],
        metrics: Callable[[], bytes],
        shows_details: Callable[[Request], Awaitable[bool]],
    ) -> None:
        self._readiness = readiness
        self._metrics = metrics
        self._shows_details = shows_details
        self._failing: dict[str, str] = {}
        """Why, by the name of the check, as it was logged."""

    async def live(self) -> Response:
        return json_response({"status": "live"})

    async def ready(self, request: Request) -> Response:
        checks = await self._readiness()
        self._log_changes(checks)
        ready = all(check.ok for check in checks)
        details = await self._shows_details(request)
        body = {
            "status": "ready" if ready else "not ready",
            "checks": [
                {**check._asdict(), "detail": check.detail if details else None} for check in checks
            ],
        }
        return json_response(body, HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE)

    async def metrics(self) -> Response:
        return Response(self._metrics(), media_type=PROMETHEUS)

    def _log_changes(self, checks: Sequence[Check]) -> None:
        """Probes come every few seconds: a reason is logged once."""
        failing = {check.name: check.detail for check in checks if not check.ok}
        for name, detail in failing.items():
            if self._failing.get(name) != detail:
                _log.warning("health.not_ready", extra={"check": name, "detail": detail})
        for name in self._failing.keys() - failing.keys():
            _log.info("health.ready", extra={"check": name})
        self._failing = failing
