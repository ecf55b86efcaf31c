"""What counts when nothing is set, and what is read from what is set."""

from collections.abc import Mapping
from datetime import timedelta
from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_contract.refs import LOCAL_SCHEMES, REMOTE_SCHEMES, RefPolicy
from lucius_orchestrator.domain.aggregate import Engine, ReplyVia, StepPolicy
from lucius_orchestrator.domain.window import Limits
from lucius_orchestrator.settings import (
    SETTINGS,
    ArtifactSettings,
    ArtifactStore,
    CatalogueBackend,
    LogFormat,
    Secret,
    Settings,
    StorageBackend,
    Use,
    load_settings,
)
from lucius_settings.app_configuration import endpoint_of as app_configuration_endpoint
from lucius_settings.connections import endpoint_of
from lucius_settings.kinds import in_seconds, seconds

KEY, OLD_KEY = "k" * 32, "o" * 40
KEYED = "SharedAccessKeyName=local;SharedAccessKey=abc=="
CONNECTION = f"Endpoint=sb://127.0.0.1:5672;{KEYED};UseDevelopmentEmulator=true;"
IDENTIFIED = "Id=1-l0;Secret=YSBrZXk="
CONFIGURATION = f"Endpoint=https://lucius.azconfig.io;{IDENTIFIED}"
ACCOUNT = "DefaultEndpointsProtocol=https;AccountName=lucius;AccountKey=YSBrZXk="
POSTGRES = {
    "LUCIUS_STORAGE_BACKEND": "postgres",
    "LUCIUS_DATABASE_URL": "postgresql://u:p@db/lucius",
}
TABLES = {"LUCIUS_STORAGE_BACKEND": "azure_tables", "LUCIUS_TABLE_CONNECTION": ACCOUNT}
READ = [info for info in SETTINGS if info.use is Use.READ]


def test_nothing_set_is_one_machine_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings({}) == Settings(
        storage_backend=StorageBackend.SQLITE,
        data_dir=Path(".lucius"),
        database_url=None,
        table_connection=None,
        table_endpoint=None,
        ledger_table="lucius_ledger",
        idempotency_table="job-idempotency",
        job_index_table="job-index",
        inflight_table="job-inflight",
        host="127.0.0.1",
        port=8080,
        auth=False,
        api_keys_file=Path(".lucius/keys.json"),
        jwks_url=None,
        jwt_issuer=None,
        jwt_audience=None,
        callback_base_url=None,
        callback_keys=(),
        reply_via=ReplyVia.HTTP,
        protocols_dir=None,
        app_configuration_connection=None,
        app_configuration_endpoint=None,
        app_configuration_label=None,
        app_configuration_prefix="lucius:",
        app_configuration_sentinel="lucius:sentinel",
        app_configuration_refresh=timedelta(seconds=30),
        system="lucius",
        workspace_root=f"{tmp_path.as_uri()}/.lucius/workspace",
        workspace_retention=timedelta(days=30),
        refs=RefPolicy(schemes=LOCAL_SCHEMES),
        input_roots=(),
        output_roots=(),
        artifacts=ArtifactSettings(
            store=ArtifactStore.FILES,
            connection=None,
            endpoint=None,
            container="lucius-artifacts",
            catalogue=CatalogueBackend.SQLITE,
            keys=(),
            base_url=None,
            max_bytes=64 * 1024**3,
            session=timedelta(days=1),
            grace=timedelta(days=1),
            retention=timedelta(days=7),
            interval=timedelta(hours=1),
            topic=None,
            policy_url=None,
        ),
        webhook_hosts=frozenset(),
        webhook_master_keys=(),
        webhook_keys=(),
        webhook_allow_private=False,
        webhook_ca_file=None,
        max_inflight=None,
        max_inflight_per_tenant=None,
        max_inflight_burst=None,
        max_inflight_default=None,
        max_pending_per_lane=100_000,
        dispatch_window=Limits(1, 1000),
        dispatch_window_per_lane=1000,
        burst_share=0.5,
        max_body_bytes=1024 * 1024,
        request_timeout=timedelta(seconds=30),
        step_policy=StepPolicy(),
        clock_skew=timedelta(seconds=2),
        retention=timedelta(days=30),
        shutdown_grace=timedelta(seconds=30),
        log_level="INFO",
        log_format=LogFormat.JSON,
        servicebus_connection=None,
        servicebus_namespace=None,
        bus_port=5672,
        temporal_enabled=False,
        temporal_address=None,
        temporal_namespace="default",
        temporal_task_queue="lucius",
        temporal_execution_timeout=None,
        temporal_tls=False,
        temporal_api_key=None,
        temporal_port=0,
        temporal_ui_port=None,
        invoker_url=None,
        invoker_keys=(),
        warnings=(),
    )


