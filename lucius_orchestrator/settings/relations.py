"""What the values say about each other."""

from collections.abc import Iterator
from os.path import abspath
from pathlib import Path

from lucius_azure.table_names import physical_name
from lucius_contract.refs import LOCAL_SCHEMES, REMOTE_SCHEMES
from lucius_contract.routing import LANES, directive_topic, reply_topic
from lucius_orchestrator.domain.aggregate import ReplyVia
from lucius_orchestrator.settings.settings import (
    ArtifactStore,
    CatalogueBackend,
    StorageBackend,
)
from lucius_settings.hosts import is_loopback
from lucius_settings.problems import SettingProblem
from lucius_settings.reading import Values

_CATALOGUES = {
    StorageBackend.MEMORY: CatalogueBackend.MEMORY,
    StorageBackend.SQLITE: CatalogueBackend.SQLITE,
    StorageBackend.POSTGRES: CatalogueBackend.POSTGRES,
}
_LANE_TOPICS = frozenset(
    topic for lane in range(LANES) for topic in (directive_topic(lane), reply_topic(lane))
)
_TABLES = ("ledger_table", "idempotency_table", "job_index_table", "inflight_table")


def contradictions(values: Values) -> Iterator[SettingProblem]:
    if values.get("storage_backend") is StorageBackend.POSTGRES and not _given(
        values, "database_url"
    ):
        yield SettingProblem(
            "LUCIUS_DATABASE_URL", "is required with LUCIUS_STORAGE_BACKEND=postgres"
        )
    yield from _table_contradictions(values)
    if values.get("auth") is False and not is_loopback(values.get("host", "localhost")):
        yield SettingProblem(
            "LUCIUS_AUTH",
            f"must be on while LUCIUS_HOST is {values['host']}; off is allowed on a loopback host"
            " alone, as 127.0.0.1",
        )
    yield from _webhook_contradictions(values)
    if values.get("servicebus_connection") and values.get("servicebus_namespace"):
        yield SettingProblem(
            "LUCIUS_SERVICEBUS_NAMESPACE",
            "must not be set beside LUCIUS_SERVICEBUS_CONNECTION: a key or an identity, not both",
        )
    if values.get("app_configuration_connection") and values.get("app_configuration_endpoint"):
        yield SettingProblem(
            "LUCIUS_APP_CONFIGURATION_ENDPOINT",
            "must not be set beside LUCIUS_APP_CONFIGURATION_CONNECTION: a key or an identity, not"
            " both",
        )
    yield from _artifact_contradictions(values)
    yield from _temporal_contradictions(values)
    yield from _token_contradictions(values)
    yield from _length_contradictions(values)
    yield from _window_contradictions(values)


def _webhook_contradictions(values: Values) -> Iterator[SettingProblem]:
    if _given(values, "webhook_hosts") and not (
        _given(values, "webhook_master_keys") or _given(values, "webhook_keys")
    ):
        yield SettingProblem(
            "LUCIUS_WEBHOOK_MASTER_KEYS",
            "is required with LUCIUS_WEBHOOK_HOSTS: what is sent is signed",
        )
    if {*values.get("webhook_master_keys", ())} & {*values.get("webhook_keys", ())}:
        yield SettingProblem(
            "LUCIUS_WEBHOOK_MASTER_KEYS",
            "must be other keys than LUCIUS_WEBHOOK_KEYS, which receivers know: from a master key"
            " the keys of all tenants can be computed",
        )


def _table_contradictions(values: Values) -> Iterator[SettingProblem]:
    if values.get("table_connection") and values.get("table_endpoint"):
        yield SettingProblem(
            "LUCIUS_TABLE_ENDPOINT",
            "must not be set beside LUCIUS_TABLE_CONNECTION: a key or an identity, not both",
        )
    if values.get("storage_backend") is not StorageBackend.AZURE_TABLES:
        return
    if not _given(values, "table_connection") and not _given(values, "table_endpoint"):
        yield SettingProblem(
            "LUCIUS_TABLE_CONNECTION",
            "is required with LUCIUS_STORAGE_BACKEND=azure_tables, unless LUCIUS_TABLE_ENDPOINT is"
            " set",
        )
    names = [values.get(field) for field in _TABLES]
    if None not in names and len({physical_name(str(name)) for name in names}) < len(names):
        yield SettingProblem(
            "LUCIUS_LEDGER_TABLE",
            "must differ from the names of the other tables in its letters and digits, and they"
            " from each other",
        )


