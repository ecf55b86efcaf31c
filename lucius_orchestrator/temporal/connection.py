"""Where the Temporal server is, and the way to it."""

import logging
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache

from temporalio.client import Client
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)
from temporalio.service import GrpcCompression

_log = logging.getLogger("temporalio.core")
_CONNECT_TIMEOUT = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class TemporalOptions:
    """`identity` is how Temporal's own tools name this process; by itself, process and host."""

    address: str = "127.0.0.1:7233"
    namespace: str = "default"
    task_queue: str = "lucius"
    tls: bool = False
    api_key: str | None = field(default=None, repr=False)
    identity: str | None = None


async def connected(options: TemporalOptions) -> Client:
    """`RuntimeError` if the server cannot be reached."""
    return await Client.connect(
        options.address,
        namespace=options.namespace,
        tls=options.tls or None,
        api_key=options.api_key,
        identity=options.identity,
        connect_timeout=_CONNECT_TIMEOUT,
        runtime=_runtime(),
        # What is sent is small; only a far server is worth the effort.
        grpc_compression=GrpcCompression.GZIP if options.tls else GrpcCompression.NONE,
    )


@cache
def _runtime() -> Runtime:
    """One for the process, since each has threads of its own. What it logs goes the way of all
    other logs instead of straight to the console."""
    levels = TelemetryFilter(core_level="WARN", other_level="ERROR")
    forwarding = LogForwardingConfig(
        _log, append_target_to_name=False, prepend_target_on_message=False
    )
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(levels, forwarding)))
