"""How services stand."""

from datetime import datetime

from starlette.responses import Response

from lucius_orchestrator.api.answers import json_response
from lucius_orchestrator.api.job_views import View
from lucius_orchestrator.api.parts import ApiParts
from lucius_orchestrator.engine.services import ServiceStanding


class ServiceList:
    """For callers with all tenants, as the metrics: the numbers are of all tenants together, and
    what waits in a lane would tell one tenant how much another one submits."""

    def __init__(self, parts: ApiParts) -> None:
        self._services = parts.services
        self._clock = parts.engine.world.clock

    async def list(self) -> Response:
        found = await self._services.read()
        now = self._clock()
        items = [service_view(standing, now) for standing in found]
        return json_response({"items": items, "next_cursor": None})


def service_view(standing: ServiceStanding, now: datetime) -> View:
    traffic, oldest = standing.traffic, standing.oldest
    waited = None if oldest is None else max((now - oldest).total_seconds(), 0.0)
    return {
        "service": traffic.service,
        "presence": traffic.presence,
        "heard_at": traffic.heard_at,
        "waiting": standing.waiting,
        "oldest_waiting_at": oldest,
        "oldest_waiting_seconds": waited,
        "unacknowledged": traffic.unacknowledged,
        "working": traffic.working,
        "window": int(traffic.window),
        "capacity": traffic.capacity,
        "instances": traffic.instances,
        "rate_per_second": round(traffic.rate, 3),
        "has_backlog": traffic.has_backlog,
        "lanes": [{"lane": row.lane, "waiting": row.waiting} for row in standing.lanes],
    }
