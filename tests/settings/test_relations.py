"""Values that do not go together, and values that have no effect alone."""

from collections.abc import Mapping

import pytest

from lucius_contract.routing import reply_topic
from lucius_orchestrator.settings import SETTINGS, SettingsError, Use, load_settings

KEY = "k" * 32
JWKS = {"LUCIUS_JWKS_URL": "https://login.example/keys"}
POSTGRES = {"LUCIUS_STORAGE_BACKEND": "postgres"}
TABLES = {"LUCIUS_STORAGE_BACKEND": "azure_tables"}
ACCOUNT = {"LUCIUS_TABLE_CONNECTION": "AccountName=lucius;AccountKey=YSBrZXk="}
BLOBS = {
    "LUCIUS_ARTIFACTS_STORE": "azure_blob",
    "LUCIUS_ARTIFACTS_CONNECTION": ACCOUNT["LUCIUS_TABLE_CONNECTION"],
}
HOOKS = {"LUCIUS_WEBHOOK_HOSTS": "hooks.example"}
BUS = {
    "LUCIUS_SERVICEBUS_CONNECTION": "Endpoint=sb://bus.example/;SharedAccessKeyName=a;"
    "SharedAccessKey=b"
}
CONFIGURATION = {
    "LUCIUS_APP_CONFIGURATION_CONNECTION": "Endpoint=https://lucius.azconfig.io;Id=a;"
    "Secret=YSBrZXk="
}
TEMPORAL = {"LUCIUS_TEMPORAL_ADDRESS": "temporal.example:7233"}
EVERYWHERE = {"LUCIUS_HOST": "0.0.0.0"}  # noqa: S104


