"""Nothing set is a working default; everything wrong is told at once, and no secret with it."""

import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.generator.settings import service_settings_page
from lucius_azure.storage import StorageAccount
from lucius_contract.routing import LANES
from lucius_orchestrator import settings as orchestrator
from lucius_orchestrator.bootstrap.bus import keyless_connection
from lucius_sdk.runtime import program
from lucius_sdk.runtime.runtime import Limits
from lucius_sdk.settings import (
    SETTINGS,
    ServiceSettings,
    SettingsError,
    effective,
    load_settings,
)
from lucius_sdk.settings.kinds import LANES as LANES_KIND
from lucius_sdk.settings.kinds import STORE
from lucius_sdk.settings.table import KNOWN
from lucius_sdk.workspace_io.uris import file_path
from lucius_settings.info import SettingInfo, Use
from lucius_settings.secret import MASK, Secret

WORD = "hunter2hunter2"
CONNECTION = f"Endpoint=sb://bus.example/;SharedAccessKeyName=root;SharedAccessKey={WORD}"
STORAGE = f"DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={WORD}{WORD}"
BLOBS = {"LUCIUS_BLOB_CONNECTION": STORAGE}
TABLES = {"LUCIUS_TABLE_CONNECTION": STORAGE}
PAGE = service_settings_page()


def problems(environ: Mapping[str, str]) -> dict[str, str]:
    with pytest.raises(SettingsError) as refusal:
        load_settings(environ)
    return {problem.variable: problem.message for problem in refusal.value.problems}


def test_nothing_set_is_a_service_beside_lucius_up_in_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found, beside = load_settings({}), orchestrator.load_settings({})
    assert Path(found.workspace_root).as_uri() == beside.workspace_root
    assert found.servicebus_connection == Secret(keyless_connection("127.0.0.1", beside.bus_port))
    assert found.bus_address == f"sb://127.0.0.1:{beside.bus_port}"
    assert found.health_port != beside.port
    assert found.clock_skew == beside.clock_skew
    assert found.warnings == ()


def test_the_defaults_are_those_of_the_contract() -> None:
    found = load_settings({})
    assert found.service is None
    assert found.lanes == tuple(range(LANES))
    assert found.concurrency == 8
    assert found.ack_within == timedelta(seconds=5)
    assert found.grace == timedelta(seconds=30)
    assert found.clock_skew == timedelta(seconds=2)
    assert found.health_host == "127.0.0.1"
    assert (found.log_level, found.log_format) == ("INFO", "json")
    assert (found.system, found.input_roots, found.output_roots) == ("lucius", (), ())
    assert found.s3_endpoint is None
    assert (found.tables, found.blobs) == (None, None)


