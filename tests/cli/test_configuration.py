"""`lucius config`, `lucius doctor`, and the light start of every command."""

import subprocess
import sys

import pytest

from tests.cli.double import Answer, Double, problem
from tests.cli.shell import Run, Shell

URL = "postgresql://lucius:hunter2@db.example/lucius"


def test_settings_are_shown_with_their_source_and_without_secrets(shell: Shell) -> None:
    shell.export(
        LUCIUS_STORAGE_BACKEND="postgres",
        LUCIUS_DATABASE_URL=URL,
        LUCIUS_PORT="9000",
        LUCIUS_API_KEY="lk_1_2",
    )
    run = shell("config")
    assert run.code == 0
    rows = {line.split()[0]: line.split()[1:] for line in run.out.splitlines()}
    assert rows["LUCIUS_PORT"] == ["9000", "set"]
    assert rows["LUCIUS_HOST"] == ["127.0.0.1", "default"]
    assert rows["LUCIUS_API_KEY"][-1] == "set"
    assert "hunter2" not in run.out + run.err
    assert "lk_1_2" not in run.out + run.err


def test_settings_as_json_say_what_they_mean(shell: Shell) -> None:
    settings = shell("config", "--json").json["settings"]
    by_name = {setting.pop("variable"): setting for setting in settings}
    assert set(by_name["LUCIUS_PORT"]) == {"value", "source", "meaning"}
    assert by_name["LUCIUS_URL"]["value"] == "http://127.0.0.1:8080"


def test_warnings_go_to_stderr(shell: Shell) -> None:
    shell.export(LUCIUS_PROT="9000")
    run = shell("config", "--json")
    assert run.code == 0
    assert run.json
    assert "warning: " in run.err
    assert "LUCIUS_PORT" in run.err


def findings(run: Run) -> dict[str, bool]:
    return {check["name"]: check["ok"] for check in run.json["checks"]}


@pytest.fixture
def healthy(server: Double) -> None:
    server.answers("GET", "/healthz/live", Answer(200, {"status": "live"}))
    server.answers("GET", "/healthz/ready", Answer(200, {"status": "ready", "checks": []}))


@pytest.mark.usefixtures("healthy")
def test_a_doctor_who_finds_nothing_exits_0(client: Shell) -> None:
    run = client("doctor")
    assert run.code == 0, run.out
    assert "all is fine" in run.err
    assert client("doctor", "--json").json["ok"] is True


def test_a_doctor_without_a_server_says_how_to_start_one(shell: Shell) -> None:
    shell.export(LUCIUS_URL="http://127.0.0.1:1")
    run = shell("doctor", "--json")
    assert run.code == 1
    assert findings(run)["server"] is False
    assert findings(run)["ledger"] is True
    assert "lucius up" in run.out


@pytest.mark.usefixtures("healthy")
def test_a_server_that_is_not_ready_is_told_by_its_failing_checks(
    client: Shell, server: Double
) -> None:
    checks = [
        {"name": "ledger", "ok": False, "detail": "no answer within 5 s"},
        {"name": "bus", "ok": True, "detail": "answers"},
    ]
    server.answers("GET", "/healthz/ready", Answer(503, {"status": "not ready", "checks": checks}))
    run = client("doctor")
    assert run.code == 1
    (line,) = [line for line in run.out.splitlines() if line.startswith("FAIL")]
    assert line.split(maxsplit=3)[1:] == ["server:", "ledger", "no answer within 5 s"]


def service(name: str, presence: str, waiting: int, unacknowledged: int) -> dict[str, object]:
    return {
        "service": name,
        "presence": presence,
        "waiting": waiting,
        "unacknowledged": unacknowledged,
    }


@pytest.mark.usefixtures("healthy")
def test_a_doctor_warns_of_services_that_work_waits_for_in_vain(
    client: Shell, server: Double
) -> None:
    items = [
        service("ocr", "ABSENT", 41, 1),
        service("sis", "ABSENT", 0, 0),
        service("embedding", "PRESENT", 7, 1),
        service("new", "UNKNOWN", 7, 0),
    ]
    server.answers("GET", "/v1/services", Answer(200, {"items": items, "next_cursor": None}))
    run = client("doctor")
    assert run.code == 0
    (line,) = [line for line in run.out.splitlines() if "service " in line]
    assert line.startswith("ok")
    assert "service ocr" in line
    assert "warning: nothing is heard from it, and 42 directives wait for it: start it" in line


@pytest.mark.usefixtures("healthy")
def test_a_doctor_who_may_not_see_services_says_nothing_of_them(
    client: Shell, server: Double
) -> None:
    server.answers("GET", "/v1/services", problem(403, "FORBIDDEN", "Forbidden"))
    run = client("doctor")
    assert run.code == 0
    assert "/v1/services" in [asked.path for asked in server.asked]
    assert "service" not in run.out


@pytest.mark.usefixtures("healthy")
def test_a_doctor_without_the_right_key_says_where_the_reason_is(
    client: Shell, server: Double
) -> None:
    checks = [{"name": "ledger", "ok": False, "detail": None}]
    server.answers("GET", "/healthz/ready", Answer(503, {"status": "not ready", "checks": checks}))
    run = client("doctor")
    assert run.code == 1
    (line,) = [line for line in run.out.splitlines() if line.startswith("FAIL")]
    assert "LUCIUS_API_KEY" in line


@pytest.mark.usefixtures("healthy")
def test_a_doctor_looks_at_the_server_though_the_settings_are_wrong(client: Shell) -> None:
    client.export(LUCIUS_PORT="x", LUCIUS_AUTH="maybe")
    run = client("doctor", "--json")
    assert run.code == 1
    assert findings(run) == {"settings": False, "server": True}
    assert "LUCIUS_PORT" in run.out
    assert "LUCIUS_AUTH" in run.out


def test_what_answers_and_is_not_lucius_is_called_so(client: Shell) -> None:
    run = client("doctor", "--json")
    assert run.code == 1
    assert "is not LUCIUS" in run.out


PROBE = """
import sys
import lucius_cli.main
print(*sys.modules)
"""
HEAVY = {
    "aiohttp",
    "fastapi",
    "httpx",
    "opentelemetry",
    "prometheus_client",
    "psycopg",
    "pydantic",
    "sqlite3",
    "uvicorn",
    "yaml",
}


def test_the_command_starts_without_what_few_commands_need() -> None:
    run = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert not loaded & HEAVY
    assert "lucius_orchestrator" not in loaded
