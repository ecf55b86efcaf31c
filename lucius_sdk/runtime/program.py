"""A service as a process: settings from the environment, signals, health, a clean end."""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from lucius_logs.exceptions import headline
from lucius_sdk.clock import SystemClock
from lucius_sdk.error_model import StepError
from lucius_sdk.health import HealthServer
from lucius_sdk.idempotency_store import StoreError
from lucius_sdk.idempotency_store.opening import open_store
from lucius_sdk.logs import configure_logs
from lucius_sdk.metrics import Metrics
from lucius_sdk.replies.bus import BusReplies
from lucius_sdk.replies.http import HttpReplies
from lucius_sdk.replies.routing import Replies
from lucius_sdk.runtime.bus import MissingPackage, open_bus
from lucius_sdk.runtime.runtime import Limits, ServiceRuntime
from lucius_sdk.service import Service
from lucius_sdk.settings import ServiceSettings, SettingsError, load_settings
from lucius_sdk.tracing import configure_tracing
from lucius_sdk.workspace_io import open_catalogues, open_storages

_log = logging.getLogger("lucius_sdk")

FINE = 0
MISUSED = 2
ENVIRONMENT_FAILED = 3
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_MISSING = (OSError, ValueError, StoreError, StepError, MissingPackage)


class CannotStart(Exception):
    """Something that the service needs is not there."""


def run(service: Service, environ: Mapping[str, str]) -> int:
    """Serve until a signal says to stop. The answer is the process's exit code: 0 after a clean
    end, 2 if the settings are wrong, 3 if something that it needs to start is not there."""
    try:
        settings = load_settings(environ)
        name = _name_of(service, settings)
    except (SettingsError, ValueError) as error:
        print(error, file=sys.stderr)
        return MISUSED
    configure_logs(settings.log_level, settings.log_format)
    for warning in settings.warnings:
        _log.warning("settings.remark", extra={"remark": warning})
    try:
        asyncio.run(_serve(service, name, settings, environ))
    except CannotStart as error:
        print(f"{name} cannot start: {error}", file=sys.stderr)
        return ENVIRONMENT_FAILED
    return FINE


async def _serve(
    service: Service, name: str, settings: ServiceSettings, environ: Mapping[str, str]
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop.set)
    async with _running(service, name, settings, environ) as health:
        port = f"http://{settings.health_host}:{health.port}"
        print(f"ready service={name} health={port} bus={settings.bus_address}", flush=True)
        await stop.wait()
        _log.info("service.stopping", extra={"grace": settings.grace.total_seconds()})
        health.draining()


@asynccontextmanager
async def _running(
    service: Service, name: str, settings: ServiceSettings, environ: Mapping[str, str]
) -> AsyncIterator[HealthServer]:
    """Everything is open within; what was opened last is closed first."""
    async with AsyncExitStack() as stack:
        try:
            runtime, health = await _open(service, name, settings, environ, stack)
        except _MISSING as error:
            raise CannotStart(str(error)) from error
        try:
            await runtime.start()
        except Exception as error:
            _log.exception("hook.raised")
            raise CannotStart(f"a hook raised {headline(error)}") from error
        stack.push_async_callback(runtime.stop, settings.grace.total_seconds())
        _calm_the_collector()
        yield health


def _calm_the_collector() -> None:
    """What was loaded so far stays, and need not be looked through again and again; garbage with
    cycles is rare, so that steps under way need not be looked through so often either."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


async def _open(
    service: Service,
    name: str,
    settings: ServiceSettings,
    environ: Mapping[str, str],
    stack: AsyncExitStack,
) -> tuple[ServiceRuntime, HealthServer]:
    clock, metrics, tracing = SystemClock(), Metrics(), configure_tracing(environ, name)
    stack.push_async_callback(tracing.shutdown)
    blobs, tables = settings.blobs, settings.tables
    artifacts = open_catalogues(settings.artifacts_url, settings.artifacts_key)
    storages = open_storages(
        settings.workspace_root,
        settings.input_roots,
        blobs,
        artifacts,
        output_roots=settings.output_roots,
        s3_endpoint=settings.s3_endpoint,
        system=settings.system,
        allow_private_addresses=settings.allow_private_addresses,
        https_max_bytes=settings.https_max_bytes,
    )
    stack.callback(storages.close)
    store = open_store(settings.dedup_store.reveal(), tables=tables, blobs=blobs)
    stack.push_async_callback(store.close)
    bus = await stack.enter_async_context(open_bus(settings))
    replies = Replies(HttpReplies(clock.now), BusReplies(bus))
    stack.push_async_callback(replies.close)
    runtime = ServiceRuntime(
        service,
        name,
        bus,
        store,
        replies,
        storages,
        _limits_of(settings),
        metrics=metrics,
        tracing=tracing,
        clock=clock,
    )
    checks = {
        "start": runtime.check_started,
        "bus": runtime.check_bus,
        "store": store.check,
        "workspace": lambda: asyncio.to_thread(storages.check),
    }
    health = HealthServer(
        settings.health_host, settings.health_port, lambda: True, checks, metrics.render, clock
    )
    await health.start()
    stack.push_async_callback(health.stop)
    return runtime, health


def _limits_of(settings: ServiceSettings) -> Limits:
    return Limits(
        concurrency=settings.concurrency,
        ack=settings.ack_within.total_seconds(),
        skew=settings.clock_skew.total_seconds(),
        lanes=settings.lanes,
    )


def _name_of(service: Service, settings: ServiceSettings) -> str:
    name = settings.service or service.name
    if name is None:
        raise ValueError('the service has no name: set LUCIUS_SERVICE, or write Service("name")')
    if not service.handlers:
        raise ValueError(f"{name} has no step: decorate a function with @service.step(...)")
    return name
