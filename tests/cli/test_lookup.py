"""`lucius lane` and `lucius hash`, as a person or a script runs them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ENVELOPE = {
    "tenant_id": "acme",
    "request_type": "OCR→EMBEDDING",
    "input_ref": {"uri": "az://inbox/a.pdf"},
    "output_ref": {"uri": "az://outbox/a.json"},
    "payload": {"ocr": {"dpi": 200.0, "pages": None}},
    "schema_version": "1",
}


def lucius(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lucius_cli", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


def test_lane_answers_with_json() -> None:
    run = lucius("lane", " ACME ")
    assert run.returncode == 0
    assert json.loads(run.stdout) == {
        "tenant_id": " ACME ",
        "doc_id": None,
        "mode": "DEFAULT",
        "routing_key_used": "acme",
        "lane": 14,
        "directive_topic": "global-bus-p14",
        "reply_topic": "global-bus-replies-p14",
        "partition_key": "acme",
    }


def test_lane_spreads_by_document_in_burst() -> None:
    run = lucius("lane", "acme", "--doc", "D1", "--mode", "BURST")
    assert json.loads(run.stdout)["routing_key_used"] == "acmed1"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["lane", "acme", "--mode", "BURST"], "--doc"),
        (["lane", "acme", "--mode", "FAST"], "DEFAULT, SAFE, BURST"),
        (["lane", "  "], "white space"),
        (["lane"], "Missing argument"),
        (["hash", "no-such-file.json"], "No such file"),
    ],
)
def test_wrong_usage_exits_2_and_says_what_is_wrong(arguments: list[str], says: str) -> None:
    run = lucius(*arguments)
    assert (run.returncode, run.stdout) == (2, "")
    assert says in run.stderr


def test_hash_reads_a_file_and_standard_input_alike(tmp_path: Path) -> None:
    text = json.dumps(ENVELOPE)
    file = tmp_path / "request.json"
    file.write_text(text)
    from_file, from_stdin = lucius("hash", str(file)), lucius("hash", "-", stdin=text)
    assert from_file.stdout == from_stdin.stdout
    answer = json.loads(from_file.stdout)
    assert answer["request_type"] == "OCR_EMBEDDING"
    assert json.loads(answer["canonical"])["payload"] == {"ocr": {"dpi": 200}}
    assert len(answer["idempotency_hash"]) == 64


def test_hash_of_a_broken_request_exits_1_and_names_the_fields() -> None:
    run = lucius("hash", "-", stdin='{"tenant_id": "acme"}')
    assert (run.returncode, run.stdout) == (1, "")
    assert "ENVELOPE_INVALID" in run.stderr
    assert "/input_ref" in run.stderr


def test_without_arguments_it_lists_what_it_can_do() -> None:
    run = lucius()
    assert "lane" in run.stdout
    assert "hash" in run.stdout