def refused(environ: Mapping[str, str]) -> dict[str, str]:
    with pytest.raises(SettingsError) as refusal:
        load_settings(environ)
    assert len({problem.variable for problem in refusal.value.problems}) == len(
        refusal.value.problems
    )
    return dict(refusal.value.problems)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (
            POSTGRES,
            {"LUCIUS_DATABASE_URL": "is required with LUCIUS_STORAGE_BACKEND=postgres"},
        ),
        (
            TABLES,
            {
                "LUCIUS_TABLE_CONNECTION": "is required with LUCIUS_STORAGE_BACKEND=azure_tables,"
                " unless LUCIUS_TABLE_ENDPOINT is set"
            },
        ),
        (
            ACCOUNT | {"LUCIUS_TABLE_ENDPOINT": "https://lucius.table.core.windows.net"},
            {
                "LUCIUS_TABLE_ENDPOINT": "must not be set beside LUCIUS_TABLE_CONNECTION: a key or"
                " an identity, not both"
            },
        ),
        (
            TABLES | ACCOUNT | {"LUCIUS_INFLIGHT_TABLE": "job_index"},
            {
                "LUCIUS_LEDGER_TABLE": "must differ from the names of the other tables in its"
                " letters and digits, and they from each other"
            },
        ),
        (
            EVERYWHERE | {"LUCIUS_AUTH": "off"},
            {
                "LUCIUS_AUTH": "must be on while LUCIUS_HOST is 0.0.0.0; off is allowed on a"
                " loopback host alone, as 127.0.0.1"
            },
        ),
        (
            HOOKS,
            {
                "LUCIUS_WEBHOOK_MASTER_KEYS": "is required with LUCIUS_WEBHOOK_HOSTS: what is sent"
                " is signed"
            },
        ),
        (
            HOOKS | {"LUCIUS_WEBHOOK_MASTER_KEYS": KEY, "LUCIUS_WEBHOOK_KEYS": KEY},
            {
                "LUCIUS_WEBHOOK_MASTER_KEYS": "must be other keys than LUCIUS_WEBHOOK_KEYS, which"
                " receivers know: from a master key the keys of all tenants can be computed"
            },
        ),
        (
            JWKS | {"LUCIUS_JWT_AUDIENCE": "lucius"},
            {
                "LUCIUS_JWT_ISSUER": "is required with LUCIUS_JWKS_URL: tokens made for others are"
                " refused"
            },
        ),
        (
            JWKS,
            {
                "LUCIUS_JWT_ISSUER": "is required with LUCIUS_JWKS_URL: tokens made for others are"
                " refused",
                "LUCIUS_JWT_AUDIENCE": "is required with LUCIUS_JWKS_URL: tokens made for others"
                " are refused",
            },
        ),
        (
            BUS | {"LUCIUS_SERVICEBUS_NAMESPACE": "bus.servicebus.windows.net"},
            {
                "LUCIUS_SERVICEBUS_NAMESPACE": "must not be set beside"
                " LUCIUS_SERVICEBUS_CONNECTION: a key or an identity, not both"
            },
        ),
        (
            CONFIGURATION | {"LUCIUS_APP_CONFIGURATION_ENDPOINT": "https://lucius.azconfig.io"},
            {
                "LUCIUS_APP_CONFIGURATION_ENDPOINT": "must not be set beside"
                " LUCIUS_APP_CONFIGURATION_CONNECTION: a key or an identity, not both"
            },
        ),
        (
            {"LUCIUS_ARTIFACTS_CATALOGUE": "postgres"},
            {"LUCIUS_DATABASE_URL": "is required with LUCIUS_ARTIFACTS_CATALOGUE=postgres"},
        ),
        (
            POSTGRES | {"LUCIUS_ARTIFACTS_CATALOGUE": "postgres"},
            {"LUCIUS_DATABASE_URL": "is required with LUCIUS_STORAGE_BACKEND=postgres"},
        ),
        (
            {"LUCIUS_ARTIFACTS_STORE": "azure_blob"},
            {
                "LUCIUS_ARTIFACTS_CONNECTION": "is required with LUCIUS_ARTIFACTS_STORE=azure_blob,"
                " unless LUCIUS_ARTIFACTS_ENDPOINT is set"
            },
        ),
        (
            BLOBS | {"LUCIUS_ARTIFACTS_ENDPOINT": "https://lucius.blob.core.windows.net"},
            {
                "LUCIUS_ARTIFACTS_ENDPOINT": "must not be set beside LUCIUS_ARTIFACTS_CONNECTION: a"
                " key or an identity, not both"
            },
        ),
        (
            {"LUCIUS_ARTIFACTS_TOPIC": reply_topic(3)},
            {"LUCIUS_ARTIFACTS_TOPIC": "must not be a topic of directives or replies"},
        ),
        (
            {"LUCIUS_TEMPORAL_TLS": "on"},
            {"LUCIUS_TEMPORAL_TLS": "is for a server that LUCIUS_TEMPORAL_ADDRESS names: set that"},
        ),
        (
            TEMPORAL | {"LUCIUS_TEMPORAL_API_KEY": "key"},
            {
                "LUCIUS_TEMPORAL_API_KEY": "must not be sent in the clear: set"
                " LUCIUS_TEMPORAL_TLS=on"
            },
        ),
        (
            {"LUCIUS_DISPATCH_WINDOW_MIN": "1001"},
            {
                "LUCIUS_DISPATCH_WINDOW_MIN": "is above LUCIUS_DISPATCH_WINDOW_MAX; it must be as"
                " much or less",
            },
        ),
        (
            {"LUCIUS_LEASE_SECONDS": "7201"},
            {
                "LUCIUS_LEASE_SECONDS": "is longer than LUCIUS_STEP_RESULT_TIMEOUT_SECONDS; it must"
                " be as long or shorter"
            },
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    environ: Mapping[str, str], expected: Mapping[str, str]
) -> None:
    assert refused(environ) == expected


