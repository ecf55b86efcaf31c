"""Every wrong value is refused with the reason and with what is allowed; all of them at once."""

from collections.abc import Mapping

import pytest

from lucius_orchestrator.settings import (
    SETTINGS,
    SettingInfo,
    SettingProblem,
    SettingsError,
    Use,
    load_settings,
)
from lucius_settings.kinds import PATH, TEXT

READ = [info for info in SETTINGS if info.use is Use.READ]
KEY = "k" * 32
IDENTIFIED = "Id=a;Secret=YSBrZXk="
SIGNED = "SharedAccessKeyName=name;SharedAccessKey=abc"


def refused(environ: Mapping[str, str]) -> tuple[SettingProblem, ...]:
    with pytest.raises(SettingsError) as refusal:
        load_settings(environ)
    return refusal.value.problems


SECONDS = ("soon", "-1", "1e3", "1.2345", "3.", "31622401", "٣")
WHOLE = ("many", "-1", "1.5", "+1", "1_000", "9" * 16)
SWITCH = ("yes", "true", "1", "on off")
TABLE = ("ab", "1abc", "tables", "-_-", "x" * 64)
CHOICE = ("other", "sqlite,postgres")
PLACES = ("https://files.example", "files.example:443", "a/b", "*", "a,,b", ",", "user@host", "a b")
FOLDERS = (
    "a,,b",
    ",",
    "ftp://a",
    "az://inbox/{tenant}",
    "az://in/../out",
    "az://a/%2f",
    "az://b?x",
)
URLS = (
    "files.example",
    "ftp://files.example",
    "https://",
    "https://[::1",
    "https://host:port",
    "https://user@host/",
    "https://a host/",
)
WRONG: dict[str, tuple[str, ...]] = {
    "LUCIUS_STORAGE_BACKEND": CHOICE,
    "LUCIUS_DATABASE_URL": ("mysql://db/lucius", "lucius.db"),
    "LUCIUS_TABLE_CONNECTION": ("AccountName=a", "https://a.table.core.windows.net"),
    "LUCIUS_TABLE_ENDPOINT": ("http://a.table.core.windows.net", "AccountName=a;AccountKey=b"),
    "LUCIUS_LEDGER_TABLE": TABLE,
    "LUCIUS_IDEMPOTENCY_TABLE": TABLE,
    "LUCIUS_JOB_INDEX_TABLE": TABLE,
    "LUCIUS_INFLIGHT_TABLE": TABLE,
    "LUCIUS_RETENTION_DAYS": (*WHOLE, "0", "36501"),
    "LUCIUS_HOST": ("http://host", "host:80", "[::1]", "a b", "-", "a/b"),
    "LUCIUS_PORT": (*WHOLE, "65536"),
    "LUCIUS_MAX_BODY_BYTES": (*WHOLE, "65535", "104857601"),
    "LUCIUS_REQUEST_TIMEOUT_SECONDS": (*SECONDS, "0", "3601"),
    "LUCIUS_SHUTDOWN_GRACE_SECONDS": (*SECONDS, "3601"),
    "LUCIUS_AUTH": SWITCH,
    "LUCIUS_JWKS_URL": (*URLS, "http://login.example/keys", "http://127.0.0.1.example/keys"),
    "LUCIUS_REPLY_VIA": CHOICE,
    "LUCIUS_CALLBACK_BASE_URL": (*URLS, "https://host/?a=b", "https://host/?", "https://host/#a"),
    "LUCIUS_CALLBACK_KEYS": ("short", f"{KEY},short", f"{KEY},", ",".join([KEY] * 11)),
    "LUCIUS_APP_CONFIGURATION_CONNECTION": (
        "https://lucius.azconfig.io",
        "Endpoint=https://lucius.azconfig.io",
        "Endpoint=https://lucius.azconfig.io;Id=a",
        f"Endpoint=;{IDENTIFIED}",
        f"Endpoint=lucius.azconfig.io;{IDENTIFIED}",
        f"Endpoint=http://lucius.azconfig.io;{IDENTIFIED}",
        f"Endpoint=https://lucius.azconfig.io/kv;{IDENTIFIED}",
        f"Endpoint=https://lucius.azconfig.io?a=b;{IDENTIFIED}",
        f"Endpoint=https://user:word@lucius.azconfig.io;{IDENTIFIED}",
        f"Endpoint=https://lucius.azconfig.io:port;{IDENTIFIED}",
        f"Endpoint=https://lucius.azconfig.io;{IDENTIFIED};Id=b",
        f"Endpoint=https://lucius.azconfig.io;{IDENTIFIED};Colour=red",
        "Endpoint=https://lucius.azconfig.io;Id=a;Secret=b",
        "Endpoint=https://lucius.azconfig.io;Id=a;Secret=not base 64",
    ),
    "LUCIUS_APP_CONFIGURATION_ENDPOINT": (
        "lucius.azconfig.io",
        "http://lucius.azconfig.io",
        "http://127.0.0.1:8483",
        "https://",
        "https://lucius.azconfig.io/kv",
        "https://lucius.azconfig.io?a=b",
        "https://user@lucius.azconfig.io",
        f"Endpoint=https://lucius.azconfig.io;{IDENTIFIED}",
    ),
    "LUCIUS_APP_CONFIGURATION_LABEL": ("*", "prod,staging", "a\\b", "-a", "a b", "a" * 129),
    "LUCIUS_APP_CONFIGURATION_PREFIX": ("lucius", "lucius:*", ":", ".a:", "a%:", "a" * 128 + ":"),
    "LUCIUS_APP_CONFIGURATION_SENTINEL": ("*", "a,b", "a%b", ".a", "a" * 257),
    "LUCIUS_APP_CONFIGURATION_REFRESH_SECONDS": (*SECONDS, "0", "0.5", "86401"),
    "LUCIUS_SYSTEM": ("a/b", "..", "-a", "a" * 65, "a b"),
    "LUCIUS_WORKSPACE_ROOT": (
        "/srv/work",
        "ftp://host/work",
        "file://host/work",
        "file:///",
        "az://",
        "az://work/../other",
        "az://user:word@work/jobs",
        "az://work/jobs?sig=abc",
        "az://work/jobs?a=b",
        "az://work/jobs#a",
        "az://my work",
    ),
    "LUCIUS_WORKSPACE_RETENTION_DAYS": (*WHOLE, "36501"),
    "LUCIUS_ARTIFACTS_STORE": CHOICE,
    "LUCIUS_ARTIFACTS_CONNECTION": ("AccountName=a", "https://a.blob.core.windows.net"),
    "LUCIUS_ARTIFACTS_ENDPOINT": ("http://a.blob.core.windows.net", "https://a.table.x.net"),
    "LUCIUS_ARTIFACTS_CONTAINER": ("ab", "-abc", "abc-", "a--b", "Abc", "a_bc", "a" * 64),
    "LUCIUS_ARTIFACTS_CATALOGUE": (*CHOICE, "memory", "azure_tables"),
    "LUCIUS_ARTIFACTS_KEYS": ("short", f"{KEY},short", ",".join([KEY] * 11)),
    "LUCIUS_ARTIFACTS_BASE_URL": (*URLS, "https://host/?a=b", "https://host/#a"),
    "LUCIUS_ARTIFACTS_MAX_BYTES": (*WHOLE, "0", "100000000000001"),
    "LUCIUS_ARTIFACTS_SESSION_HOURS": (*WHOLE, "0", "8761"),
    "LUCIUS_ARTIFACTS_GRACE_HOURS": (*WHOLE, "8761"),
    "LUCIUS_ARTIFACTS_RETENTION_DAYS": (*WHOLE, "3651"),
    "LUCIUS_ARTIFACTS_GC_SECONDS": (*SECONDS, "604801"),
    "LUCIUS_ARTIFACTS_TOPIC": ("-a", "a-", "a/b", "a b", "a" * 261),
    "LUCIUS_ARTIFACTS_POLICY_URL": (*URLS, "http://policy.example"),
    "LUCIUS_REF_SCHEMES": ("http", "https,ftp", "https,,az", ","),
    "LUCIUS_REF_PLACES": PLACES,
    "LUCIUS_INPUT_ROOTS": FOLDERS,
    "LUCIUS_OUTPUT_ROOTS": FOLDERS,
    "LUCIUS_ALLOW_PRIVATE_ADDRESSES": SWITCH,
    "LUCIUS_WEBHOOK_HOSTS": PLACES,
    "LUCIUS_WEBHOOK_MASTER_KEYS": ("short", f"{KEY},short", ",", f"{KEY},{KEY},{KEY}"),
    "LUCIUS_WEBHOOK_KEYS": ("short", f"{KEY},short", ",", f"{KEY},{KEY},{KEY}"),
    "LUCIUS_WEBHOOK_ALLOW_PRIVATE": SWITCH,
    "LUCIUS_MAX_INFLIGHT": WHOLE,
    "LUCIUS_MAX_INFLIGHT_PER_TENANT": WHOLE,
    "LUCIUS_MAX_INFLIGHT_BURST": WHOLE,
    "LUCIUS_MAX_INFLIGHT_DEFAULT": WHOLE,
    "LUCIUS_MAX_PENDING_PER_LANE": (*WHOLE, "0"),
    "LUCIUS_DISPATCH_WINDOW_MIN": (*WHOLE, "0", "1000001"),
    "LUCIUS_DISPATCH_WINDOW_MAX": (*WHOLE, "0", "1000001"),
    "LUCIUS_DISPATCH_WINDOW_PER_LANE": (*WHOLE, "0", "1000001"),
    "LUCIUS_BURST_SHARE": ("0", "0.0", "1.1", "-0.5", "half", "50%", "1e-1", ".5", "0.1234567"),
    "LUCIUS_MAX_ATTEMPTS": (*WHOLE, "0", "101"),
    "LUCIUS_ACK_TIMEOUT_SECONDS": (*SECONDS, "0"),
    "LUCIUS_LEASE_SECONDS": (*SECONDS, "0"),
    "LUCIUS_STEP_RESULT_TIMEOUT_SECONDS": (*SECONDS, "0"),
    "LUCIUS_MAX_CLOCK_SKEW": (*SECONDS, "3601"),
    "LUCIUS_LOG_LEVEL": ("LOUD", "10"),
    "LUCIUS_LOG_FORMAT": CHOICE,
    "LUCIUS_SERVICEBUS_CONNECTION": (
        "bus.example",
        "sb://bus.example/",
        "Endpoint=sb://bus.example/",
        "Endpoint=sb://bus.example/;SharedAccessKey=abc",
        "Endpoint=sb://bus.example/;SharedAccessKeyName=abc",
        f"SharedAccessKeyName=a;{SIGNED}",
        f"Endpoint=https://bus.example/;{SIGNED}",
        f"Endpoint=sb:///;{SIGNED}",
        f"Endpoint=sb://user:word@bus.example/;{SIGNED}",
        f"Endpoint=sb://bus.example:port/;{SIGNED}",
        f"Endpoint=sb://bus.example/topic;{SIGNED}",
        f"Endpoint=sb://bus.example/?a=b;{SIGNED}",
        f"Endpoint=sb://bus.example/;{SIGNED};EntityPath=global-bus-p0",
        f"Endpoint=sb://bus.example/;{SIGNED};SharedAccessSignature=abc",
        f"Endpoint=sb://bus.example/;{SIGNED};endpoint=sb://other.example/",
        f"Endpoint=sb://bus.example/;{SIGNED};Colour=red",
        f"Endpoint=sb://bus.example/;{SIGNED};UseDevelopmentEmulator=True",
    ),
    "LUCIUS_SERVICEBUS_NAMESPACE": (
        "sb://bus.servicebus.windows.net",
        "bus.servicebus.windows.net:5671",
        "bus.servicebus.windows.net/",
        "bus",
        "bus..net",
        "-bus.net",
        f"{'a' * 250}.net",
    ),
    "LUCIUS_BUS_PORT": (*WHOLE, "65536"),
    "LUCIUS_SERVICEBUS_LANES": ("8", "016", "sixteen"),
    "LUCIUS_SERVICEBUS_REPLY_PREFIX": ("replies-",),
    "LUCIUS_SERVICEBUS_REPLY_SUBSCRIPTION": ("mine",),
    "LUCIUS_TEMPORAL_ENABLED": ("true", "temporal"),
    "LUCIUS_TEMPORAL_ADDRESS": (
        "temporal",
        ":7233",
        "temporal:",
        "temporal:0",
        "temporal:70000",
        "temporal:7233/",
        "http://temporal:7233",
        "user:word@temporal:7233",
        "::1:7233",
    ),
    "LUCIUS_TEMPORAL_NAMESPACE": ("a b", "-a", "a" * 256),
    "LUCIUS_TEMPORAL_TASK_QUEUE": ("a/b", ".a"),
    "LUCIUS_TEMPORAL_WORKFLOW_EXECUTION_TIMEOUT": ("59", "1h", "-1"),
    "LUCIUS_TEMPORAL_TLS": ("true",),
    "LUCIUS_TEMPORAL_API_KEY": ("a b", "clé"),
    "LUCIUS_TEMPORAL_PORT": (*WHOLE, "65536"),
    "LUCIUS_TEMPORAL_UI_PORT": (*WHOLE, "65536"),
    "LUCIUS_INVOKER_URL": ("invoker:8080", "ftp://invoker", "http://a:b@invoker", "http://i/?a"),
    "LUCIUS_INVOKER_KEYS": ("short", f"{KEY},,{KEY}", ",".join([KEY] * 11)),
}
CASES = [(info, text) for info in READ for text in WRONG.get(info.variable, ())]