def _token_contradictions(values: Values) -> Iterator[SettingProblem]:
    required = {"jwt_issuer": "LUCIUS_JWT_ISSUER", "jwt_audience": "LUCIUS_JWT_AUDIENCE"}
    for field, variable in required.items():
        if _given(values, "jwks_url") and not _given(values, field):
            yield SettingProblem(
                variable, "is required with LUCIUS_JWKS_URL: tokens made for others are refused"
            )


def _artifact_contradictions(values: Values) -> Iterator[SettingProblem]:
    if (
        values.get("artifacts.catalogue") is CatalogueBackend.POSTGRES
        and values.get("storage_backend") is not StorageBackend.POSTGRES
        and not _given(values, "database_url")
    ):
        yield SettingProblem(
            "LUCIUS_DATABASE_URL", "is required with LUCIUS_ARTIFACTS_CATALOGUE=postgres"
        )
    if values.get("artifacts.connection") and values.get("artifacts.endpoint"):
        yield SettingProblem(
            "LUCIUS_ARTIFACTS_ENDPOINT",
            "must not be set beside LUCIUS_ARTIFACTS_CONNECTION: a key or an identity, not both",
        )
    if values.get("artifacts.store") is ArtifactStore.AZURE_BLOB and not (
        _given(values, "artifacts.connection") or _given(values, "artifacts.endpoint")
    ):
        yield SettingProblem(
            "LUCIUS_ARTIFACTS_CONNECTION",
            "is required with LUCIUS_ARTIFACTS_STORE=azure_blob, unless LUCIUS_ARTIFACTS_ENDPOINT"
            " is set",
        )
    if values.get("artifacts.topic") in _LANE_TOPICS:
        yield SettingProblem(
            "LUCIUS_ARTIFACTS_TOPIC", "must not be a topic of directives or replies"
        )


def _temporal_contradictions(values: Values) -> Iterator[SettingProblem]:
    if values.get("temporal_tls") and not _given(values, "temporal_address"):
        yield SettingProblem(
            "LUCIUS_TEMPORAL_TLS", "is for a server that LUCIUS_TEMPORAL_ADDRESS names: set that"
        )
    if values.get("temporal_api_key") and not _given(values, "temporal_tls"):
        yield SettingProblem(
            "LUCIUS_TEMPORAL_API_KEY", "must not be sent in the clear: set LUCIUS_TEMPORAL_TLS=on"
        )


def _length_contradictions(values: Values) -> Iterator[SettingProblem]:
    lease, ceiling = values.get("step_policy.lease"), values.get("step_policy.ceiling")
    if lease and ceiling and lease > ceiling:
        yield SettingProblem(
            "LUCIUS_LEASE_SECONDS",
            "is longer than LUCIUS_STEP_RESULT_TIMEOUT_SECONDS; it must be as long or shorter",
        )


def _window_contradictions(values: Values) -> Iterator[SettingProblem]:
    least, most = values.get("dispatch_window.least"), values.get("dispatch_window.most")
    if least and most and least > most:
        yield SettingProblem(
            "LUCIUS_DISPATCH_WINDOW_MIN",
            "is above LUCIUS_DISPATCH_WINDOW_MAX; it must be as much or less",
        )


def _given(values: Values, field: str) -> bool:
    return field not in values or bool(values[field])


