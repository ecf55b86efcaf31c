"""What the commands say of protocols that are kept in App Configuration."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.registry.app_configuration_double import (
    AppConfiguration,
    Fault,
    running_app_configuration,
)

STAMP = """\
protocol_id: stamp
version: "1"
request_type: STAMP
steps:
  - {step_type: STAMP, service: stamper, payload_schema: {type: object}}
"""
SECRET = "aHVudGVyMg=="  # noqa: S105
AWAY = f"Endpoint=http://127.0.0.1:1;Id=a;Secret={SECRET}"


@pytest.fixture
def double(shell: Shell) -> Iterator[AppConfiguration]:
    with running_app_configuration() as double:
        double.put("lucius:protocols:stamp", STAMP)
        double.touch()
        shell.export(
            LUCIUS_APP_CONFIGURATION_CONNECTION=double.connection, LUCIUS_URL="http://127.0.0.1:1"
        )
        yield double


def protocols_of(shell: Shell) -> dict[str, Any]:
    """What a doctor says of them."""
    checks = shell("doctor", "--json").json["checks"]
    (found,) = [check for check in checks if check["name"] == "protocols"]
    return dict(found)


def test_a_doctor_says_where_files_lie(shell: Shell) -> None:
    shell.export(LUCIUS_URL="http://127.0.0.1:1")
    found = protocols_of(shell)
    assert found["ok"]
    assert found["detail"].startswith("shipped: EMBEDDING, ")


def test_a_doctor_says_where_protocols_come_from(shell: Shell, double: AppConfiguration) -> None:
    assert protocols_of(shell) == {
        "name": "protocols",
        "ok": True,
        "detail": f"{double.endpoint}: STAMP",
    }


def test_a_doctor_neither_makes_nor_uses_the_copy_of_a_start(
    shell: Shell, double: AppConfiguration, tmp_path: Path
) -> None:
    assert protocols_of(shell)["ok"]
    copy = tmp_path / ".lucius" / "app-configuration.json"
    assert not copy.exists()
    copy.parent.mkdir(exist_ok=True)
    origin = [double.endpoint, "lucius:", ""]
    entries = [["lucius:protocols:stamp", STAMP, None]]
    read_at = "2026-11-16T09:00:00+00:00"
    kept = {"form": 1, "origin": origin, "read_at": read_at, "entries": entries}
    copy.write_text(json.dumps(kept))
    double.fault = Fault(503)
    assert protocols_of(shell) == {
        "name": "protocols",
        "ok": False,
        "detail": f"{double.endpoint}: answers 503; a start uses the copy of {read_at}",
    }


def test_a_doctor_misses_the_sentinel_of_the_label(shell: Shell, double: AppConfiguration) -> None:
    shell.export(LUCIUS_APP_CONFIGURATION_LABEL="prod")
    assert protocols_of(shell)["detail"] == (
        f"{double.endpoint} (label prod): STAMP; there is no lucius:sentinel: make one, or no"
        " change will be taken up"
    )


def test_a_doctor_names_a_wrong_entry(shell: Shell, double: AppConfiguration) -> None:
    double.put("lucius:protocols:stamp", STAMP.replace("stamper", "NO"))
    found = protocols_of(shell)
    assert not found["ok"]
    assert found["detail"].startswith(
        "mend the entries: lucius:protocols:stamp: steps[0].service: must be"
    )


def test_a_doctor_says_what_a_start_would_do_without_it(
    shell: Shell, double: AppConfiguration
) -> None:
    double.fault = Fault(403)
    found = protocols_of(shell)
    assert not found["ok"]
    assert found["detail"] == (
        f"{double.endpoint}: answers 403: the identity needs the role App Configuration Data"
        " Reader, or this network is not let in; a start is refused, since there is no copy of an"
        " earlier one"
    )


def test_a_doctor_without_the_package_says_how_to_get_it(
    shell: Shell, double: AppConfiguration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "azure.appconfiguration.aio", None)
    for name in ("lucius_azure.app_configuration", "app_configuration_store"):
        for module in [loaded for loaded in sys.modules if loaded.endswith(name)]:
            monkeypatch.delitem(sys.modules, module)
    assert (
        "App Configuration needs: pip install 'lucius-sdk[azure]'" in protocols_of(shell)["detail"]
    )


def test_the_topology_is_that_of_the_protocols_from_there(
    shell: Shell, double: AppConfiguration
) -> None:
    items = shell("topology", "show", "--json").json["items"]
    assert {item["subscription"] for item in items} == {"stamper", "lucius-invoker"}


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("command", [("topology", "show"), ("up", "--port", "0")])
def test_what_is_away_is_the_environments_failure(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr("lucius_orchestrator.bootstrap.protocol_source.START_PAUSES", ())
    shell.export(LUCIUS_APP_CONFIGURATION_CONNECTION=AWAY, LUCIUS_BUS_PORT="0")
    run = shell(*command)
    assert (run.code, run.out) == (3, "")
    assert "http://127.0.0.1:1: cannot be reached: " in run.err
    assert SECRET not in run.err


def test_a_folder_that_is_not_used_is_warned_about(shell: Shell, double: AppConfiguration) -> None:
    shell.export(LUCIUS_PROTOCOLS_DIR="config")
    warned = shell("config").err
    assert (
        "LUCIUS_PROTOCOLS_DIR changes nothing while LUCIUS_APP_CONFIGURATION_CONNECTION" in warned
    )
    assert double.endpoint not in shell("config").out
