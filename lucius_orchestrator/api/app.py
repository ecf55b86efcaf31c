"""The application: every operation of the table with what serves it."""

import asyncio
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lucius_contract.messages import MessageType
from lucius_orchestrator.api import operations as ops
from lucius_orchestrator.api import paths
from lucius_orchestrator.api.access import Access, Gate
from lucius_orchestrator.api.answers import json_response, refusal_response
from lucius_orchestrator.api.artifacts.objects import PREFIX, Place
from lucius_orchestrator.api.artifacts.routes import artifact_routes, object_endpoints
from lucius_orchestrator.api.callbacks import Callback
from lucius_orchestrator.api.commands import Commands
from lucius_orchestrator.api.dead_letters import DeadLetters
from lucius_orchestrator.api.edge import Edge, ObjectEdge
from lucius_orchestrator.api.health import Health
from lucius_orchestrator.api.jobs import Jobs
from lucius_orchestrator.api.openapi import document
from lucius_orchestrator.api.operation import Operation
from lucius_orchestrator.api.parameters import query_names
from lucius_orchestrator.api.parts import ApiParts, CallbackParts, HealthParts
from lucius_orchestrator.api.problems import UNFORESEEN, refusal_of
from lucius_orchestrator.api.protocols import Protocols
from lucius_orchestrator.api.services import ServiceList
from lucius_orchestrator.api.stream import Streams
from lucius_orchestrator.api.submission import Submit
from lucius_orchestrator.security.callers import Verb

Endpoint = Callable[..., Any]


class Shortcut(NamedTuple):
    """Has what a route has, for those who look at the scope."""

    method: str
    path: str
    endpoint: ASGIApp


class Api(FastAPI):
    """Requests that are plain ASGI all the way reach their endpoints without the framework's
    layers, which would cost as much as the work."""

    shortcuts: Mapping[str, Shortcut] = MappingProxyType({})
    objects: Mapping[tuple[str, bool], Shortcut] = MappingProxyType({})
    """By method, and whether a part is named."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        shortcut = self.shortcuts.get(scope.get("path", "")) or self._object(scope)
        if shortcut is None or scope["method"] != shortcut.method:
            await super().__call__(scope, receive, send)
            return
        scope["route"] = shortcut
        await shortcut.endpoint(scope, receive, send)

    def _object(self, scope: Scope) -> Shortcut | None:
        path = scope.get("path", "")
        place = Place.of(path) if path.startswith(PREFIX) else None
        return place and self.objects.get((scope["method"], place.number is not None))


def create_app(parts: ApiParts) -> FastAPI:
    """`app.state.stopping` is an event; once it is set the streams end, so that a server that stops
    need not wait for them."""
    app, access = _new_app(), Access(parts)
    submit = Submit(parts, access)
    _add_plain(app, parts, {ops.SUBMIT: submit, ops.SUBMIT_COMMAND: submit, **_callbacks(parts)})
    _add_objects(app, parts)
    routes = _routes(parts, access, app.state.stopping) | artifact_routes(parts)
    _add_all(app, parts, access, routes)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    _add_description(app, access)
    return app


def create_callback_app(parts: CallbackParts) -> FastAPI:
    """For a process that services answer, and that is asked about its health."""
    app = _new_app()
    _add_plain(app, parts, _callbacks(parts))
    _add_all(app, parts, Gate(parts), {})
    return app


def create_health_app(parts: HealthParts) -> FastAPI:
    """For a process that is asked about its health and nothing else."""
    app = _new_app()
    _add_all(app, parts, Gate(parts), {})
    return app


def _new_app() -> Api:
    app = Api(
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Spans and counts of requests are made in one place, which is not here.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.stopping = asyncio.Event()
    return app


def _add_plain(app: Api, parts: HealthParts, plain: Mapping[Operation, ASGIApp]) -> None:
    for operation, endpoint in plain.items():
        app.router.routes.append(Route(operation.path, endpoint, methods=[operation.method]))
    app.shortcuts = {
        operation.path: Shortcut(operation.method, operation.path, Edge(endpoint, parts))
        for operation, endpoint in plain.items()
    }


def _add_objects(app: Api, parts: ApiParts) -> None:
    for operation, endpoint in object_endpoints(parts).items():
        route = Route(operation.path, endpoint, methods=[operation.method])
        route.methods = {operation.method}  # without the HEAD that it adds
        app.router.routes.append(route)
        served = Shortcut(operation.method, operation.path, ObjectEdge(endpoint, parts))
        app.objects = {**app.objects, (operation.method, "{number}" in operation.path): served}


def _callbacks(parts: CallbackParts) -> dict[Operation, ASGIApp]:
    return {
        ops.SEND_ACK: Callback(parts, MessageType.ACK),
        ops.SEND_RESULT: Callback(parts, MessageType.RESULT),
        ops.SEND_HEARTBEAT: Callback(parts, MessageType.HEARTBEAT),
    }


def _routes(parts: ApiParts, access: Access, stopping: asyncio.Event) -> dict[Operation, Endpoint]:
    jobs, commands = Jobs(parts, access), Commands(parts, access)
    protocols = Protocols(parts.registry)
    return {
        ops.LIST_JOBS: jobs.list,
        ops.READ_JOB: jobs.read,
        ops.READ_STEPS: jobs.steps,
        ops.READ_EVENTS: jobs.events,
        ops.STREAM_EVENTS: Streams(parts, access, stopping).stream,
        ops.CANCEL: commands.cancel,
        ops.PAUSE: commands.pause,
        ops.RESUME: commands.resume,
        ops.REDRIVE: commands.redrive,
        ops.LIST_DEAD_LETTERS: DeadLetters(parts).list,
        ops.LIST_PROTOCOLS: protocols.list,
        ops.READ_PROTOCOL: protocols.read,
        ops.LIST_SERVICES: ServiceList(parts).list,
    }


def _health_routes(parts: HealthParts, gate: Gate) -> dict[Operation, Endpoint]:
    async def shows_details(request: Request) -> bool:
        return await gate.may(request.scope, Verb.READ_READINESS)

    health = Health(parts.readiness, parts.metrics, shows_details)
    return {ops.LIVE: health.live, ops.READY: health.ready, ops.METRICS: health.metrics}


def _add_all(
    app: FastAPI, parts: HealthParts, gate: Gate, routes: Mapping[Operation, Endpoint]
) -> None:
    """Add the routes, and those of the process's health, which every application has."""
    for operation, endpoint in {**routes, **_health_routes(parts, gate)}.items():
        _add(app, gate, operation, endpoint)
    _end_ids_at_verbs(app)
    app.add_middleware(Edge, parts=parts)
    _answer_refusals(app, parts)