def test_every_variable_reaches_its_field(tmp_path: Path) -> None:
    environ = {
        "LUCIUS_SERVICE": "ocr",
        "LUCIUS_SERVICEBUS_CONNECTION": CONNECTION,
        "LUCIUS_LANES": "0, 3, 8-15",
        "LUCIUS_WORKSPACE_ROOT": "file:///srv/my%20work",
        "LUCIUS_SYSTEM": "docs",
        "LUCIUS_INPUT_ROOTS": f"/in,file://localhost/also, {tmp_path}, az://inputs/a%20b/",
        "LUCIUS_OUTPUT_ROOTS": "/out,s3://results/a%20b/",
        "LUCIUS_S3_ENDPOINT": "http://minio:9000/",
        "LUCIUS_ALLOW_PRIVATE_ADDRESSES": "on",
        "LUCIUS_HTTPS_MAX_BYTES": "5000000",
        "LUCIUS_DEDUP_STORE": "redis://:pw@cache:6379/0",
        "LUCIUS_TABLE_CONNECTION": STORAGE,
        "LUCIUS_BLOB_ENDPOINT": "https://acme.blob.core.windows.net/",
        "LUCIUS_ARTIFACTS_URL": "http://lucius-api:8080/",
        "LUCIUS_ARTIFACTS_KEY": WORD,
        "LUCIUS_CONCURRENCY": "64",
        "LUCIUS_ACK_SECONDS": "0.5",
        "LUCIUS_GRACE_SECONDS": "0",
        "LUCIUS_MAX_CLOCK_SKEW": "1.5",
        "LUCIUS_HEALTH_HOST": "0.0.0.0",  # noqa: S104 - what a container has
        "LUCIUS_HEALTH_PORT": "0",
        "LUCIUS_LOG_LEVEL": "debug",
        "LUCIUS_LOG_FORMAT": "TEXT",
    }
    assert load_settings(environ) == ServiceSettings(
        service="ocr",
        servicebus_connection=Secret(CONNECTION),
        servicebus_namespace=None,
        lanes=(0, 3, *range(8, 16)),
        workspace_root="/srv/my work",
        system="docs",
        input_roots=("/in", "/also", str(tmp_path), "az://inputs/a%20b"),
        output_roots=("/out", "s3://results/a%20b"),
        s3_endpoint="http://minio:9000",
        allow_private_addresses=True,
        https_max_bytes=5_000_000,
        dedup_store=Secret("redis://:pw@cache:6379/0"),
        table_connection=Secret(STORAGE),
        table_endpoint=None,
        blob_connection=None,
        blob_endpoint="https://acme.blob.core.windows.net",
        artifacts_url="http://lucius-api:8080",
        artifacts_key=Secret(WORD),
        concurrency=64,
        ack_within=timedelta(seconds=0.5),
        grace=timedelta(0),
        clock_skew=timedelta(seconds=1.5),
        health_host="0.0.0.0",  # noqa: S104
        health_port=0,
        log_level="DEBUG",
        log_format="text",
    )


def test_the_runtime_is_limited_as_the_settings_say() -> None:
    environ = {
        "LUCIUS_CONCURRENCY": "64",
        "LUCIUS_ACK_SECONDS": "0.5",
        "LUCIUS_MAX_CLOCK_SKEW": "1.5",
        "LUCIUS_LANES": "3",
    }
    limits = Limits(concurrency=64, ack=0.5, skew=1.5, lanes=(3,))
    assert program._limits_of(load_settings(environ)) == limits


@pytest.mark.parametrize(
    "root", ["file:///srv/my%20work", "file:///srv/work/", "file:/srv/work", "FILE:///srv/%C3%A9"]
)
def test_a_root_of_the_orchestrator_is_the_same_root_here(root: str) -> None:
    environ = {"LUCIUS_WORKSPACE_ROOT": root}
    beside = orchestrator.load_settings(environ).workspace_root
    assert load_settings(environ).workspace_root == str(file_path(beside))
    assert load_settings({"LUCIUS_INPUT_ROOTS": root}).input_roots == (str(file_path(beside)),)


@pytest.mark.parametrize("root", ["az://work/jobs", "az://work/my%20jobs/", "az://work"])
def test_a_root_of_blobs_is_the_orchestrators_too(root: str) -> None:
    environ = {"LUCIUS_WORKSPACE_ROOT": root, **BLOBS}
    beside = orchestrator.load_settings(environ).workspace_root
    assert load_settings(environ).workspace_root == beside.rstrip("/")


def test_a_storage_account_is_reached_with_a_key_or_with_an_identity() -> None:
    table, blob = "https://acme.table.core.windows.net", "https://acme.blob.core.windows.net"
    named = {"LUCIUS_TABLE_ENDPOINT": table, "LUCIUS_BLOB_ENDPOINT": f"{blob}/"}
    by_identity, by_key = load_settings(named), load_settings(TABLES | BLOBS)
    assert by_identity.tables == StorageAccount(endpoint=table)
    assert by_identity.blobs == StorageAccount(endpoint=blob)
    assert by_key.tables == by_key.blobs == StorageAccount(Secret(STORAGE))
    found = problems(TABLES | BLOBS | named)
    assert list(found) == ["LUCIUS_TABLE_ENDPOINT", "LUCIUS_BLOB_ENDPOINT"]
    assert all("a key or an identity, not both" in message for message in found.values())