GIVEN: dict[str, tuple[str, object]] = {
    "LUCIUS_STORAGE_BACKEND": ("memory", StorageBackend.MEMORY),
    "LUCIUS_DATA_DIR": ("/srv/lucius", Path("/srv/lucius")),
    "LUCIUS_DATABASE_URL": ("postgresql://u:p@db/lucius", Secret("postgresql://u:p@db/lucius")),
    "LUCIUS_TABLE_CONNECTION": (ACCOUNT, Secret(ACCOUNT)),
    "LUCIUS_TABLE_ENDPOINT": (
        "https://lucius.table.core.windows.net/",
        "https://lucius.table.core.windows.net",
    ),
    "LUCIUS_LEDGER_TABLE": ("our_ledger", "our_ledger"),
    "LUCIUS_IDEMPOTENCY_TABLE": ("our-entries", "our-entries"),
    "LUCIUS_JOB_INDEX_TABLE": ("OurIndex", "OurIndex"),
    "LUCIUS_INFLIGHT_TABLE": ("ourinflight1", "ourinflight1"),
    "LUCIUS_RETENTION_DAYS": ("7", timedelta(days=7)),
    "LUCIUS_HOST": ("0.0.0.0", "0.0.0.0"),  # noqa: S104
    "LUCIUS_PORT": ("0", 0),
    "LUCIUS_MAX_BODY_BYTES": ("65536", 65536),
    "LUCIUS_REQUEST_TIMEOUT_SECONDS": ("0.5", timedelta(milliseconds=500)),
    "LUCIUS_SHUTDOWN_GRACE_SECONDS": ("0", timedelta(0)),
    "LUCIUS_AUTH": ("On", True),
    "LUCIUS_API_KEYS_FILE": ("/etc/lucius/keys.json", Path("/etc/lucius/keys.json")),
    "LUCIUS_JWKS_URL": ("https://login.example/keys?p=a", "https://login.example/keys?p=a"),
    "LUCIUS_JWT_ISSUER": ("https://login.example/", "https://login.example/"),
    "LUCIUS_JWT_AUDIENCE": ("lucius", "lucius"),
    "LUCIUS_REPLY_VIA": ("bus", ReplyVia.BUS),
    "LUCIUS_CALLBACK_BASE_URL": ("https://lucius.example/api/", "https://lucius.example/api"),
    "LUCIUS_CALLBACK_KEYS": (f"{KEY}, {OLD_KEY}", (Secret(KEY), Secret(OLD_KEY))),
    "LUCIUS_PROTOCOLS_DIR": ("protocols", Path("protocols")),
    "LUCIUS_APP_CONFIGURATION_CONNECTION": (CONFIGURATION, Secret(CONFIGURATION)),
    "LUCIUS_APP_CONFIGURATION_ENDPOINT": (
        "https://lucius.azconfig.io/",
        "https://lucius.azconfig.io",
    ),
    "LUCIUS_APP_CONFIGURATION_LABEL": ("eu/prod", "eu/prod"),
    "LUCIUS_APP_CONFIGURATION_PREFIX": ("team/lucius/", "team/lucius/"),
    "LUCIUS_APP_CONFIGURATION_SENTINEL": ("team/changed", "team/changed"),
    "LUCIUS_APP_CONFIGURATION_REFRESH_SECONDS": ("60", timedelta(minutes=1)),
    "LUCIUS_SYSTEM": ("lucius-2", "lucius-2"),
    "LUCIUS_WORKSPACE_ROOT": ("az://work/jobs", "az://work/jobs"),
    "LUCIUS_WORKSPACE_RETENTION_DAYS": ("0", timedelta(0)),
    "LUCIUS_ARTIFACTS_STORE": ("azure_blob", ArtifactStore.AZURE_BLOB),
    "LUCIUS_ARTIFACTS_CONNECTION": (ACCOUNT, Secret(ACCOUNT)),
    "LUCIUS_ARTIFACTS_ENDPOINT": (
        "https://lucius.blob.core.windows.net/",
        "https://lucius.blob.core.windows.net",
    ),
    "LUCIUS_ARTIFACTS_CONTAINER": ("our-artifacts-2", "our-artifacts-2"),
    "LUCIUS_ARTIFACTS_CATALOGUE": ("Postgres", CatalogueBackend.POSTGRES),
    "LUCIUS_ARTIFACTS_KEYS": (f"{KEY},{OLD_KEY}", (Secret(KEY), Secret(OLD_KEY))),
    "LUCIUS_ARTIFACTS_BASE_URL": ("https://lucius.example/", "https://lucius.example"),
    "LUCIUS_ARTIFACTS_MAX_BYTES": ("1", 1),
    "LUCIUS_ARTIFACTS_SESSION_HOURS": ("72", timedelta(days=3)),
    "LUCIUS_ARTIFACTS_GRACE_HOURS": ("0", timedelta(0)),
    "LUCIUS_ARTIFACTS_RETENTION_DAYS": ("0", timedelta(0)),
    "LUCIUS_ARTIFACTS_GC_SECONDS": ("0", timedelta(0)),
    "LUCIUS_ARTIFACTS_TOPIC": ("artifact-events", "artifact-events"),
    "LUCIUS_ARTIFACTS_POLICY_URL": ("https://policy.example/a", "https://policy.example/a"),
    "LUCIUS_REF_SCHEMES": ("https, AZ", frozenset({"https", "az"})),
    "LUCIUS_REF_PLACES": (
        "Files.example,.below.example,$web,10.0.0.1,::1",
        frozenset({"files.example", ".below.example", "$web", "10.0.0.1", "::1"}),
    ),
    "LUCIUS_INPUT_ROOTS": (
        "/in,file://localhost/also, az://inputs/a%20b,/in/",
        ("file:///in/", "file:///also/", "az://inputs/a%20b/"),
    ),
    "LUCIUS_OUTPUT_ROOTS": ("s3://answers/2026/,/", ("s3://answers/2026/", "file:///")),
    "LUCIUS_ALLOW_PRIVATE_ADDRESSES": ("on", True),
    "LUCIUS_WEBHOOK_HOSTS": ("hooks.example", frozenset({"hooks.example"})),
    "LUCIUS_WEBHOOK_MASTER_KEYS": (KEY, (Secret(KEY),)),
    "LUCIUS_WEBHOOK_KEYS": ("b" * 32, (Secret("b" * 32),)),
    "LUCIUS_WEBHOOK_ALLOW_PRIVATE": ("on", True),
    "LUCIUS_WEBHOOK_CA_FILE": ("ca.pem", Path("ca.pem")),
    "LUCIUS_MAX_INFLIGHT": ("1000", 1000),
    "LUCIUS_MAX_INFLIGHT_PER_TENANT": ("100", 100),
    "LUCIUS_MAX_INFLIGHT_BURST": ("50", 50),
    "LUCIUS_MAX_INFLIGHT_DEFAULT": ("0", 0),
    "LUCIUS_MAX_PENDING_PER_LANE": ("1", 1),
    "LUCIUS_DISPATCH_WINDOW_MIN": ("5", 5),
    "LUCIUS_DISPATCH_WINDOW_MAX": ("1000000", 1_000_000),
    "LUCIUS_DISPATCH_WINDOW_PER_LANE": ("20", 20),
    "LUCIUS_BURST_SHARE": ("0.25", 0.25),
    "LUCIUS_MAX_ATTEMPTS": ("5", 5),
    "LUCIUS_ACK_TIMEOUT_SECONDS": ("10", timedelta(seconds=10)),
    "LUCIUS_LEASE_SECONDS": ("60", timedelta(minutes=1)),
    "LUCIUS_STEP_RESULT_TIMEOUT_SECONDS": ("3600", timedelta(hours=1)),
    "LUCIUS_MAX_CLOCK_SKEW": ("0.25", timedelta(milliseconds=250)),
    "LUCIUS_LOG_LEVEL": ("debug", "DEBUG"),
    "LUCIUS_LOG_FORMAT": ("text", LogFormat.TEXT),
    "LUCIUS_SERVICEBUS_CONNECTION": (CONNECTION, Secret(CONNECTION)),
    "LUCIUS_SERVICEBUS_NAMESPACE": ("bus.servicebus.windows.net", "bus.servicebus.windows.net"),
    "LUCIUS_BUS_PORT": ("0", 0),
    "LUCIUS_TEMPORAL_ENABLED": ("on", True),
    "LUCIUS_TEMPORAL_ADDRESS": ("[::1]:7233", "[::1]:7233"),
    "LUCIUS_TEMPORAL_NAMESPACE": ("lucius.a2dd6", "lucius.a2dd6"),
    "LUCIUS_TEMPORAL_TASK_QUEUE": ("lucius-2", "lucius-2"),
    "LUCIUS_TEMPORAL_WORKFLOW_EXECUTION_TIMEOUT": ("172800", timedelta(days=2)),
    "LUCIUS_TEMPORAL_TLS": ("on", True),
    "LUCIUS_TEMPORAL_API_KEY": ("eyJ.a-b_c=", Secret("eyJ.a-b_c=")),
    "LUCIUS_TEMPORAL_PORT": ("7234", 7234),
    "LUCIUS_TEMPORAL_UI_PORT": ("0", 0),
    "LUCIUS_INVOKER_URL": ("http://invoker:8080/", "http://invoker:8080"),
    "LUCIUS_INVOKER_KEYS": (f"{KEY},{OLD_KEY}", (Secret(KEY), Secret(OLD_KEY))),
}
NOT_WITH_THE_OTHERS = (
    "LUCIUS_SERVICEBUS_NAMESPACE",
    "LUCIUS_APP_CONFIGURATION_ENDPOINT",
    "LUCIUS_TABLE_ENDPOINT",
    "LUCIUS_ARTIFACTS_ENDPOINT",
)


