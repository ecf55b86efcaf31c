"""What a person reads when something is not as it should be, and what a script gets."""

import socket
import sys

import pytest

from tests.cli.double import Answer, Double, problem
from tests.cli.shell import Shell


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def test_without_a_server_it_says_how_to_get_one(shell: Shell) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    shell.export(LUCIUS_URL=url)
    run = shell("jobs", "list")
    assert (run.code, run.out) == (3, "")
    assert run.err == f"no LUCIUS at {url}: start one with `lucius up`, or set LUCIUS_URL\n"


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://host", "http://", "http://[::1"])
def test_an_address_that_is_none_is_named(shell: Shell, url: str) -> None:
    shell.export(LUCIUS_URL=url)
    run = shell("jobs", "list")
    assert (run.code, run.out) == (3, "")
    assert "LUCIUS_URL" in run.err


def test_problem_details_are_shown_with_every_pointer(client: Shell, server: Double) -> None:
    server.answers(
        "POST",
        "/v1/orchestrate",
        problem(
            422,
            "PAYLOAD_INVALID",
            "The payload breaks the step's schema.",
            detail="2 problems",
            errors=[
                {"pointer": "/payload/ocr/dpi", "message": "at most 600"},
                {"pointer": "", "message": "all of it"},
            ],
        ),
    )
    run = client("submit", "--tenant", "acme")
    assert (run.code, run.out) == (1, "")
    assert run.err.splitlines() == [
        "PAYLOAD_INVALID: The payload breaks the step's schema.",
        "  2 problems",
        "  /payload/ocr/dpi: at most 600",
        "  (document): all of it",
    ]


def test_a_server_that_wants_a_key_leads_to_the_variable(client: Shell, server: Double) -> None:
    server.answers("GET", "/v1/jobs", problem(401, "UNAUTHENTICATED", "No valid credential."))
    assert "this server wants a key: set LUCIUS_API_KEY" in client("jobs", "list").err
    client.export(LUCIUS_API_KEY="lk_1_wrong")
    run = client("jobs", "list")
    assert "the key in LUCIUS_API_KEY was not accepted" in run.err
    assert "lk_1_wrong" not in run.err
    assert run.code == 1


def test_a_missing_role_is_named(client: Shell, server: Double) -> None:
    client.export(LUCIUS_API_KEY="lk_1_a\n")
    forbidden = problem(403, "FORBIDDEN", "Not allowed.", detail="cancel needs the role operate")
    server.answers("POST", "/v1/jobs/job_1:cancel", forbidden)
    run = client("jobs", "cancel", "job_1")
    assert run.code == 1
    assert "cancel needs the role operate" in run.err
    assert "set LUCIUS_API_KEY to a key that has the role" in run.err
    assert server.asked[0].headers["Authorization"] == "Bearer lk_1_a"


def test_a_saturated_server_says_when_to_come_back(client: Shell, server: Double) -> None:
    full = problem(429, "TENANT_SATURATED", "Too many jobs in flight.")
    server.answers(
        "POST", "/v1/orchestrate", full._replace(headers={**full.headers, "Retry-After": "5"})
    )
    run = client("submit", "--tenant", "acme")
    assert run.code == 1
    assert "try again in 5 s" in run.err


def test_a_server_that_fails_is_a_failure_of_the_environment(client: Shell, server: Double) -> None:
    server.answers(
        "GET",
        "/v1/jobs/job_1",
        problem(503, "UNAVAILABLE", "The ledger is away.", correlation_id="c-9"),
    )
    run = client("jobs", "show", "job_1")
    assert run.code == 3
    assert "UNAVAILABLE: The ledger is away." in run.err
    assert "c-9" in run.err


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(200, b"<html>welcome</html>"), 3),
        (Answer(200, []), 3),
        (Answer(302, b"", {"Location": "https://login.example"}), 3),
        (Answer(502, b"<html>bad gateway</html>"), 3),
        (Answer(404, b"not here"), 1),
    ],
)
def test_what_is_not_lucius_is_not_taken_for_it(
    client: Shell, server: Double, answer: Answer, code: int
) -> None:
    server.answers("GET", "/v1/jobs/job_1", answer)
    run = client("jobs", "show", "job_1")
    assert (run.code, run.out) == (code, "")
    assert run.err
    assert "Traceback" not in run.err


def test_an_answer_that_breaks_off_is_a_broken_connection(client: Shell, server: Double) -> None:
    server.answers("GET", "/v1/jobs/job_1", Answer(200, {"jobId": "job_1"}, cut=True))
    run = client("jobs", "show", "job_1")
    assert (run.code, run.out) == (3, "")
    assert "broke" in run.err


def test_a_key_that_cannot_be_sent_is_not_sent(client: Shell, server: Double) -> None:
    client.export(LUCIUS_API_KEY="lk_\N{SNOWMAN}")
    run = client("jobs", "list")
    assert run.code == 3
    assert "LUCIUS_API_KEY" in run.err
    assert not server.asked


def test_messages_of_others_do_not_steer_the_terminal(client: Shell, server: Double) -> None:
    server.answers(
        "GET", "/v1/jobs/job_1", problem(404, "JOB_NOT_FOUND", "No \x1b[2J\x9b2Jsuch job.")
    )
    run = client("jobs", "show", "job_1")
    assert "\x1b" not in run.err
    assert "\x9b" not in run.err


def test_every_problem_of_the_settings_is_on_its_line(shell: Shell) -> None:
    shell.export(LUCIUS_PORT="x", LUCIUS_AUTH="maybe")
    for command in (["config"], ["keys", "list"], ["up"], ["serve", "api"]):
        run = shell(*command)
        assert (run.code, run.out) == (3, "")
        assert [line.partition(":")[0] for line in run.err.splitlines()] == [
            "LUCIUS_PORT",
            "LUCIUS_AUTH",
        ]


def test_a_missing_extra_is_named(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """None in sys.modules is to an import what a module that is not installed is."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "lucius_orchestrator.bootstrap.serving", raising=False)
    run = shell("up", "--port", "0")
    assert (run.code, run.out) == (3, "")
    assert "pip install 'lucius-sdk[orchestrator]'" in run.err


def test_a_missing_module_of_our_own_is_a_defect(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lucius_orchestrator.settings", None)
    with pytest.raises(ModuleNotFoundError):
        shell("keys", "list")