NEEDING_BLOBS = [
    ("LUCIUS_WORKSPACE_ROOT", "az://work/jobs"),
    ("LUCIUS_INPUT_ROOTS", "/in,az://inputs"),
    ("LUCIUS_OUTPUT_ROOTS", "/out,az://outputs"),
    ("LUCIUS_DEDUP_STORE", "azblob:dedup/ocr"),
]


@pytest.mark.parametrize(("variable", "value"), NEEDING_BLOBS)
def test_blobs_without_an_account_are_told_what_to_set(variable: str, value: str) -> None:
    message = problems({variable: value} | TABLES)[variable]
    assert "set LUCIUS_BLOB_CONNECTION or LUCIUS_BLOB_ENDPOINT" in message
    assert load_settings({variable: value} | BLOBS).warnings == ()


def test_a_table_without_an_account_is_told_what_to_set() -> None:
    store = {"LUCIUS_DEDUP_STORE": "aztable:dedup"}
    message = problems(store | BLOBS)["LUCIUS_DEDUP_STORE"]
    assert "set LUCIUS_TABLE_CONNECTION or LUCIUS_TABLE_ENDPOINT" in message
    assert load_settings(store | TABLES).warnings == ()


def test_an_account_that_cannot_be_read_is_the_only_problem() -> None:
    wanted = dict(NEEDING_BLOBS) | {"LUCIUS_BLOB_CONNECTION": "AccountName=acme"}
    assert list(problems(wanted)) == ["LUCIUS_BLOB_CONNECTION"]


def test_a_package_that_blobs_need_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "lucius_sdk.workspace_io.blob.places", None)
    message = problems({"LUCIUS_WORKSPACE_ROOT": "az://work"} | BLOBS)["LUCIUS_WORKSPACE_ROOT"]
    assert "lucius-sdk[azure]" in message


def test_a_package_that_s3_needs_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"LUCIUS_INPUT_ROOTS": "s3://inbox", "LUCIUS_OUTPUT_ROOTS": "/out,s3://outbox"}
    assert load_settings(environ).warnings == ()
    monkeypatch.setitem(sys.modules, "boto3", None)
    warnings = load_settings(environ).warnings
    assert [warning.split()[0] for warning in warnings] == list(environ)
    assert all("lucius-sdk[s3]" in warning for warning in warnings)


def test_a_namespace_is_used_instead_of_a_key_and_never_beside_one() -> None:
    named = {"LUCIUS_SERVICEBUS_NAMESPACE": "bus.servicebus.windows.net"}
    found = load_settings(named)
    assert found.servicebus_connection is None
    assert found.bus_address == "sb://bus.servicebus.windows.net"
    both = named | {"LUCIUS_SERVICEBUS_CONNECTION": CONNECTION}
    assert "not both" in problems(both)["LUCIUS_SERVICEBUS_NAMESPACE"]


