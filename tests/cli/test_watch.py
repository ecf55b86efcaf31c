"""`lucius jobs watch` beside a server that is a double."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import httpx
import pytest

from lucius_cli.client import Api
from lucius_cli.failures import EnvironmentFailed, Refused
from lucius_cli.server_events import ServerEvent, server_events
from lucius_cli.watching import Retry, follow
from tests.cli.double import Answer, Double, events, problem
from tests.cli.shell import Shell
from tests.runner.deadlines import PROCESS_DEADLINE, seconds

PATH, STREAM = "/v1/jobs/job_1", "/v1/jobs/job_1/stream"
STEPS = [
    {"stepId": "step_01", "step_type": "OCR", "state": "IN_PROGRESS", "attempt_no": 1},
    {"stepId": "step_02", "step_type": "SIS", "state": "PENDING", "attempt_no": 0},
]
RUNNING = {
    "jobId": "job_1",
    "state": "IN_PROGRESS",
    "request_type": "OCR_SIS",
    "seq": 4,
    "updated_at": "2026-01-01T00:00:04Z",
    "steps": STEPS,
}
SUCCEEDED = {**RUNNING, "state": "SUCCEEDED", "seq": 6}


def event(seq: int, before: str | None, after: str, **members: Any) -> tuple[int, str, Any]:
    at = f"2026-01-01T00:00:0{seq}.25Z"
    return seq, "event", {"seq": seq, "at": at, "before": before, "after": after, **members}


STEP_MOVED = event(
    5, "DISPATCHING", "AWAITING_ACK", stepId="step_01", attempt_no=1, cause="OUTBOX_SENT", by=None
)
ENDED = event(6, "IN_PROGRESS", "SUCCEEDED", cause="STEP_SUCCEEDED", by="acme-ci")


def resumed_after(server: Double) -> list[str]:
    return [asked.headers["Last-Event-ID"] for asked in server.asked if asked.path == STREAM]


def test_elsewhere_than_on_a_terminal_each_event_is_a_line(client: Shell, server: Double) -> None:
    server.answers("GET", PATH, Answer(200, RUNNING), Answer(200, SUCCEEDED))
    server.answers("GET", STREAM, events(STEP_MOVED, ENDED))
    run = client("jobs", "watch", "job_1")
    assert run.out.splitlines() == [
        "2026-01-01T00:00:05Z  step_01 attempt 1  DISPATCHING -> AWAITING_ACK  (OUTBOX_SENT)",
        "2026-01-01T00:00:06Z  job  IN_PROGRESS -> SUCCEEDED  (STEP_SUCCEEDED, by acme-ci)",
    ]
    assert (run.code, run.err) == (0, "job_1 has ended: SUCCEEDED\n")


@pytest.mark.parametrize("state", ["FAILED_FINAL", "CANCELLED"])
def test_a_job_that_ended_otherwise_exits_1(client: Shell, server: Double, state: str) -> None:
    server.answers("GET", PATH, Answer(200, {**SUCCEEDED, "state": state}))
    server.answers("GET", STREAM, Answer(204))
    assert client("jobs", "watch", "job_1").code == 1


def test_a_lost_connection_is_taken_up_after_the_last_event(client: Shell, server: Double) -> None:
    server.answers("GET", PATH, Answer(200, RUNNING), Answer(200, SUCCEEDED))
    server.answers("GET", STREAM, events(STEP_MOVED, cut=True), events(ENDED))
    run = client("jobs", "watch", "job_1", "--json")
    assert run.code == 0
    lines = [json.loads(line) for line in run.out.splitlines()]
    assert [(line["id"], line["name"]) for line in lines] == [
        ("5", "event"),
        ("6", "event"),
        (None, "job"),
    ]
    assert lines[-1]["data"] == SUCCEEDED
    assert resumed_after(server) == ["0", "5"]
    assert "trying again" in run.err


def test_a_snapshot_stands_for_what_cannot_be_told_singly(client: Shell, server: Double) -> None:
    server.answers("GET", PATH, Answer(200, SUCCEEDED))
    server.answers("GET", STREAM, events((6, "snapshot", SUCCEEDED)))
    run = client("jobs", "watch", "job_1")
    assert run.out == "2026-01-01T00:00:04Z  job  SUCCEEDED  (as it is now)\n"


def test_a_job_that_is_not_there_is_said_at_once(client: Shell, server: Double) -> None:
    server.answers("GET", PATH, problem(404, "JOB_NOT_FOUND", "No such job."))
    run = client("jobs", "watch", "job_1")
    assert (run.code, run.out) == (1, "")
    assert "JOB_NOT_FOUND" in run.err


class Losses:
    """Connections that broke, and the pauses after them."""

    def __init__(self, *delays: float) -> None:
        self.reasons: list[str] = []
        self.pauses: list[float] = []
        self.retry = Retry(delays, self.pauses.append)

    def follow(self, server: Double) -> list[ServerEvent]:
        with httpx.Client(base_url=server.url, timeout=PROCESS_DEADLINE) as http:
            api = Api(http, server.url)
            return list(follow(api, "job_1", "0", self.retry, self.reasons.append))


def test_connections_are_tried_again_with_growing_pauses_and_then_no_more(server: Double) -> None:
    server.answers("GET", PATH, Answer(200, RUNNING))
    server.answers("GET", STREAM, Answer(200, b"", cut=True))
    losses = Losses(1, 2, 4)
    with pytest.raises(EnvironmentFailed):
        losses.follow(server)
    assert losses.pauses == [1, 2, 4]
    assert len(losses.reasons) == 3


def test_an_event_that_arrives_begins_the_count_anew(server: Double) -> None:
    server.answers("GET", PATH, Answer(200, RUNNING), Answer(200, SUCCEEDED))
    cuts = [events(event(n, "A", "B"), cut=True) for n in range(1, 6)]
    server.answers("GET", STREAM, *cuts, events(ENDED))
    losses = Losses(1)
    assert [told.id for told in losses.follow(server)] == ["1", "2", "3", "4", "5", "6"]
    assert losses.pauses == [1] * 5


def test_a_stream_that_ends_before_the_job_is_a_loss_too(server: Double) -> None:
    server.answers("GET", PATH, Answer(200, RUNNING))
    server.answers("GET", STREAM, events(), events())
    losses = Losses(1)
    with pytest.raises(EnvironmentFailed, match="has not ended"):
        losses.follow(server)


def test_a_server_that_is_away_for_a_moment_is_waited_for(server: Double) -> None:
    server.answers("GET", PATH, Answer(200, RUNNING), Answer(200, SUCCEEDED))
    away = problem(503, "UNAVAILABLE", "A part that is needed cannot be reached.")
    server.answers("GET", STREAM, away, away, events(ENDED))
    losses = Losses(1, 2)
    assert [told.id for told in losses.follow(server)] == ["6"]


def test_a_refusal_is_not_tried_again(server: Double) -> None:
    server.answers("GET", PATH, Answer(200, RUNNING))
    server.answers("GET", STREAM, problem(403, "FORBIDDEN", "Not allowed."))
    losses = Losses(1)
    with pytest.raises(Refused):
        losses.follow(server)
    assert losses.pauses == []


def test_a_stream_that_is_closed_ends_with_the_reason(server: Double) -> None:
    """The event is none of the job's, and nothing is tried again."""
    refused = problem(401, "UNAUTHENTICATED", "No valid credential.")
    server.answers("GET", PATH, Answer(200, RUNNING), refused)
    closed = b'event: closed\ndata: {"code": "UNAUTHENTICATED", "detail": "revoked"}\n\n'
    server.answers("GET", STREAM, Answer(200, closed, {"Content-Type": "text/event-stream"}))
    with httpx.Client(base_url=server.url) as http, pytest.raises(Refused):
        list(follow(Api(http, server.url), "job_1", "4", Retry((0.0,)), pytest.fail))
    assert len(resumed_after(server)) == 1