def test_every_value_that_can_be_set_is_tried_here() -> None:
    fields = {info.variable for info in READ if info.field is not None}
    assert fields == GIVEN.keys()


def test_every_variable_sets_its_own_field() -> None:
    environ = {
        variable: text
        for variable, (text, _) in GIVEN.items()
        if variable not in NOT_WITH_THE_OTHERS
    }
    settings = load_settings(environ)
    for info in READ:
        if info.variable in environ and info.field is not None:
            assert attrgetter(info.field)(settings) == GIVEN[info.variable][1], info.variable


@pytest.mark.parametrize(
    ("environ", "is_shared"),
    [
        ({}, False),
        ({"LUCIUS_BUS_PORT": "0"}, False),
        ({"LUCIUS_SERVICEBUS_CONNECTION": CONNECTION}, True),
        ({"LUCIUS_SERVICEBUS_NAMESPACE": "bus.servicebus.windows.net"}, True),
    ],
)
def test_a_bus_is_shared_when_one_is_named(environ: Mapping[str, str], is_shared: bool) -> None:
    assert load_settings(environ).shares_bus is is_shared


@pytest.mark.parametrize("variable", NOT_WITH_THE_OTHERS)
def test_what_stands_for_a_key_sets_its_own_field_alone(variable: str) -> None:
    text, value = GIVEN[variable]
    (info,) = [info for info in READ if info.variable == variable]
    assert info.field is not None
    assert attrgetter(info.field)(load_settings({variable: text})) == value


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        (CONNECTION, "sb://127.0.0.1:5672"),
        (f"endpoint=sb://bus.example/;{KEYED}", "sb://bus.example"),
        (
            "Endpoint=sb://bus.example;SharedAccessSignature=SharedAccessSignature sr=x&sig=y;",
            "sb://bus.example",
        ),
        (f"{KEYED};Endpoint=sb://[::1]:5672/;UseDevelopmentEmulator=false;", "sb://[::1]:5672"),
    ],
)
def test_a_connection_string_says_where_the_bus_is(text: str, endpoint: str) -> None:
    connection = load_settings({"LUCIUS_SERVICEBUS_CONNECTION": text}).servicebus_connection
    assert connection is not None
    assert connection.reveal() == text
    assert endpoint_of(connection) == endpoint


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        (CONFIGURATION, "https://lucius.azconfig.io"),
        (f"{IDENTIFIED};Endpoint=https://Lucius.AzConfig.io/;", "https://lucius.azconfig.io"),
        (f"endpoint=https://lucius.azconfig.io:443;{IDENTIFIED}", "https://lucius.azconfig.io"),
        (f"Endpoint=http://127.0.0.1:8483/;{IDENTIFIED}", "http://127.0.0.1:8483"),
        (f"Endpoint=http://[::1]:8483;{IDENTIFIED}", "http://[::1]:8483"),
        (f"Endpoint=http://localhost:80;{IDENTIFIED}", "http://localhost"),
    ],
)
def test_a_connection_string_of_app_configuration_gets_the_form_that_its_client_signs(
    text: str, endpoint: str
) -> None:
    settings = load_settings({"LUCIUS_APP_CONFIGURATION_CONNECTION": text})
    connection = settings.app_configuration_connection
    assert connection is not None
    assert connection.reveal() == f"Endpoint={endpoint};{IDENTIFIED}"
    assert app_configuration_endpoint(connection) == endpoint


