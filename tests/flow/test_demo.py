"""`lucius demo`, as somebody types it who has just installed the project."""

import json
import os
import signal
import socket
import subprocess
from base64 import b64encode
from pathlib import Path

import pytest

from lucius_cli.demo import places as demo_places
from lucius_cli.demo.places import require_packages
from lucius_cli.failures import EnvironmentFailed
from tests.cli.shell import LUCIUS
from tests.runner.deadlines import seconds, time_limit

DEADLINE = seconds(240)

pytestmark = [pytest.mark.check, time_limit(300)]


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [LUCIUS, "demo", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def left_running(folder: Path) -> list[str]:
    """Processes that know the demo's folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in told and int(process.name) != os.getpid():
            found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


def test_the_scan_is_answered_rightly_and_everything_is_stopped(tmp_path: Path) -> None:
    demo = start(tmp_path, "--json")
    out, err = demo.communicate(timeout=DEADLINE)
    assert demo.returncode == 0, err
    told = json.loads(out)
    answers = {each["name"]: each for each in told["result"]["answers"]}
    assert "4,711.20" in answers["total"]["answer"]
    assert "14 March 2026" in answers["date"]["answer"]
    assert "Tarnbrook Observatory" in answers["customer"]["answer"]
    assert answers["record"]["answer"] == {
        "total": 4711.2,
        "invoice_date": "2026-03-14",
        "customer": "Tarnbrook Observatory",
    }
    assert [step["state"] for step in told["job"]["steps"]] == ["SUCCEEDED"] * 3
    assert told["job"]["input_ref"]["uri"] == "artifact://documents/v1/invoice-scan.pdf"
    assert told["job"]["final_output"] == "artifact://answers/v3/result.json"
    assert left_running(tmp_path) == []


def test_a_person_sees_steps_answers_sources_files_and_what_to_try_next(tmp_path: Path) -> None:
    demo = start(tmp_path, "--document", "digital")
    out, err = demo.communicate(timeout=DEADLINE)
    assert demo.returncode == 0, err
    for step in ("OCR", "EMBEDDING", "SIS"):
        assert any(step in line and "SUCCEEDED" in line for line in err.splitlines())
    assert "Answers from invoice.pdf" in out
    assert "[The total amount due is EUR 4,711.20.] It includes value added tax" in out
    for name in ("ocr/1/output.txt", "embedding/1/vectors.json", "sis/1/result.json"):
        (line,) = (line for line in out.splitlines() if name in line)
        assert (tmp_path / line.split()[0]).is_file()
    assert "demo --chaos" in err


def test_with_auth_it_needs_its_keys_and_leaves_none_that_is_valid(tmp_path: Path) -> None:
    demo = start(tmp_path, "--document", "digital", "--auth", "--json")
    out, err = demo.communicate(timeout=DEADLINE)
    assert demo.returncode == 0, err
    assert json.loads(out)["job"]["state"] == "SUCCEEDED"
    data = tmp_path / ".lucius" / "demo"
    (key,) = json.loads((data / "keys.json").read_text())["keys"]
    assert key["revoked_at"] is not None
    secret = b64encode((data / "bus.key").read_bytes()).decode()
    assert "on: keys from" in (data / "logs" / "up.log").read_text()
    assert not any(secret in log.read_text() for log in (data / "logs").iterdir())
    assert data.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)]
)
def test_interrupted_it_stops_what_it_started(tmp_path: Path, number: signal.Signals) -> None:
    demo = start(tmp_path)
    assert demo.stderr is not None
    while not (line := demo.stderr.readline()).startswith("running at"):
        assert line, "it ended early"
    demo.send_signal(number)
    demo.communicate(timeout=DEADLINE)
    assert demo.returncode == 130
    assert left_running(tmp_path) == []


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        demo = start(tmp_path, "--port", str(port))
        _, err = demo.communicate(timeout=DEADLINE)
    assert demo.returncode == 3
    assert f"port {port} is taken" in err
    assert left_running(tmp_path) == []


def test_a_document_that_is_not_there_is_named(tmp_path: Path) -> None:
    demo = start(tmp_path, "--document", "absent.pdf")
    _, err = demo.communicate(timeout=DEADLINE)
    assert demo.returncode == 2
    assert "absent.pdf" in err


def test_a_package_that_is_missing_is_named_with_what_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(demo_places, "_MODULES", ("json", "nowhere_to_be_had", "nor.this"))
    with pytest.raises(EnvironmentFailed, match=r"nor\.this, nowhere_to_be_had: pip install"):
        require_packages()
