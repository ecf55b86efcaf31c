"""Requests as an operator counts them: by the template of their route, never by their path."""

import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple, Protocol

from lucius_orchestrator.observability.tables import HTTP_REQUESTS, HTTP_SECONDS

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

UNMATCHED = "unmatched"
OTHER = "OTHER"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_NO_ANSWER = 0


def route_of(scope: Scope) -> str:
    """The template of the route that the router chose. FastAPI says in the scope which one it was,
    but of plain Starlette routes only which endpoint they have."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else _route_of_endpoint(scope)


def _route_of_endpoint(scope: Scope) -> str:
    endpoint, found = scope.get("endpoint"), UNMATCHED
    if endpoint is None:
        return found
    for route in getattr(scope.get("router"), "routes", ()):
        if getattr(route, "endpoint", None) is endpoint:
            found = route.path
            if found == scope["path"]:  # an endpoint may have several
                break
    return found


def method_of(scope: Scope) -> str:
    """Clients may send anything; what is not HTTP's is one label."""
    method = scope["method"]
    return method if method in _METHODS else OTHER


class Answer:
    """Passes an answer on and remembers its status; 0 until it begins."""

    __slots__ = ("_send", "status")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = _NO_ANSWER

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


class SeriesMetrics(Protocol):
    def counting(self, name: str, **labels: str) -> Callable[[float], None]: ...

    def observing(self, name: str, **labels: str) -> Callable[[float], None]: ...


class _Series(NamedTuple):
    requests: Callable[[float], None]
    seconds: Callable[[float], None]


class MeasuredHttp:
    """ASGI middleware that counts requests and their time. Every request passes here, so it keeps
    the series that it has seen: there are as many as routes, methods and answers."""

    def __init__(
        self, app: App, metrics: SeriesMetrics, timer: Callable[[], float] = time.perf_counter
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._timer = timer
        self._series: dict[tuple[str, str, int], _Series] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer, began = Answer(send), self._timer()
        try:
            await self._app(scope, receive, answer)
        except Exception:
            answer.status = answer.status or 500  # which the server answers now
            raise
        finally:
            self._count(scope, answer.status, self._timer() - began)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        key = (method_of(scope), route_of(scope), status)
        series = self._series.get(key) or self._new_series(key)
        series.requests(1)
        series.seconds(seconds)

    def _new_series(self, key: tuple[str, str, int]) -> _Series:
        method, route, status = key
        label = str(status) if status != _NO_ANSWER else "none"
        count = self._metrics.counting(HTTP_REQUESTS, method=method, route=route, status=label)
        series = _Series(count, self._metrics.observing(HTTP_SECONDS, route=route))
        self._series[key] = series
        return series