def _add(app: FastAPI, gate: Gate, operation: Operation, endpoint: Endpoint) -> None:
    query = query_names(operation.path, endpoint)
    app.add_api_route(
        operation.path,
        endpoint,
        methods=[operation.method],
        operation_id=operation.id,
        status_code=operation.status,
        response_class=Response,
        response_model=None,
        dependencies=[Depends(gate.allows(operation.verb, query))],
    )


def _add_description(app: FastAPI, gate: Gate) -> None:
    async def description() -> Response:
        return json_response(app.openapi())

    app.add_api_route(
        paths.OPENAPI,
        description,
        methods=["GET", "HEAD"],
        include_in_schema=False,
        dependencies=[Depends(gate.allows(None, ()))],
    )


def _end_ids_at_verbs(app: FastAPI) -> None:
    """No id holds a colon: what follows one is a verb, and a verb that there is not is 404, with
    every method."""
    for route in app.routes:
        assert isinstance(route, Route), "the application has no other routes"
        route.path_regex = re.compile(route.path_regex.pattern.replace("[^/]+", "[^/:]+"))


def _answer_refusals(app: FastAPI, parts: HealthParts) -> None:
    """FastAPI has answers of its own for these two; everything else is left to the edge."""

    async def refuse(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            error.headers = {"Allow": ", ".join(_methods_of(app, request.scope))}
        return refusal_response(refusal_of(error, parts.limits.retry_after) or UNFORESEEN)

    app.add_exception_handler(HTTPException, refuse)
    app.add_exception_handler(RequestValidationError, refuse)


def _methods_of(app: FastAPI, scope: Scope) -> list[str]:
    """All that a path has; the router names those of one route."""
    found = (route for route in app.routes if route.matches(scope)[0] is not Match.NONE)
    return sorted({method for route in found for method in getattr(route, "methods", ())})


def _described(app: FastAPI) -> dict[str, Any]:
    app.openapi_schema = app.openapi_schema or document(app)
    return app.openapi_schema