@pytest.mark.parametrize(
    "environ",
    [
        POSTGRES | {"LUCIUS_DATABASE_URL": "postgresql:///lucius"},
        TABLES | ACCOUNT,
        TABLES | {"LUCIUS_TABLE_ENDPOINT": "https://lucius.table.core.windows.net"},
        {"LUCIUS_AUTH": "off"},
        {"LUCIUS_AUTH": "off", "LUCIUS_HOST": "::1"},
        EVERYWHERE | {"LUCIUS_AUTH": "on"},
        HOOKS | {"LUCIUS_WEBHOOK_MASTER_KEYS": KEY},
        BLOBS,
        {
            "LUCIUS_ARTIFACTS_CATALOGUE": "postgres",
            "LUCIUS_DATABASE_URL": "postgresql:///lucius",
            "LUCIUS_ARTIFACTS_TOPIC": "artifact-events",
        },
        JWKS | {"LUCIUS_JWT_ISSUER": "login", "LUCIUS_JWT_AUDIENCE": "lucius"},
        {"LUCIUS_DISPATCH_WINDOW_MIN": "7", "LUCIUS_DISPATCH_WINDOW_MAX": "7"},
        {"LUCIUS_LEASE_SECONDS": "60", "LUCIUS_STEP_RESULT_TIMEOUT_SECONDS": "60"},
        BUS,
        {"LUCIUS_SERVICEBUS_NAMESPACE": "bus.servicebus.windows.net"},
        CONFIGURATION | {"LUCIUS_APP_CONFIGURATION_LABEL": "prod"},
        {"LUCIUS_APP_CONFIGURATION_ENDPOINT": "https://lucius.azconfig.io"},
        TEMPORAL | {"LUCIUS_TEMPORAL_TLS": "on", "LUCIUS_TEMPORAL_API_KEY": "key"},
        {"LUCIUS_TEMPORAL_ENABLED": "on", "LUCIUS_TEMPORAL_UI_PORT": "0"},
    ],
    ids=lambda environ: "+".join(environ),
)
def test_what_goes_together_is_taken_without_a_word(environ: Mapping[str, str]) -> None:
    assert load_settings(environ).warnings == ()


@pytest.mark.parametrize(
    ("environ", "wrong"),
    [
        (POSTGRES | {"LUCIUS_DATABASE_URL": "db"}, {"LUCIUS_DATABASE_URL"}),
        ({"LUCIUS_HOST": "a b", "LUCIUS_AUTH": "off"}, {"LUCIUS_HOST"}),
        (EVERYWHERE | {"LUCIUS_AUTH": "no"}, {"LUCIUS_AUTH"}),
        (HOOKS | {"LUCIUS_WEBHOOK_KEYS": "short"}, {"LUCIUS_WEBHOOK_KEYS"}),
        ({"LUCIUS_WEBHOOK_HOSTS": "a b"}, {"LUCIUS_WEBHOOK_HOSTS", "LUCIUS_WEBHOOK_MASTER_KEYS"}),
        (
            {"LUCIUS_JWKS_URL": "login"},
            {"LUCIUS_JWKS_URL", "LUCIUS_JWT_ISSUER", "LUCIUS_JWT_AUDIENCE"},
        ),
        (
            {"LUCIUS_LEASE_SECONDS": "long", "LUCIUS_STEP_RESULT_TIMEOUT_SECONDS": "1"},
            {"LUCIUS_LEASE_SECONDS"},
        ),
    ],
)
def test_a_wrong_value_was_set_all_the_same(environ: Mapping[str, str], wrong: set[str]) -> None:
    assert refused(environ).keys() == wrong