def test_the_sentinel_stands_below_the_prefix_unless_it_is_set() -> None:
    settings = load_settings({"LUCIUS_APP_CONFIGURATION_PREFIX": "orders."})
    assert settings.app_configuration_sentinel == "orders.sentinel"


@pytest.mark.parametrize(
    ("environ", "is_used"),
    [
        ({}, False),
        ({"LUCIUS_APP_CONFIGURATION_PREFIX": "orders."}, False),
        ({"LUCIUS_APP_CONFIGURATION_CONNECTION": CONFIGURATION}, True),
        ({"LUCIUS_APP_CONFIGURATION_ENDPOINT": "https://lucius.azconfig.io"}, True),
    ],
)
def test_app_configuration_is_used_when_one_is_named(
    environ: Mapping[str, str], is_used: bool
) -> None:
    assert load_settings(environ).uses_app_configuration is is_used


@pytest.mark.parametrize(
    ("environ", "catalogue"),
    [
        ({}, CatalogueBackend.SQLITE),
        ({"LUCIUS_STORAGE_BACKEND": "memory"}, CatalogueBackend.MEMORY),
        (POSTGRES, CatalogueBackend.POSTGRES),
        (TABLES, None),
        (TABLES | {"LUCIUS_ARTIFACTS_CATALOGUE": "sqlite"}, CatalogueBackend.SQLITE),
    ],
    ids=str,
)
def test_the_catalogue_is_of_the_ledgers_kind_unless_it_is_named(
    environ: Mapping[str, str], catalogue: CatalogueBackend | None
) -> None:
    artifacts = load_settings(environ).artifacts
    assert artifacts.catalogue is catalogue
    assert artifacts.is_on is (catalogue is not None)


