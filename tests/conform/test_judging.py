"""What the harness makes of services that cannot be judged, and what it tells."""

import sys
from pathlib import Path

import pytest

from contract_tests import ExitCode, Level, LoadedContract, Verdict, load_contract, run
from contract_tests.load import load
from tests.conform.broken_services.in_process import CONTRACT, BenchInProcess
from tests.conform.broken_services.sound import Service

REFERENCE = Path(__file__).parent / "reference/contract.yaml"


def changed(**changes: object) -> LoadedContract:
    loaded = load_contract(REFERENCE)
    contract = loaded.contract.model_copy(update=changes)
    return loaded.model_copy(update={"contract": contract})


@pytest.mark.check
async def test_some_rules_that_pass_are_no_proof_of_conformance() -> None:
    report = await run(changed(), only=["LC-19", "LC-20"])
    assert {outcome.verdict for outcome in report.outcomes} == {Verdict.PASS}
    assert all(outcome.timeline for outcome in report.outcomes)
    assert report.exit_code is ExitCode.INCOMPLETE
    assert "in part" in report.headline


async def test_a_service_that_ends_at_once_is_a_harness_fault_told_with_its_log() -> None:
    command = [sys.executable, "-c", "print('no licence found'); raise SystemExit(7)"]
    report = await run(changed(command=command), only=["LC-01", "LC-02"])
    assert {outcome.verdict for outcome in report.outcomes} == {Verdict.FAULT}
    assert "exit code 7" in report.outcomes[0].reason
    assert "no licence found" in report.outcomes[0].reason
    assert "not judged" in report.outcomes[-1].reason
    assert report.exit_code is ExitCode.HARNESS


async def test_a_command_that_does_not_exist_is_a_harness_fault() -> None:
    report = await run(changed(command=["no-such-program"]), only=["LC-01"])
    assert "no-such-program cannot be started" in report.outcomes[0].reason
    assert report.exit_code is ExitCode.HARNESS


async def test_a_service_that_never_gets_ready_is_a_harness_fault() -> None:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    report = await run(changed(command=command, startup_seconds=0.5), only=["LC-01/*-http"])
    assert "/healthz/ready was not answered 200 within 0.5 s" in report.outcomes[0].reason
    assert report.exit_code is ExitCode.HARNESS


@pytest.mark.check
async def test_a_sample_that_does_not_succeed_undisturbed_is_a_harness_fault() -> None:
    invalid = load_contract(REFERENCE).contract.invalid
    report = await run(changed(valid=invalid), only=["LC-01/*-http"])
    assert "did not succeed, so no rule can be judged" in report.outcomes[0].reason
    assert report.exit_code is ExitCode.HARNESS


async def test_a_ready_service_that_does_nothing_is_not_conformant() -> None:
    deaf = (
        "import os\nfrom http.server import BaseHTTPRequestHandler, HTTPServer\n"
        "class Healthy(BaseHTTPRequestHandler):\n"
        "    def do_GET(self): self.send_response(200); self.end_headers()\n"
        "HTTPServer(('127.0.0.1', int(os.environ['LUCIUS_HEALTH_PORT'])), Healthy).serve_forever()"
    )
    loaded = changed(command=[sys.executable, "-c", deaf])
    report = await run(loaded, only=["LC-01/before-work"], patience=1.0)
    assert [outcome.verdict for outcome in report.outcomes] == [Verdict.FAIL, Verdict.FAULT]
    assert "came to nothing" in report.outcomes[0].reason
    assert report.exit_code is ExitCode.NOT_CONFORMANT


async def test_what_is_declared_missing_is_skipped_and_the_run_incomplete() -> None:
    report = await run(changed(heartbeats=False), level=Level.FULL, only=["LC-26"])
    assert {outcome.verdict for outcome in report.outcomes} == {Verdict.SKIPPED}
    assert "has no heartbeats" in report.outcomes[0].reason
    assert report.exit_code is ExitCode.INCOMPLETE


@pytest.mark.parametrize("shares_store", [True, False])
async def test_a_second_instance_has_a_store_of_its_own_unless_it_can_share_one(
    shares_store: bool, tmp_path: Path
) -> None:
    loaded = load_contract(CONTRACT)
    contract = loaded.contract.model_copy(update={"shares_store": shares_store})
    loaded = loaded.model_copy(update={"contract": contract})
    async with BenchInProcess(loaded, tmp_path, Service) as bench:
        await bench.renew()
        async with bench.second_instance():
            stores = {path.parent.name for path in tmp_path.rglob("dedup.db")}
    assert stores == ({"state"} if shares_store else {"state", "second-state"})


@pytest.mark.check
async def test_what_a_run_leaves_is_kept_where_it_is_asked_for(tmp_path: Path) -> None:
    await run(changed(), only=["LC-10/artifacts"], keep=tmp_path)
    assert list(tmp_path.rglob("output.txt"))
    assert list(tmp_path.rglob("service.log"))


@pytest.mark.check
@pytest.mark.parametrize("jobs", [1, 40])
async def test_load_is_measured_with_the_concurrency_that_was_reached(jobs: int) -> None:
    found = await load(changed(), jobs)
    assert found.jobs == jobs
    assert found.most_at_once >= min(jobs, 2)
    assert found.per_second > 0
    assert found.median_ms <= found.p99_ms