WRONG = {
    "LUCIUS_SERVICE": ("OCR", "a_b", "-a", "a" * 51),
    "LUCIUS_SERVICEBUS_CONNECTION": ("sb://bus", f"SharedAccessKey={WORD}"),
    "LUCIUS_SERVICEBUS_NAMESPACE": ("bus", "sb://bus.example"),
    "LUCIUS_LANES": ("16", "3-1", "0-16", "a", "1,,2", "0-", "-1", "1-2-3"),
    "LUCIUS_WORKSPACE_ROOT": (
        "https://files.example/x",
        "s3://bucket/jobs",
        "az:work",
        "az:///jobs",
        "az://Work/jobs",
        "az://work/../jobs",
        "az://work/jobs?sig=x",
        "az://me:pw@work/jobs",
        "az://work//jobs",
        "file://host/work",
        "file:///",
        "file:///a?b",
        "file:///a#b",
        "file:///a%00b",
        "file:work",
        "file:///..",
        "file:///a/./b",
        "file:///a%2Fb",
    ),
    "LUCIUS_SYSTEM": ("a/b", "..", "-a", "a" * 65, "a b"),
    "LUCIUS_INPUT_ROOTS": ("/a,,/b", "gs://bucket/a", "/a,az://IN", "s3://B/a", "s3://a_b"),
    "LUCIUS_OUTPUT_ROOTS": (
        "/a,,/b",
        "https://host/a",
        "s3://bucket/../a",
        "s3:bucket",
        "file:///",
    ),
    "LUCIUS_ALLOW_PRIVATE_ADDRESSES": ("yes", "1"),
    "LUCIUS_HTTPS_MAX_BYTES": ("0", "1GiB", "-1", str(2**40 + 1)),
    "LUCIUS_DEDUP_STORE": (
        "dedup.db",
        "mysql://db",
        "sqlite:",
        "sqlite:///",
        "redis:host",
        "aztable:",
        "aztable:tables",
        "aztable:lucius_dedup",
        "azblob:",
        "azblob:Dedup",
        "azblob:dedup/",
        "azblob:dedup/../x",
    ),
    "LUCIUS_TABLE_CONNECTION": ("acme", f"AccountName=acme;AccountKey=?{WORD}="),
    "LUCIUS_TABLE_ENDPOINT": ("http://127.0.0.1:10002/x", "https://a.blob.core.windows.net"),
    "LUCIUS_BLOB_CONNECTION": ("acme", f"TableEndpoint=https://a;SharedAccessSignature=sig={WORD}"),
    "LUCIUS_BLOB_ENDPOINT": ("acme.blob.core.windows.net", "https://a.table.core.windows.net"),
    "LUCIUS_S3_ENDPOINT": ("minio:9000", "http://me:pw@minio", "https://minio/?a"),
    "LUCIUS_ARTIFACTS_URL": (
        "api:8080",
        "ftp://api",
        "https://",
        f"https://me:{WORD}@api",
        "https://api?x=1",
        "https://api:99999",
    ),
    "LUCIUS_ARTIFACTS_KEY": ("schlüssel", "two words"),
    "LUCIUS_CONCURRENCY": ("0", "1025", "many"),
    "LUCIUS_ACK_SECONDS": ("0", "soon"),
    "LUCIUS_GRACE_SECONDS": ("-1", "3601"),
    "LUCIUS_MAX_CLOCK_SKEW": ("-1",),
    "LUCIUS_HEALTH_HOST": ("http://host", "host:80"),
    "LUCIUS_HEALTH_PORT": ("65536", "http"),
    "LUCIUS_LOG_LEVEL": ("LOUD",),
    "LUCIUS_LOG_FORMAT": ("xml",),
}