def test_artifacts_can_be_switched_off() -> None:
    assert not load_settings({"LUCIUS_ARTIFACTS_STORE": "off"}).artifacts.is_on


def test_the_way_of_replying_is_part_of_the_policy_of_steps() -> None:
    assert load_settings({"LUCIUS_REPLY_VIA": "bus"}).step_policy == StepPolicy(
        reply_via=ReplyVia.BUS
    )


def test_services_answer_over_the_bus_where_temporal_drives_new_jobs_unless_it_is_set() -> None:
    enabled = {"LUCIUS_TEMPORAL_ENABLED": "on"}
    assert load_settings(enabled).step_policy.reply_via is ReplyVia.BUS
    said = load_settings(enabled | {"LUCIUS_REPLY_VIA": "http"})
    assert (said.reply_via, said.step_policy.reply_via) == (ReplyVia.HTTP, ReplyVia.HTTP)


@pytest.mark.parametrize(
    ("environ", "engine", "knows_temporal"),
    [
        ({}, Engine.LEDGER, False),
        ({"LUCIUS_TEMPORAL_ENABLED": "on"}, Engine.TEMPORAL, True),
        ({"LUCIUS_TEMPORAL_ADDRESS": "temporal:7233"}, Engine.LEDGER, True),
    ],
)
def test_a_server_that_is_named_drives_its_jobs_on_when_new_ones_have_another_engine(
    environ: Mapping[str, str], engine: Engine, knows_temporal: bool
) -> None:
    settings = load_settings(environ)
    assert (settings.engine, settings.knows_temporal) == (engine, knows_temporal)


