"""How services stand."""

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

    async def list(self) -> Response:
        items = [service_view(standing) for standing in await self._services.read()]
        return json_response({"items": items, "next_cursor": None})


def service_view(standing: ServiceStanding) -> View:
    traffic, age = standing.traffic, standing.oldest_age
    return {
        "service": traffic.service,
        "presence": traffic.presence,
        "heard_at": traffic.heard_at,
        "waiting": standing.waiting,
        "oldest_waiting_at": standing.oldest,
        "oldest_waiting_seconds": None if age is None else age.total_seconds(),
        "unacknowledged": traffic.unacknowledged,
        "working": traffic.working,
        "window": int(traffic.window),
        "capacity": traffic.capacity,
        "instances": traffic.instances,
        "rate_per_second": round(traffic.rate, 3),
        "has_backlog": traffic.has_backlog,
        "lanes": [{"lane": row.lane, "waiting": row.waiting} for row in standing.lanes],
    }
