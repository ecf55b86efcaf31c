"""The values that a service runs with."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from lucius_logs.formatting import LogFormat
from lucius_settings.connections import endpoint_of
from lucius_settings.secret import Secret


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What each value means stands in `SETTINGS`, beside the variable that sets it.

    Folders are absolute. Either `servicebus_connection` or `servicebus_namespace` is there, never
    both. `service` is None where the program itself has to name the service. `warnings` are for
    whoever starts the process: variables that were set and change nothing, or are risky.
    """

    service: str | None
    servicebus_connection: Secret | None
    servicebus_namespace: str | None
    lanes: tuple[int, ...]
    workspace_root: Path
    input_roots: tuple[Path, ...]
    dedup_store: Secret
    concurrency: int
    ack_within: timedelta
    grace: timedelta
    clock_skew: timedelta
    health_host: str
    health_port: int
    log_level: str
    log_format: LogFormat
    warnings: tuple[str, ...] = ()

    @property
    def bus_address(self) -> str:
        """Where the bus is, without anything secret."""
        if self.servicebus_connection is None:
            return f"sb://{self.servicebus_namespace}"
        return endpoint_of(self.servicebus_connection)