@pytest.mark.parametrize(
    ("environ", "warning"),
    [
        (
            {"LUCIUS_DATABASE_URL": "postgresql:///lucius"},
            "LUCIUS_DATABASE_URL changes nothing while LUCIUS_STORAGE_BACKEND is sqlite",
        ),
        (
            ACCOUNT,
            "LUCIUS_TABLE_CONNECTION and LUCIUS_TABLE_ENDPOINT change nothing while"
            " LUCIUS_STORAGE_BACKEND is sqlite",
        ),
        (
            {"LUCIUS_ARTIFACTS_ENDPOINT": "https://lucius.blob.core.windows.net"},
            "LUCIUS_ARTIFACTS_CONNECTION and LUCIUS_ARTIFACTS_ENDPOINT change nothing while"
            " LUCIUS_ARTIFACTS_STORE is files",
        ),
        (
            BLOBS | {"LUCIUS_ARTIFACTS_KEYS": KEY},
            "LUCIUS_ARTIFACTS_KEYS and LUCIUS_ARTIFACTS_BASE_URL change nothing while"
            " LUCIUS_ARTIFACTS_STORE is azure_blob",
        ),
        (
            TABLES | ACCOUNT | {"LUCIUS_ARTIFACTS_TOPIC": "artifact-events"},
            "LUCIUS_ARTIFACTS_TOPIC changes nothing while LUCIUS_ARTIFACTS_CATALOGUE is neither"
            " sqlite nor postgres",
        ),
        (
            {"LUCIUS_JWT_ISSUER": "login"},
            "LUCIUS_JWT_ISSUER and LUCIUS_JWT_AUDIENCE change nothing while LUCIUS_JWKS_URL is not"
            " set",
        ),
        (
            {"LUCIUS_WEBHOOK_KEYS": KEY},
            "LUCIUS_WEBHOOK_MASTER_KEYS and LUCIUS_WEBHOOK_KEYS change nothing while"
            " LUCIUS_WEBHOOK_HOSTS is not set",
        ),
        (
            HOOKS | {"LUCIUS_WEBHOOK_KEYS": KEY},
            "LUCIUS_WEBHOOK_KEYS signs for all tenants, so that a receiver of one can pose as the"
            " control plane to the others: set LUCIUS_WEBHOOK_MASTER_KEYS, give each tenant the key"
            " of `lucius keys webhook TENANT`, then leave LUCIUS_WEBHOOK_KEYS out",
        ),
        (
            CONFIGURATION | {"LUCIUS_PROTOCOLS_DIR": "config"},
            "LUCIUS_PROTOCOLS_DIR changes nothing while LUCIUS_APP_CONFIGURATION_CONNECTION is set",
        ),
        (
            {
                "LUCIUS_APP_CONFIGURATION_ENDPOINT": "https://lucius.azconfig.io",
                "LUCIUS_PROTOCOLS_DIR": "config",
            },
            "LUCIUS_PROTOCOLS_DIR changes nothing while LUCIUS_APP_CONFIGURATION_ENDPOINT is set",
        ),
        (
            {"LUCIUS_APP_CONFIGURATION_LABEL": "prod"},
            "LUCIUS_APP_CONFIGURATION_LABEL and LUCIUS_APP_CONFIGURATION_SENTINEL change nothing"
            " while LUCIUS_APP_CONFIGURATION_CONNECTION or LUCIUS_APP_CONFIGURATION_ENDPOINT is not"
            " set",
        ),
        (
            TEMPORAL | {"LUCIUS_TEMPORAL_UI_PORT": "0"},
            "LUCIUS_TEMPORAL_PORT and LUCIUS_TEMPORAL_UI_PORT change nothing while"
            " LUCIUS_TEMPORAL_ADDRESS is set",
        ),
        (
            {"LUCIUS_STORAGE_BACKND": "postgres"},
            "LUCIUS_STORAGE_BACKND is not known and changes nothing; did you mean"
            " LUCIUS_STORAGE_BACKEND?",
        ),
        (
            {"LUCIUS_LOGLEVEL": "DEBUG"},
            "LUCIUS_LOGLEVEL is not known and changes nothing; did you mean LUCIUS_LOG_LEVEL?",
        ),
        ({"LUCIUS_XYZZY": "1"}, "LUCIUS_XYZZY is not known and changes nothing"),
        (
            {"LUCIUS_JOBS_TABLE": "jobs"},
            "LUCIUS_JOBS_TABLE changes nothing. Jobs and steps lie together in the ledger and have"
            " no tables of their own.",
        ),
    ],
)
def test_what_changes_nothing_is_warned_about(environ: Mapping[str, str], warning: str) -> None:
    assert load_settings(environ).warnings == (warning,)


def test_everything_that_is_accepted_without_effect_is_warned_about() -> None:
    idle = [info for info in SETTINGS if info.use is Use.IDLE]
    warnings = load_settings({info.variable: "x" for info in idle}).warnings
    assert [text.partition(" ")[0] for text in warnings] == [info.variable for info in idle]


def test_what_belongs_to_other_programs_is_passed_over() -> None:
    elsewhere = {info.variable: "x" for info in SETTINGS if info.use is Use.ELSEWHERE}
    assert load_settings(elsewhere | {"PATH": "/bin", "lucius_port": "1"}) == load_settings({})
