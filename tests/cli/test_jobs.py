"""`lucius jobs` and `lucius dead-letters` beside a server that is a double."""

from typing import Any

import pytest

from tests.cli.double import Answer, Double, problem
from tests.cli.shell import Shell

JOB_ID = "job_019a8cf0000070008000000000000001"


def job(number: int = 1, **members: Any) -> dict[str, Any]:
    return {
        "jobId": f"job_{number:032x}",
        "tenant_id": "acme",
        "state": "IN_PROGRESS",
        "status": "IN_PROGRESS",
        "request_type": "OCR_EMBEDDING",
        "created_at": "2126-01-02T03:04:05.678901Z",
        "updated_at": "2026-01-02T03:05:06Z",
        "seq": 7,
        "error": None,
        **members,
    }


def pages(*sizes: int) -> list[Answer]:
    answers, number = [], 0
    for index, size in enumerate(sizes):
        items = [job(number + offset) for offset in range(size)]
        number += size
        cursor = f"c{index + 1}" if index + 1 < len(sizes) else None
        answers.append(Answer(200, {"items": items, "next_cursor": cursor}))
    return answers


def test_a_list_is_aligned_and_nothing_is_cut(client: Shell, server: Double) -> None:
    server.answers("GET", "/v1/jobs", *pages(2))
    run = client("jobs", "list")
    assert run.code == 0
    assert run.out.splitlines() == [
        "JOB                                   STATE        AGE  TYPE           TENANT",
        f"job_{0:032x}  IN_PROGRESS  0s   OCR_EMBEDDING  acme",
        f"job_{1:032x}  IN_PROGRESS  0s   OCR_EMBEDDING  acme",
    ]
    assert run.err == ""


def test_filters_reach_the_server(client: Shell, server: Double) -> None:
    server.answers("GET", "/v1/jobs", *pages(0))
    run = client(
        *("jobs", "list", "--tenant", "a&b", "--state", "PAUSED", "--type", "OCR→EMBEDDING"),
        *("--since", "2026-01-01T00:00:00Z", "--limit", "7", "--cursor", "c0"),
    )
    assert server.asked[0].query == {
        "tenant_id": "a&b",
        "state": "PAUSED",
        "request_type": "OCR→EMBEDDING",
        "since": "2026-01-01T00:00:00Z",
        "limit": "7",
        "cursor": "c0",
    }
    assert (run.code, run.out, run.err) == (0, "", "no jobs\n")


def test_a_limit_is_kept_over_pages_and_more_is_announced(client: Shell, server: Double) -> None:
    server.answers("GET", "/v1/jobs", *pages(200, 0, 50, 1))
    run = client("jobs", "list", "--limit", "250")
    assert len(run.out.splitlines()) == 251
    assert "there are more" in run.err
    asked = [(request.query["limit"], request.query.get("cursor")) for request in server.asked]
    assert asked == [("200", None), ("50", "c1"), ("50", "c2")]


def test_all_pages_are_followed_to_the_end(client: Shell, server: Double) -> None:
    server.answers("GET", "/v1/jobs", *pages(2, 0, 3))
    run = client("jobs", "list", "--all", "--json")
    assert [item["jobId"] for item in run.json["items"]] == [f"job_{n:032x}" for n in range(5)]
    assert run.json["next_cursor"] is None


def test_json_gives_the_cursor_to_go_on_with(client: Shell, server: Double) -> None:
    server.answers("GET", "/v1/jobs", *pages(1, 1))
    run = client("jobs", "list", "--limit", "1", "--json")
    assert run.json["next_cursor"] == "c1"
    assert run.err == ""