def test_every_variable_that_can_be_wrong_is_tried_here() -> None:
    anything = {info.variable for info in READ if info.kind in (TEXT, PATH)}
    assert WRONG.keys() | anything == {info.variable for info in READ}


@pytest.mark.parametrize(
    ("info", "text"), CASES, ids=[f"{info.variable}={text[:20]!a}" for info, text in CASES]
)
def test_a_wrong_value_is_refused_with_what_is_allowed(info: SettingInfo, text: str) -> None:
    messages = [p.message for p in refused({info.variable: text}) if p.variable == info.variable]
    assert len(messages) == 1
    allowed = info.default if info.kind.rule.startswith("only") else info.kind.rule
    assert (allowed or "") in messages[0]


@pytest.mark.parametrize("info", READ, ids=lambda info: info.variable)
@pytest.mark.parametrize("strange", ["a\0b", "a\nb", "a\x85b", "a\udcffb"], ids=ascii)
def test_what_cannot_be_printed_is_refused_everywhere(info: SettingInfo, strange: str) -> None:
    problem = next(p for p in refused({info.variable: strange}) if p.variable == info.variable)
    assert problem.message.startswith("holds characters that cannot be printed; must be ")
    assert str(problem).isprintable()


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("LUCIUS_PORT", "99999", "must be a whole number from 0 to 65535, got '99999'"),
        (
            "LUCIUS_STORAGE_BACKEND",
            "mysql",
            "must be one of sqlite, postgres, azure_tables, memory, got 'mysql'",
        ),
        ("LUCIUS_ALLOW_PRIVATE_ADDRESSES", "yes", "must be on or off, got 'yes'"),
        (
            "LUCIUS_LEASE_SECONDS",
            "15m",
            "must be a number of seconds from 0.001 to 31622400, got '15m'",
        ),
        (
            "LUCIUS_SERVICEBUS_LANES",
            "8",
            "must be 16, got '8': the contract fixes it for everybody on the bus",
        ),
        (
            "LUCIUS_TEMPORAL_ADDRESS",
            "temporal",
            "must be a host and a port, as temporal.example:7233, got 'temporal'",
        ),
        (
            "LUCIUS_SERVICEBUS_CONNECTION",
            f"Endpoint=sb://bus.example/;{SIGNED};EntityPath=orders",
            "is for one entity (EntityPath), and all lanes are used; must be a connection string of"
            " a Service Bus namespace, as Endpoint=sb://...;SharedAccessKeyName=...;"
            "SharedAccessKey=..., without EntityPath",
        ),
        (
            "LUCIUS_CALLBACK_KEYS",
            f"{KEY},short",
            "has a key, number 2, that is too short; must be at most 10 keys, parted by commas,"
            " each of 32 characters or more",
        ),
        (
            "LUCIUS_CALLBACK_BASE_URL",
            "https://user:word@host",
            "carries a user name or a password; must be an http or https url without credentials,"
            " query and fragment",
        ),
    ],
)
def test_a_refusal_reads_like_this(variable: str, text: str, message: str) -> None:
    assert refused({variable: text}) == (SettingProblem(variable, message),)


def test_all_that_is_wrong_is_told_at_once_in_the_order_of_the_table() -> None:
    problems = refused(
        {
            "LUCIUS_LOG_LEVEL": "LOUD",
            "LUCIUS_PORT": "http",
            "LUCIUS_STORAGE_BACKEND": "postgres",
            "LUCIUS_HOST": "0.0.0.0",  # noqa: S104
            "LUCIUS_AUTH": "off",
        }
    )
    assert [problem.variable for problem in problems] == [
        "LUCIUS_DATABASE_URL",
        "LUCIUS_PORT",
        "LUCIUS_AUTH",
        "LUCIUS_LOG_LEVEL",
    ]


def test_the_error_has_one_line_for_each_problem() -> None:
    environ = {variable: texts[0] for variable, texts in WRONG.items()}
    with pytest.raises(SettingsError) as refusal:
        load_settings(environ)
    lines = str(refusal.value).splitlines()
    assert lines == [f"{p.variable}: {p.message}" for p in refusal.value.problems]
    assert {line.partition(":")[0] for line in lines} >= WRONG.keys()
