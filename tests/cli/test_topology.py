"""`lucius topology`, and what `lucius doctor` says of a bus that processes share."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from servicebus_emulator.config import parse_config
from tests.bootstrap.test_bus import delete_subscription
from tests.cli.shell import Shell
from tests.cli.test_bus import RunningBus, running_bus

pytestmark = pytest.mark.check

STAMP = """
protocol_id: stamp
version: "1"
request_type: STAMP
steps:
  - {step_type: STAMP, service: stamper, payload_schema: {type: object}}
"""


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBus]:
    with running_bus(tmp_path_factory.mktemp("bus")) as bus:
        yield bus


@pytest.fixture
def stamper(shell: Shell, tmp_path: Path) -> Shell:
    """A shell with one protocol of one service."""
    folder = tmp_path / "config" / "protocols"
    folder.mkdir(parents=True)
    (folder / "stamp.yaml").write_text(STAMP)
    shell.export(LUCIUS_PROTOCOLS_DIR=str(folder.parent))
    return shell


def test_what_is_needed_is_shown_without_a_bus(shell: Shell) -> None:
    lines = shell("topology", "show").out.splitlines()
    assert len(lines) == 1 + 16 * 3 + 16
    assert lines[0].split()[:2] == ["TOPIC", "SUBSCRIPTION"]
    assert lines[2].split()[:5] == ["global-bus-p0", "ocr", "service", "=", "'ocr'"]


@pytest.mark.parametrize("form", [["--json"], ["--format", "json"]])
def test_what_is_needed_as_json(stamper: Shell, form: list[str]) -> None:
    items = stamper("topology", "show", *form).json["items"]
    assert {item["subscription"] for item in items} == {"stamper", "lucius-invoker"}
    assert len(items) == 32


def test_what_is_needed_as_the_file_of_an_emulator(stamper: Shell) -> None:
    config = parse_config(json.loads(stamper("topology", "show", "--format", "config").out))
    assert len(config.topics) == 32
    assert {one.name for topic in config.topics for one in topic.subscriptions} == {
        "stamper",
        "lucius-invoker",
    }


def test_what_is_needed_as_bicep(stamper: Shell) -> None:
    bicep = stamper("topology", "show", "--format", "bicep").out
    assert bicep.startswith("@description(")
    assert "'stamper'" in bicep


def test_a_form_that_nobody_knows_is_wrong_usage(shell: Shell) -> None:
    assert shell("topology", "show", "--format", "xml").code == 2


def test_without_a_bus_there_is_nothing_to_apply_to(shell: Shell) -> None:
    run = shell("topology", "apply")
    assert (run.code, run.out) == (2, "")
    assert "LUCIUS_SERVICEBUS_CONNECTION" in run.err


def test_a_bus_that_is_away_is_the_environments_failure(stamper: Shell) -> None:
    stamper.export(
        LUCIUS_SERVICEBUS_CONNECTION="Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=a;"
        "SharedAccessKey=hunter2;UseDevelopmentEmulator=true"
    )
    run = stamper("topology", "apply")
    assert (run.code, run.out) == (3, "")
    assert "cannot be reached" in run.err
    assert "hunter2" not in run.err


def test_what_is_missing_is_made_once(stamper: Shell, bus: RunningBus) -> None:
    stamper.export(LUCIUS_SERVICEBUS_CONNECTION=bus.connection())
    dry = stamper("topology", "apply", "--dry-run", "--json")
    assert (dry.code, len(dry.json["missing"]), dry.json["created"]) == (1, 64, [])
    first = stamper("topology", "apply")
    assert first.code == 0, first.err
    assert len(first.out.splitlines()) == 64
    assert "created  global-bus-p0/stamper" in first.out
    again = stamper("topology", "apply")
    assert (again.code, again.out, again.err) == (0, "", "all is there\n")


def test_a_doctor_names_a_service_without_subscription(stamper: Shell, bus: RunningBus) -> None:
    stamper.export(LUCIUS_SERVICEBUS_CONNECTION=bus.connection(), LUCIUS_URL="http://127.0.0.1:1")
    assert stamper("topology", "apply").code == 0
    findings = {check["name"]: check for check in stamper("doctor", "--json").json["checks"]}
    assert findings["bus"] == {"name": "bus", "ok": True, "detail": f"{bus.address} answers"}
    assert findings["topology"]["ok"]
    asyncio.run(delete_subscription(bus.connection(), "global-bus-p7", "stamper"))
    run = stamper("doctor")
    (line,) = [line for line in run.out.splitlines() if " topology " in line]
    assert line.split(maxsplit=2)[::2] == [
        "FAIL",
        "service stamper has no subscription on global-bus-p7: run `lucius topology apply`",
    ]


def test_what_is_otherwise_is_told_and_left(
    stamper: Shell, tmp_path: Path, bus: RunningBus
) -> None:
    config = json.loads(stamper("topology", "show", "--format", "config").out)
    topics = config["UserConfig"]["Namespaces"][0]["Topics"]
    topics[0]["Subscriptions"][0]["Properties"]["MaxDeliveryCount"] = 3
    (tmp_path / "Config.json").write_text(json.dumps(config))
    with running_bus(tmp_path, "--config", "Config.json") as other:
        stamper.export(LUCIUS_SERVICEBUS_CONNECTION=other.connection())
        run = stamper("topology", "apply", "--json")
        assert run.code == 1
        assert run.json == {
            "created": [],
            "missing": [],
            "drift": [
                {
                    "entity": "global-bus-p0/stamper",
                    "setting": "max delivery count",
                    "wanted": "10",
                    "found": "3",
                }
            ],
        }
        shown = stamper("topology", "apply")
        assert shown.out == ("drift    global-bus-p0/stamper: max delivery count is 3, wanted 10\n")


def test_a_doctor_without_the_bus_says_where_it_looked(stamper: Shell) -> None:
    stamper.export(
        LUCIUS_SERVICEBUS_CONNECTION="Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=a;"
        "SharedAccessKey=hunter2;UseDevelopmentEmulator=true",
        LUCIUS_URL="http://127.0.0.1:1",
    )
    run = stamper("doctor", "--json")
    (check,) = [check for check in run.json["checks"] if check["name"] == "bus"]
    assert not check["ok"]
    assert check["detail"].startswith("sb://127.0.0.1:1: ")
    assert "hunter2" not in run.out