def in_vain(values: Values) -> Iterator[str]:
    """Variables that would have an effect if another one were set."""
    uses_postgres = (
        values["storage_backend"] is StorageBackend.POSTGRES
        or values["artifacts.catalogue"] is CatalogueBackend.POSTGRES
    )
    if values["database_url"] and not uses_postgres:
        yield (
            "LUCIUS_DATABASE_URL changes nothing while LUCIUS_STORAGE_BACKEND is"
            f" {values['storage_backend']}"
        )
    if (values["table_connection"] or values["table_endpoint"]) and (
        values["storage_backend"] is not StorageBackend.AZURE_TABLES
    ):
        yield (
            "LUCIUS_TABLE_CONNECTION and LUCIUS_TABLE_ENDPOINT change nothing while"
            f" LUCIUS_STORAGE_BACKEND is {values['storage_backend']}"
        )
    if (values["jwt_issuer"] or values["jwt_audience"]) and not values["jwks_url"]:
        yield (
            "LUCIUS_JWT_ISSUER and LUCIUS_JWT_AUDIENCE change nothing while LUCIUS_JWKS_URL is not"
            " set"
        )
    if (values["webhook_master_keys"] or values["webhook_keys"]) and not values["webhook_hosts"]:
        yield (
            "LUCIUS_WEBHOOK_MASTER_KEYS and LUCIUS_WEBHOOK_KEYS change nothing while"
            " LUCIUS_WEBHOOK_HOSTS is not set"
        )
    elif values["webhook_keys"]:
        yield (
            "LUCIUS_WEBHOOK_KEYS signs for all tenants, so that a receiver of one can pose as the"
            " control plane to the others: set LUCIUS_WEBHOOK_MASTER_KEYS, give each tenant the key"
            " of `lucius keys webhook TENANT`, then leave LUCIUS_WEBHOOK_KEYS out"
        )
    if values["temporal_address"] and (
        values["temporal_port"] or values["temporal_ui_port"] is not None
    ):
        yield (
            "LUCIUS_TEMPORAL_PORT and LUCIUS_TEMPORAL_UI_PORT change nothing while"
            " LUCIUS_TEMPORAL_ADDRESS is set"
        )
    yield from _registry_in_vain(values)
    yield from _artifacts_in_vain(values)


def _artifacts_in_vain(values: Values) -> Iterator[str]:
    store, catalogue = values["artifacts.store"], _catalogue_of(values)
    account = values["artifacts.connection"] or values["artifacts.endpoint"]
    if account and store is not ArtifactStore.AZURE_BLOB:
        yield (
            "LUCIUS_ARTIFACTS_CONNECTION and LUCIUS_ARTIFACTS_ENDPOINT change nothing while"
            f" LUCIUS_ARTIFACTS_STORE is {store}"
        )
    if (
        values["artifacts.keys"] or values["artifacts.base_url"]
    ) and store is not ArtifactStore.FILES:
        yield (
            "LUCIUS_ARTIFACTS_KEYS and LUCIUS_ARTIFACTS_BASE_URL change nothing while"
            f" LUCIUS_ARTIFACTS_STORE is {store}"
        )
    keeps_events = catalogue in (CatalogueBackend.SQLITE, CatalogueBackend.POSTGRES)
    if values["artifacts.topic"] and not keeps_events:
        yield (
            "LUCIUS_ARTIFACTS_TOPIC changes nothing while LUCIUS_ARTIFACTS_CATALOGUE is neither"
            " sqlite nor postgres"
        )


def _catalogue_of(values: Values) -> CatalogueBackend | None:
    """The one that is named, or the one of the ledger's kind."""
    named: CatalogueBackend | None = values["artifacts.catalogue"]
    return named or _CATALOGUES.get(values["storage_backend"])


def _registry_in_vain(values: Values) -> Iterator[str]:
    names = ("LUCIUS_APP_CONFIGURATION_CONNECTION", "LUCIUS_APP_CONFIGURATION_ENDPOINT")
    given = (values["app_configuration_connection"], values["app_configuration_endpoint"])
    named = [name for name, value in zip(names, given, strict=True) if value]
    if named and values["protocols_dir"]:
        yield f"LUCIUS_PROTOCOLS_DIR changes nothing while {named[0]} is set"
    if not named and (values["app_configuration_label"] or values["app_configuration_sentinel"]):
        yield (
            "LUCIUS_APP_CONFIGURATION_LABEL and LUCIUS_APP_CONFIGURATION_SENTINEL change nothing"
            f" while {' or '.join(names)} is not set"
        )


def completed(values: Values) -> Values:
    """With the defaults that follow from other values."""
    local = is_loopback(values["host"])
    data_dir: Path = values["data_dir"]
    derived = {
        "auth": not local,
        "api_keys_file": data_dir / "keys.json",
        "workspace_root": Path(abspath(data_dir), "workspace").as_uri(),
        "refs.schemes": LOCAL_SCHEMES if local else REMOTE_SCHEMES,
        "reply_via": ReplyVia.BUS if values["temporal_enabled"] else ReplyVia.HTTP,
        "app_configuration_sentinel": f"{values['app_configuration_prefix']}sentinel",
        "artifacts.catalogue": _catalogue_of(values),
    }
    return values | {field: value for field, value in derived.items() if values[field] is None}