def test_what_is_fixed_may_be_said() -> None:
    environ = {info.variable: info.default for info in READ if info.default is not None}
    assert load_settings(environ) == load_settings({})


def test_what_is_empty_or_blank_is_not_set() -> None:
    assert load_settings({info.variable: " " for info in SETTINGS}) == load_settings({})


def test_blanks_around_a_value_are_dropped() -> None:
    assert load_settings({"LUCIUS_PORT": " 9000\n"}).port == 9000


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST"])
def test_a_loopback_host_needs_no_credentials_and_may_name_files(host: str) -> None:
    settings = load_settings({"LUCIUS_HOST": host})
    assert not settings.auth
    assert settings.refs.schemes == LOCAL_SCHEMES


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "lucius.example", "127.1"])  # noqa: S104
def test_any_other_host_asks_for_credentials_and_names_no_files(host: str) -> None:
    settings = load_settings({"LUCIUS_HOST": host})
    assert settings.auth
    assert settings.refs.schemes == REMOTE_SCHEMES


@pytest.mark.parametrize(
    ("environ", "root"),
    [
        ({"LUCIUS_DATA_DIR": "/srv/a b"}, "file:///srv/a%20b/workspace"),
        ({"LUCIUS_DATA_DIR": "/srv/x/../data/"}, "file:///srv/data/workspace"),
        ({"LUCIUS_WORKSPACE_ROOT": "file:///mnt/work"}, "file:///mnt/work"),
    ],
)
def test_the_workspace_lies_in_the_data_folder_unless_it_is_set(
    environ: Mapping[str, str], root: str
) -> None:
    assert load_settings(environ).workspace_root == root


def test_the_keys_file_follows_the_data_folder() -> None:
    settings = load_settings({"LUCIUS_DATA_DIR": "/srv/lucius"})
    assert settings.api_keys_file == Path("/srv/lucius/keys.json")


@given(st.integers(0, 10**9))
def test_a_length_is_read_as_it_was_written(milliseconds: int) -> None:
    length = timedelta(milliseconds=milliseconds)
    kind = seconds(timedelta(0), timedelta(days=366))
    assert kind.read(kind.write(length)) == length
    assert kind.write is in_seconds