def test_a_job_is_shown_with_its_steps(client: Shell, server: Double) -> None:
    steps = [
        {"stepId": "step_01", "step_type": "OCR", "state": "SUCCEEDED", "attempt_no": 1},
        {
            "stepId": "step_02",
            "step_type": "EMBEDDING",
            "state": "IN_PROGRESS",
            "attempt_no": 2,
            "progress": {"fraction": 0.425, "note": "page 17"},
        },
        {
            "stepId": "step_03",
            "step_type": "SIS",
            "state": "FAILED_RETRY",
            "attempt_no": 1,
            "error": {"code": "TIMEOUT", "message": "too\nslow\x1b[0m"},
        },
    ]
    failed = job(state="FAILED_FINAL", steps=steps, error={"code": "SLA_EXCEEDED", "message": ""})
    server.answers("GET", f"/v1/jobs/{JOB_ID}", Answer(200, failed))
    run = client("jobs", "show", JOB_ID)
    assert run.code == 0
    lines = run.out.splitlines()
    assert "state    FAILED_FINAL" in lines
    assert "created  2126-01-02T03:04:05Z" in lines
    assert "error    SLA_EXCEEDED" in lines
    assert lines[-4:] == [
        "STEP     TYPE       STATE         ATTEMPT  NOTE",
        "step_01  OCR        SUCCEEDED     1",
        "step_02  EMBEDDING  IN_PROGRESS   2        42% page 17",
        "step_03  SIS        FAILED_RETRY  1        TIMEOUT: too slow\N{REPLACEMENT CHARACTER}[0m",
    ]
    assert client("jobs", "show", JOB_ID, "--json").json == failed


@pytest.mark.parametrize("verb", ["cancel", "pause", "resume"])
def test_a_command_prints_the_state_it_led_to(client: Shell, server: Double, verb: str) -> None:
    answer = {"jobId": JOB_ID, "state": "CANCELLING", "status": "IN_PROGRESS"}
    server.answers("POST", f"/v1/jobs/{JOB_ID}:{verb}", Answer(200, answer))
    assert client("jobs", verb, JOB_ID) == (0, f"{JOB_ID} CANCELLING\n", "")
    assert client("jobs", verb, JOB_ID, "--json").json == answer


def test_a_command_that_the_state_does_not_allow_exits_1(client: Shell, server: Double) -> None:
    conflict = problem(409, "STATE_CONFLICT", "The job's state does not allow this.")
    server.answers("POST", f"/v1/jobs/{JOB_ID}:resume", conflict)
    run = client("jobs", "resume", JOB_ID)
    assert (run.code, run.out) == (1, "")
    assert "STATE_CONFLICT" in run.err


def test_an_id_cannot_lead_to_another_path(client: Shell, server: Double) -> None:
    client("jobs", "show", "../protocols?x=1")
    assert server.asked[0].path == "/v1/jobs/..%2Fprotocols%3Fx%3D1"


def test_a_redrive_prints_the_new_job(client: Shell, server: Double) -> None:
    accepted = {"jobId": "job_2", "state": "QUEUED", "duplicate": False}
    server.answers("POST", f"/v1/jobs/{JOB_ID}:redrive", Answer(202, accepted))
    run = client("jobs", "redrive", JOB_ID, "--idempotency-key", "again")
    assert (run.code, run.out) == (0, "job_2\n")
    assert server.asked[0].headers["Idempotency-Key"] == "again"


def test_a_key_that_no_header_can_carry_is_wrong_usage(client: Shell, server: Double) -> None:
    assert client("jobs", "redrive", JOB_ID, "--idempotency-key", "\N{SNOWMAN}").code == 2
    assert not server.asked


def test_dead_letters_are_listed_with_what_became_of_them(client: Shell, server: Double) -> None:
    letter = {
        "id": "d1",
        "kind": "STEP",
        "tenant_id": "acme",
        "jobId": JOB_ID,
        "stepId": "step_01",
        "attempt_no": 3,
        "code": "ocr.NO_TEXT",
        "message": "no text on page 1",
        "first_at": "2026-01-01T00:00:00Z",
        "last_at": "2026-01-01T00:00:01.5Z",
        "redriven_by": None,
    }
    server.answers("GET", "/v1/dead-letters", Answer(200, {"items": [letter], "next_cursor": None}))
    run = client("dead-letters", "--kind", "STEP", "--code", "ocr.NO_TEXT", "--tenant", "acme")
    assert server.asked[0].query == {
        "kind": "STEP",
        "code": "ocr.NO_TEXT",
        "tenant_id": "acme",
        "limit": "50",
    }
    assert "ocr.NO_TEXT" in run.out
    assert run.out.rstrip().endswith("no text on page 1")
    assert client("dead-letters", "--json").json == {"items": [letter], "next_cursor": None}


def test_no_dead_letters_is_good_news(client: Shell, server: Double) -> None:
    server.answers("GET", "/v1/dead-letters", Answer(200, {"items": [], "next_cursor": None}))
    assert client("dead-letters") == (0, "", "no dead letters\n")