def test_events_are_read_however_their_bytes_arrive() -> None:
    data = {"text": "a\u2028b\x85c → d", "n": [1, 2]}
    raw = (
        ": comment\r\n\r\n"
        f"id: 1\r\nevent: event\r\ndata: {json.dumps(data, ensure_ascii=False)}\r\n\r\n"
        'data: {"a":\ndata: 1}\n\n'
        "data: [2]\n\n"
        "id: 9\ndata: {}\n"
    ).encode()
    expected = [
        ServerEvent("1", "event", data),
        ServerEvent(None, "message", {"a": 1}),
        ServerEvent(None, "message", {"data": [2]}),
    ]
    assert list(server_events([raw])) == expected
    assert list(server_events(raw[i : i + 1] for i in range(len(raw)))) == expected


def test_an_event_that_cannot_be_read_is_a_failure_of_the_server() -> None:
    with pytest.raises(EnvironmentFailed):
        list(server_events([b"data: {\n\n"]))


HEARING = (
    "import runpy, signal, sys;"
    "signal.signal(signal.SIGINT, signal.default_int_handler);"
    "sys.argv[0] = 'lucius';"
    "runpy.run_module('lucius_cli', run_name='__main__')"
)
"""A process that is started in the background may have been told not to hear interrupts."""


