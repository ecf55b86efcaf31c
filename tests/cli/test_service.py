"""`lucius up` and a service in another process, which knows nothing but a connection string."""

import signal
from pathlib import Path

import httpx
import pytest

from tests.cli.service import answer_over_http, answer_over_the_bus, next_directive
from tests.cli.shell import Shell
from tests.cli.test_up import Plane, running, submit
from tests.runner.deadlines import PROCESS_DEADLINE

pytestmark = pytest.mark.check

SERVICES = ("ocr", "embedding")  # of the request that is submitted


def state_of(shell: Shell, job_id: str) -> str:
    run = shell("jobs", "watch", job_id)
    assert run.code == 0, run.err
    return str(shell("jobs", "show", job_id, "--json").json["state"])


def test_a_service_takes_its_directives_from_its_subscription_and_answers_over_http(
    shell: Shell, tmp_path: Path
) -> None:
    with running(tmp_path, "up", "--port", "0", "--data", "data") as plane:
        shell.export(LUCIUS_URL=plane.url)
        job_id = submit(shell, "acme")
        for service in SERVICES:
            directive = next_directive(plane.connection, "acme", service)
            answer_over_http(directive, "ACK", status="ACKED")
            answer_over_http(directive, "RESULT", status="SUCCEEDED")
        assert state_of(shell, job_id) == "SUCCEEDED"


def test_a_service_answers_over_the_bus(shell: Shell, tmp_path: Path) -> None:
    with running(tmp_path, "up", "--port", "0", "--data", "data", LUCIUS_REPLY_VIA="bus") as plane:
        shell.export(LUCIUS_URL=plane.url)
        job_id = submit(shell, "acme")
        for service in SERVICES:
            directive = next_directive(plane.connection, "acme", service)
            answer_over_the_bus(plane.connection, directive, "ACK", status="ACKED")
            answer_over_the_bus(plane.connection, directive, "RESULT", status="SUCCEEDED")
        assert state_of(shell, job_id) == "SUCCEEDED"


def test_a_directive_that_waits_on_the_bus_survives_the_kill_of_the_process(
    shell: Shell, tmp_path: Path
) -> None:
    """It is the message that survives: the step is not dispatched a second time."""
    with running(tmp_path, "up", "--port", "0", "--data", "data") as plane:
        shell.export(LUCIUS_URL=plane.url)
        job_id = submit(shell, "acme")
        until_sent(plane, job_id)
        plane.process.send_signal(signal.SIGKILL)
        plane.process.wait(timeout=PROCESS_DEADLINE)
    with running(tmp_path, "up", "--port", "0", "--data", "data") as plane:
        shell.export(LUCIUS_URL=plane.url)
        directive = next_directive(plane.connection, "acme", "ocr")
        assert (directive.job_id, directive.attempt_no) == (job_id, 1)


def until_sent(plane: Plane, job_id: str) -> None:
    """The stream of the job tells when its directive has gone out."""
    url = f"{plane.url}/v1/jobs/{job_id}/stream"
    with httpx.stream("GET", url, timeout=PROCESS_DEADLINE) as stream:
        assert any("AWAITING_ACK" in line for line in stream.iter_lines())