@pytest.mark.parametrize(
    ("variable", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_a_wrong_value_is_refused_with_what_is_allowed(variable: str, value: str) -> None:
    (info,) = [info for info in SETTINGS if info.variable == variable]
    assert info.kind.rule in problems({variable: value})[variable]


def test_every_variable_can_be_wrong_and_all_are_told_at_once_in_the_order_of_the_table() -> None:
    assert list(WRONG) == [info.variable for info in SETTINGS]
    found = problems({name: values[0] for name, values in WRONG.items()})
    assert list(found) == list(WRONG)


def test_an_unknown_name_is_warned_about_with_the_one_that_was_meant() -> None:
    environ = {"LUCIUS_CONCURENCY": "4", "LUCIUS_PORT": "1", "OTHER": "x", "LUCIUS_XYZ": "1"}
    near, far = load_settings(environ).warnings
    assert near.endswith("did you mean LUCIUS_CONCURRENCY?")
    assert far.startswith("LUCIUS_XYZ is not known")


def test_a_store_that_forgets_is_warned_about() -> None:
    (warning,) = load_settings({"LUCIUS_DEDUP_STORE": "memory:"}).warnings
    assert "forgets" in warning


def test_services_and_the_orchestrator_know_each_others_variables() -> None:
    ours = {info.variable for info in KNOWN}
    theirs = {info.variable: info for info in orchestrator.SETTINGS}
    assert ours == set(theirs)
    alone = {i.variable for i in SETTINGS if theirs[i.variable].use is not Use.READ}
    assert all(theirs[name].use is Use.ELSEWHERE for name in alone)


@pytest.mark.parametrize(
    ("store", "shown"),
    [
        (f"redis://:{WORD}@cache:6379/0", "redis://***@cache:6379/0"),
        (f"rediss://me:{WORD}/?@x@cache/1", "rediss://***@cache/1"),
        (f"redis://cache/0?password={WORD}", "redis://cache/0?***"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        ("sqlite:///srv/dedup.db", "sqlite:///srv/dedup.db"),
        ("sqlite:////srv/dedup.db", "sqlite:////srv/dedup.db"),
        ("sqlite:dedup.db", "sqlite:dedup.db"),
        ("aztable:dedup", "aztable:dedup"),
        ("azblob:dedup/ocr", "azblob:dedup/ocr"),
    ],
)
def test_a_store_is_shown_without_its_credential(store: str, shown: str) -> None:
    environ = {"LUCIUS_DEDUP_STORE": store, **TABLES, **BLOBS}
    found = load_settings(environ)
    rows = {row.variable: row for row in effective(found, environ)}
    assert rows["LUCIUS_DEDUP_STORE"].value_masked == shown
    assert WORD not in repr(found)


def test_what_is_in_force_names_every_variable_and_masks_the_key() -> None:
    environ = {"LUCIUS_SERVICEBUS_CONNECTION": CONNECTION, "LUCIUS_LANES": "1,2,4", **TABLES}
    rows = {row.variable: row for row in effective(load_settings(environ), environ)}
    assert list(rows) == [info.variable for info in SETTINGS]
    assert rows["LUCIUS_SERVICEBUS_CONNECTION"].value_masked == MASK
    assert rows["LUCIUS_TABLE_CONNECTION"].value_masked == MASK
    assert rows["LUCIUS_BLOB_CONNECTION"].value_masked == "(none)"
    assert rows["LUCIUS_LANES"][1:3] == ("1-2,4", "set")
    assert rows["LUCIUS_CONCURRENCY"][1:3] == ("8", "default")
    assert rows["LUCIUS_INPUT_ROOTS"].value_masked == "(none)"
    assert WORD not in str(rows)


def test_a_secret_in_the_wrong_place_is_not_repeated() -> None:
    bad = dict.fromkeys(WRONG, f"redis-cache://:{WORD}@cache:6379/0?key={WORD}")
    assert WORD not in str(problems(bad))


@given(st.sets(st.integers(0, LANES - 1), min_size=1))
def test_lanes_are_written_as_they_are_read(lanes: set[int]) -> None:
    written = LANES_KIND.write(tuple(sorted(lanes)))
    assert LANES_KIND.read(written) == tuple(sorted(lanes))
    assert LANES_KIND.read(",".join(map(str, lanes))) == tuple(sorted(lanes))


@given(st.text(st.sampled_from("ab:/?@#"), max_size=12))
def test_no_password_of_a_store_is_ever_shown(password: str) -> None:
    shown = STORE.write(Secret(f"redis://user:{WORD}{password}{WORD}@cache:6379/0"))
    assert shown == "redis://***@cache:6379/0"


@pytest.mark.parametrize("info", SETTINGS, ids=lambda info: info.variable)
def test_a_default_is_of_its_kind_and_every_variable_is_documented(info: SettingInfo) -> None:
    if info.default is not None:
        assert str(info.kind.write(info.kind.read(info.default))) == info.default
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{info.variable}` |")]
    assert info.meaning in row
    assert info.kind.rule in row
    assert len(re.findall(r" \| ", row)) == 3


def test_every_field_is_set_by_the_table() -> None:
    reached = {info.field for info in SETTINGS}
    assert reached == {field.name for field in fields(ServiceSettings)} - {"warnings"}
