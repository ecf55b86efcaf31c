"""The values that a service runs with."""

from dataclasses import dataclass
from datetime import timedelta

from lucius_azure.storage import StorageAccount
from lucius_logs.formatting import LogFormat
from lucius_settings.connections import endpoint_of
from lucius_settings.secret import Secret


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What each value means stands in `SETTINGS`, beside the variable that sets it.

    Folders are absolute paths, or az or s3 uris. Either `servicebus_connection` or
    `servicebus_namespace` is there, never both; and never both ways to one service of a storage
    account. `service` is None where the program itself has to name the service. `warnings` are for
    whoever starts the process: variables that were set and change nothing, or are risky.
    """

    service: str | None
    servicebus_connection: Secret | None
    servicebus_namespace: str | None
    lanes: tuple[int, ...]
    workspace_root: str
    system: str
    input_roots: tuple[str, ...]
    output_roots: tuple[str, ...]
    allow_private_addresses: bool
    https_max_bytes: int
    dedup_store: Secret
    table_connection: Secret | None
    table_endpoint: str | None
    blob_connection: Secret | None
    blob_endpoint: str | None
    s3_endpoint: str | None
    artifacts_url: str | None
    artifacts_key: Secret | None
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
    def tables(self) -> StorageAccount | None:
        """The account whose tables are used; None if there is none."""
        return _account(self.table_connection, self.table_endpoint)

    @property
    def blobs(self) -> StorageAccount | None:
        """The same for blobs."""
        return _account(self.blob_connection, self.blob_endpoint)

    @property
    def bus_address(self) -> str:
        """Where the bus is, without anything secret."""
        if self.servicebus_connection is None:
            return f"sb://{self.servicebus_namespace}"
        return endpoint_of(self.servicebus_connection)


def _account(connection: Secret | None, endpoint: str | None) -> StorageAccount | None:
    return StorageAccount(connection, endpoint) if connection or endpoint else None
