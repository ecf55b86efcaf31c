"""The control plane's packages and its HTTP server write in one form."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import uvicorn

from lucius_logs.context import correlation
from lucius_orchestrator.observability.http import Receive, Scope, Send
from lucius_orchestrator.observability.logs import configure_logs
from tests.logs.capture import Log
from tests.runner.deadlines import DEADLINE

pytestmark = pytest.mark.usefixtures("logging_as_before")
OURS = logging.getLogger("lucius_orchestrator")


def log_of(level: str = "INFO") -> Log:
    return Log(level=level, configure=configure_logs)


async def test_the_lines_of_the_http_server_are_of_the_same_form() -> None:
    log = log_of()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        correlation.set("c-" + scope["path"].strip("/"))
        if scope["path"] == "/broken":
            raise RuntimeError("db password=S3cr3t")
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    paths = ["/jobs?token=S3cr3t", "/healthz/live", "/healthz/ready", "/broken"]
    await _serve(answer, paths)
    lines = {line["event"]: line for line in log.lines() if line["event"] == "http.access"}
    access = [line for line in log.lines() if line["event"] == "http.access"]
    assert [(line["path"], line["status"]) for line in access] == [
        ("/jobs?token=***", 204),
        ("/broken", 500),
    ]
    assert [line["correlation_id"] for line in access] == ["c-jobs", "c-broken"]
    assert (lines["http.access"]["method"], lines["http.access"]["level"]) == ("GET", "INFO")
    (failure,) = [line for line in log.lines() if line["level"] == "ERROR"]
    assert failure["logger"] == "uvicorn.error"
    assert failure["correlation_id"] == "c-broken"
    assert "RuntimeError" in failure["exception"]
    assert all("correlation_id" in line for line in log.lines())
    assert "S3cr3t" not in log.text


async def _serve(app: Callable[..., Any], paths: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        host = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with (
            asyncio.timeout(DEADLINE),
            httpx.AsyncClient(base_url=host, timeout=DEADLINE) as client,
        ):
            for path in paths:
                await client.get(path)
        server.should_exit = True
        async with asyncio.timeout(DEADLINE):
            await serving


def test_configuring_twice_writes_every_line_once() -> None:
    log_of()
    log = log_of()
    OURS.info("x")
    logging.getLogger("uvicorn.access").info("y")
    assert len(log.lines()) == 2


def test_the_level_holds_for_us_and_libraries_show_warnings_at_most() -> None:
    log = log_of("debug")
    for name in ("lucius_orchestrator", "lucius_outbox", "some.library"):
        logging.getLogger(name).debug("x")
        logging.getLogger(name).warning("y")
    seen = [(line["logger"], line["event"]) for line in log.lines()]
    assert ("some.library", "y") in seen
    assert ("some.library", "x") not in seen
    assert len(seen) == 5


def test_documented_fields_are_shown_even_if_their_names_suggest_a_secret() -> None:
    """An operator needs to know which entry of an index was mended."""
    log = log_of()
    OURS.warning("ledger.repaired", extra={"key": "TENANT acme", "index_name": "in_flight"})
    OURS.warning("anything.else", extra={"key": "TENANT acme"})
    assert [line["key"] for line in log.lines()] == ["TENANT acme", "***"]


def test_the_servers_own_record_is_left_as_it_was_for_others() -> None:
    log = log_of()
    asked = ("127.0.0.1:5", "GET", "/jobs", "1.1", 200)
    head = {"name": "uvicorn.access", "levelno": logging.INFO}
    record = logging.makeLogRecord({**head, "msg": '%s - "%s %s HTTP/%s" %d', "args": asked})
    logging.getLogger("uvicorn.access").handle(record)
    assert log.line()["event"] == "http.access"
    assert record.getMessage() == '127.0.0.1:5 - "GET /jobs HTTP/1.1" 200'