def start(server: Double, stdout: int, **environ: str) -> subprocess.Popen[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("LUCIUS_")}
    return subprocess.Popen(
        [sys.executable, "-c", HEARING, "jobs", "watch", "job_1"],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**inherited, "LUCIUS_URL": server.url, "TERM": "xterm-256color", **environ},
    )


def on_a_terminal(server: Double, **environ: str) -> tuple[int, str]:
    """The exit code, and all that the terminal was sent."""
    terminal, inside = pty.openpty()
    with start(server, inside, **environ) as process:
        os.close(inside)
        sent = b""
        while chunk := _read(terminal):
            sent += chunk
        code = process.wait(PROCESS_DEADLINE)
    os.close(terminal)
    return code, sent.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # how Linux says that nobody is left at the other end
        return b""


def test_on_a_terminal_a_table_is_drawn_until_the_end(server: Double) -> None:
    server.answers("GET", PATH, *[Answer(200, RUNNING)] * 3, Answer(200, SUCCEEDED))
    server.answers("GET", STREAM, events(STEP_MOVED, ENDED))
    code, screen = on_a_terminal(server)
    assert code == 0
    assert "step_01" in screen
    assert "\x1b[32mSUCCEEDED" in screen
    assert resumed_after(server) == ["4"]


def test_no_color_is_respected(server: Double) -> None:
    server.answers("GET", PATH, Answer(200, SUCCEEDED))
    server.answers("GET", STREAM, Answer(204))
    code, screen = on_a_terminal(server, NO_COLOR="1")
    assert code == 0
    assert "SUCCEEDED" in screen
    assert "\x1b[32m" not in screen


def test_an_interrupt_ends_it_quietly(server: Double) -> None:
    hold = threading.Event()
    server.answers("GET", PATH, Answer(200, RUNNING))
    server.answers("GET", STREAM, events(STEP_MOVED, hold=hold))
    with start(server, subprocess.PIPE) as process:
        assert process.stdout is not None
        assert "AWAITING_ACK" in process.stdout.readline()
        interrupt(process)
        _, err = process.communicate(timeout=PROCESS_DEADLINE)
    hold.set()
    assert (process.returncode, err) == (130, "")


def interrupt(process: "subprocess.Popen[str]") -> None:
    """As a person does it: again, if nothing happens. One that comes between Python's last look for
    signals and the system call that waits for the server is not heard before that call ends."""
    deadline = time.monotonic() + PROCESS_DEADLINE
    while time.monotonic() < deadline:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=seconds(5))
            return
