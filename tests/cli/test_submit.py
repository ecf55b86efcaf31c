"""`lucius submit` beside a server that is a double."""

import json
from pathlib import Path

import pytest

from tests.cli.double import Answer, Double, events
from tests.cli.shell import Shell

ACCEPTED = {
    "jobId": "job_1",
    "state": "QUEUED",
    "status": "QUEUED",
    "duplicate": False,
    "links": {"self": "/v1/jobs/job_1"},
}
ENVELOPE = {
    "tenant_id": "acme",
    "request_type": "OCR",
    "input_ref": {"uri": "az://inbox/a.pdf"},
    "output_ref": {"uri": "az://outbox/a.json"},
    "payload": {"dpi": 300},
    "schema_version": "1.1",
    "x-own": "kept",
}


@pytest.fixture(autouse=True)
def accepting(server: Double) -> None:
    server.answers("POST", "/v1/orchestrate", Answer(202, ACCEPTED))


def test_the_id_is_all_that_stdout_gets(client: Shell, server: Double, tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text(json.dumps(ENVELOPE))
    run = client("submit", "request.json")
    assert (run.code, run.out) == (0, "job_1\n")
    assert "lucius jobs watch job_1" in run.err
    assert server.asked[0].body == ENVELOPE


def test_standard_input_is_read_and_options_win(client: Shell, server: Double) -> None:
    client.type(json.dumps(ENVELOPE))
    client("submit", "-", "--tenant", "globex", "--idempotency-key", "k-1", "--payload", "{}")
    assert server.asked[0].body == {
        **ENVELOPE,
        "tenant_id": "globex",
        "idempotency_key": "k-1",
        "payload": {},
    }


def test_options_alone_make_a_request(client: Shell, server: Double, tmp_path: Path) -> None:
    client(
        *("submit", "--tenant", "acme", "--type", "OCR", "--input", "scan 1.pdf"),
        *("--output", "az://outbox/a.json", "--mode", "BURST", "--doc", "d1"),
    )
    assert server.asked[0].body == {
        "tenant_id": "acme",
        "request_type": "OCR",
        "input_ref": {"uri": (tmp_path / "scan 1.pdf").as_uri()},
        "output_ref": {"uri": "az://outbox/a.json"},
        "payload": {},
        "schema_version": "1",
        "mode": "BURST",
        "doc_id": "d1",
    }


def test_a_path_may_lead_upwards(client: Shell, server: Double, tmp_path: Path) -> None:
    client("submit", "--tenant", "acme", "--input", "../scan.pdf", "--output", "a/../out.txt")
    assert server.asked[0].body["input_ref"] == {"uri": (tmp_path.parent / "scan.pdf").as_uri()}
    assert server.asked[0].body["output_ref"] == {"uri": (tmp_path / "out.txt").as_uri()}


def test_a_duplicate_is_called_one(client: Shell, server: Double) -> None:
    again = {**ACCEPTED, "duplicate": True, "state": "SUCCEEDED"}
    server.answers("POST", "/v1/orchestrate", Answer(202, again))
    run = client("submit", "--tenant", "acme")
    assert run.out == "job_1\n"
    assert "submitted before; its job is SUCCEEDED" in run.err


def test_json_is_the_whole_answer_and_nothing_else(client: Shell) -> None:
    run = client("submit", "--tenant", "acme", "--json")
    assert (run.code, run.json, run.err) == (0, ACCEPTED, "")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], 2, "standard input"),
        (["--tenant", "acme", "--payload", "{"], 2, "not JSON"),
        (["missing.json"], 2, "No such file"),
        (["-"], 1, "ENVELOPE_INVALID"),
    ],
)
def test_a_request_that_cannot_be_read_is_not_sent(
    client: Shell, server: Double, arguments: list[str], code: int, says: str
) -> None:
    client.type("[1, 2")
    run = client("submit", *arguments)
    assert (run.code, run.out) == (code, "")
    assert says in run.err
    assert not server.asked


@pytest.mark.parametrize(("state", "code"), [("SUCCEEDED", 0), ("FAILED_FINAL", 1)])
def test_waiting_ends_with_the_job_and_its_exit_code(
    client: Shell, server: Double, state: str, code: int
) -> None:
    job = {"jobId": "job_1", "state": state, "seq": 2, "steps": []}
    server.answers("GET", "/v1/jobs/job_1", Answer(200, job))
    moved = {"seq": 2, "at": "2026-01-01T00:00:00Z", "before": "QUEUED", "after": state}
    server.answers("GET", "/v1/jobs/job_1/stream", events((2, "event", moved)))
    run = client("submit", "--tenant", "acme", "--wait", "--json")
    assert (run.code, run.json) == (code, job)
    assert f"QUEUED -> {state}" in run.err
