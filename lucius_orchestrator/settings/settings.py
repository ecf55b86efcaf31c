"""The values that a process runs with."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from lucius_contract.refs import RefPolicy
from lucius_orchestrator.domain.aggregate import Engine, ReplyVia, StepPolicy
from lucius_orchestrator.domain.window import Limits
from lucius_settings.secret import Secret


class StorageBackend(StrEnum):
    SQLITE = "sqlite"
    POSTGRES = "postgres"
    AZURE_TABLES = "azure_tables"
    MEMORY = "memory"


class ArtifactStore(StrEnum):
    FILES = "files"
    AZURE_BLOB = "azure_blob"
    OFF = "off"


class CatalogueBackend(StrEnum):
    SQLITE = "sqlite"
    POSTGRES = "postgres"
    MEMORY = "memory"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class ArtifactSettings:
    """`catalogue` is None where none is named and the ledger's kind has none; `interval` is that of
    collections; zero: none are run."""

    store: ArtifactStore
    connection: Secret | None
    endpoint: str | None
    container: str
    catalogue: CatalogueBackend | None
    keys: tuple[Secret, ...]
    base_url: str | None
    max_bytes: int
    session: timedelta
    grace: timedelta
    retention: timedelta
    interval: timedelta
    topic: str | None
    policy_url: str | None

    @property
    def is_on(self) -> bool:
        return self.store is not ArtifactStore.OFF and self.catalogue is not None

    @property
    def events_topic(self) -> str | None:
        """The topic that there must be. A catalogue in memory keeps no events for it."""
        keeps_events = self.is_on and self.catalogue is not CatalogueBackend.MEMORY
        return self.topic if keeps_events else None


@dataclass(frozen=True, slots=True)
class Settings:
    """What each value means stands in `SETTINGS`, beside the variable that sets it.

    None is what no default replaces: no limit of the operator's own, no such part, or something
    that is known only later, as the address of the API. `warnings` are for whoever starts the
    process: variables that were set and change nothing.
    """

    storage_backend: StorageBackend
    data_dir: Path
    database_url: Secret | None
    table_connection: Secret | None
    table_endpoint: str | None
    ledger_table: str
    idempotency_table: str
    job_index_table: str
    inflight_table: str
    host: str
    port: int
    auth: bool
    api_keys_file: Path
    jwks_url: str | None
    jwt_issuer: str | None
    jwt_audience: str | None
    callback_base_url: str | None
    callback_keys: tuple[Secret, ...]
    reply_via: ReplyVia
    protocols_dir: Path | None
    app_configuration_connection: Secret | None
    app_configuration_endpoint: str | None
    app_configuration_label: str | None
    app_configuration_prefix: str
    app_configuration_sentinel: str
    app_configuration_refresh: timedelta
    system: str
    workspace_root: str
    workspace_retention: timedelta
    refs: RefPolicy
    input_roots: tuple[str, ...]
    output_roots: tuple[str, ...]
    artifacts: ArtifactSettings
    webhook_hosts: frozenset[str]
    webhook_master_keys: tuple[Secret, ...]
    webhook_keys: tuple[Secret, ...]
    webhook_allow_private: bool
    webhook_ca_file: Path | None
    max_inflight: int | None
    max_inflight_per_tenant: int | None
    max_inflight_burst: int | None
    max_inflight_default: int | None
    max_pending_per_lane: int
    dispatch_window: Limits
    dispatch_window_per_lane: int
    burst_share: float
    max_body_bytes: int
    request_timeout: timedelta
    step_policy: StepPolicy
    clock_skew: timedelta
    retention: timedelta
    shutdown_grace: timedelta
    log_level: str
    log_format: LogFormat
    servicebus_connection: Secret | None
    servicebus_namespace: str | None
    bus_port: int
    temporal_enabled: bool
    temporal_address: str | None
    temporal_namespace: str
    temporal_task_queue: str
    temporal_execution_timeout: timedelta | None
    temporal_tls: bool
    temporal_api_key: Secret | None
    temporal_port: int
    temporal_ui_port: int | None
    invoker_url: str | None
    invoker_keys: tuple[Secret, ...]
    warnings: tuple[str, ...]

    @property
    def uses_app_configuration(self) -> bool:
        """Whether protocols come from there, and not from files."""
        return bool(self.app_configuration_connection or self.app_configuration_endpoint)

    @property
    def shares_bus(self) -> bool:
        """Whether the bus is one that other processes reach too, and not inside this one."""
        return self.servicebus_connection is not None or self.servicebus_namespace is not None

    @property
    def engine(self) -> Engine:
        """Of new jobs."""
        return Engine.TEMPORAL if self.temporal_enabled else Engine.LEDGER

    @property
    def knows_temporal(self) -> bool:
        """Whether jobs that Temporal drives can go on: new ones are made, or earlier ones end."""
        return self.temporal_enabled or self.temporal_address is not None
