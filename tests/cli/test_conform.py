"""`lucius conform`: the harness at a terminal."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from contract_tests.reports.json_report import json_text
from tests.cli.shell import LUCIUS, Shell
from tests.conform.reports.samples import failed, report
from tests.runner.deadlines import PROCESS_DEADLINE

ROOT = Path(__file__).parents[2]
REFERENCE = str(Path(__file__).parents[1] / "conform/reference")


def test_a_run_tells_each_case_writes_reports_and_ends_with_its_code(shell: Shell) -> None:
    run = shell("conform", "run", REFERENCE, "--only", "LC-19", "--report", "reports")
    assert run.code == 5
    assert run.out.startswith("pass   LC-19/unknown-fields")
    assert run.out.endswith("in part only; that is no proof of conformance\n")
    names = {"report.json", "junit.xml", "report.html", "badge.svg"}
    assert {path.name for path in Path("reports").iterdir()} == names
    verified = shell("conform", "verify", "reports/report.json")
    assert verified.code == 5
    assert "in part only" in verified.out


@pytest.mark.check
def test_json_is_the_report_and_nothing_else(shell: Shell) -> None:
    run = shell("conform", "run", REFERENCE, "--only", "LC-23", "--json")
    assert run.json["schema"] == "lucius-conformance/1"
    assert [case["verdict"] for case in run.json["cases"]] == ["pass"]


@pytest.mark.check
def test_a_baseline_entry_that_passes_fails_the_run(shell: Shell) -> None:
    Path("known.yaml").write_text("known_failures: [{case: LC-23/foreign, reason: not yet}]\n")
    run = shell("conform", "run", REFERENCE, "--only", "LC-23", "--baseline", "known.yaml")
    assert run.code == 1
    assert "LC-23/foreign is in the baseline, but it passes now: remove its entry" in run.out


@pytest.mark.check
def test_debug_shows_every_message_and_keeps_what_was_written(shell: Shell) -> None:
    run = shell("conform", "debug", REFERENCE, "LC-19", "--keep", "kept")
    assert run.code == 0
    assert "ACK attempt 1 over http → 200 APPLIED" in run.out
    assert list(Path("kept").rglob("service.log"))


@pytest.mark.check
def test_load_prints_the_rate_and_the_concurrency_reached(shell: Shell) -> None:
    run = shell("conform", "load", REFERENCE, "--jobs", "12", "--json")
    assert run.code == 0
    assert run.json["jobs"] == 12
    assert run.json["most_at_once"] >= 1
    assert shell("conform", "load", REFERENCE, "--jobs", "3").out.startswith("3 directives over")


def test_rules_are_listed_and_explained(shell: Shell) -> None:
    listed = shell("conform", "list", "--json").json
    assert len(listed) == 26
    assert listed[6]["scenarios"] == ["on-arrival", "frozen"]
    assert "LC-07" in shell("conform", "list").out
    explained = shell("conform", "explain", "lc-07").out
    assert "lease: the right to work on an attempt" in explained


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "nowhere.yaml"), "there is no such file"),
        (("run", REFERENCE, "--only", "LC-99"), "no rule or scenario is called LC-99"),
        (("run", REFERENCE, "--level", "high"), "must be core or full"),
        (("run", REFERENCE, "--only", "LC-19", "--baseline", "no.yaml"), "there is no such file"),
        (("debug", REFERENCE, "LC-99"), "no rule or scenario is called LC-99"),
        (("explain", "LC-99"), "there are LC-01 to LC-26"),
        (("load", REFERENCE, "--via", "smoke"), "must be http or bus"),
    ],
)
def test_what_was_typed_wrongly_is_told_and_ends_with_2(
    shell: Shell, arguments: tuple[str, ...], told: str
) -> None:
    run = shell("conform", *arguments)
    assert run.code == 2
    assert told in run.err
    assert "Traceback" not in run.err
    assert run.out == ""


def test_a_report_that_was_changed_by_hand_is_refused(shell: Shell) -> None:
    document = {**json.loads(json_text(report(failed("LC-23")))), "exit_code": 0}
    Path("report.json").write_text(json.dumps(document))
    verified = shell("conform", "verify", "report.json")
    assert verified.code == 2
    assert "report.json" in verified.err


@pytest.mark.check
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_service_under_test_too(tmp_path: Path, number: signal.Signals) -> None:
    command = [LUCIUS, "conform", "debug", REFERENCE, "LC-24"]
    process = subprocess.Popen(
        [*command, "--keep", str(tmp_path)], stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert process.stdout is not None
    while "read of" not in process.stdout.readline():
        pass
    process.send_signal(number)
    assert process.wait(timeout=PROCESS_DEADLINE) == 130
    assert "the service is killed" in process.stdout.read()
    process.stdout.close()


def test_the_mock_says_what_is_wrong_before_it_starts(shell: Shell) -> None:
    Path("script.yaml").write_text("- shout: 1\n")
    run = shell("mock", "up", "--service", "x", "--script", "script.yaml")
    assert run.code == 2
    assert "/0/shout" in run.err
    assert shell("mock", "up", "--service", "x", "--reply-via", "smoke").code == 2
