"""Whatever goes wrong, the answer is a problem with a code."""

import logging
from typing import Any

import pytest

from lucius_contract.errors import ContractError, ErrorCode
from lucius_logs.context import correlation
from lucius_orchestrator.api import Check
from tests.api.stage import Stage, code
from tests.engine.plane import OCR


async def test_an_unknown_path_is_not_found(stage: Stage) -> None:
    for path in ("/", "/v1", "/v1/jobs/", "/v2/jobs", "/docs", "/redoc"):
        assert code(await stage.get(path)) == (404, "NOT_FOUND"), path


async def test_another_method_is_told_what_is_allowed(stage: Stage) -> None:
    allowed = {
        ("GET", "/v1/orchestrate"): "POST",
        ("GET", "/v1/callbacks/ack"): "POST",
        ("DELETE", "/v1/jobs"): "GET",
        ("POST", "/v1/jobs/x"): "GET",
        ("POST", "/healthz/live"): "GET",
    }
    for (method, path), methods in allowed.items():
        answer = await stage.ask(method, path)
        assert code(answer) == (405, "METHOD_NOT_ALLOWED")
        assert answer.headers["allow"] == methods


async def test_a_problem_says_of_what_type_it_is_and_how_it_came_about(stage: Stage) -> None:
    answer = await stage.submit(request_type="OCT", correlation_id="c-1")
    body = answer.json()
    assert body["type"] == "urn:lucius:problem:REQUEST_TYPE_UNKNOWN"
    assert body["title"] == "No protocol has this request type or alias."
    assert body["detail"] == "no protocol has the request type OCT"
    assert body["errors"][0]["message"].startswith("did you mean OCR?")


@pytest.mark.parametrize("verb", ["load", "jobs", "create"])
async def test_a_ledger_that_is_away_is_unavailable(stage: Stage, verb: str) -> None:
    job_id = await stage.submitted()
    stage.plane.detour.fail(verb)
    answer = {
        "load": await stage.get(f"/v1/jobs/{job_id}"),
        "jobs": await stage.get("/v1/jobs"),
        "create": await stage.submit(payload={"dpi": 72}),
    }[verb]
    assert code(answer) == (503, "UNAVAILABLE")
    assert answer.headers["retry-after"] == "5"


class Unforeseen(Exception):
    def __str__(self) -> str:
        return "password=hunter2"


@pytest.mark.parametrize("verb", ["load", "create"])
async def test_an_error_that_nobody_foresaw_is_logged_once_and_says_nothing(
    stage: Stage, caplog: pytest.LogCaptureFixture, verb: str
) -> None:
    job_id = await stage.submitted()
    stage.plane.detour.fail(verb, error=Unforeseen())
    with caplog.at_level(logging.DEBUG):
        path = {"load": f"/v1/jobs/{job_id}", "create": "/v1/orchestrate"}[verb]
        answer = await (
            stage.get(path) if verb == "load" else stage.post(path, json=OCR | {"payload": {}})
        )
    assert code(answer) == (500, "INTERNAL")
    assert "hunter2" not in answer.text
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.getMessage() == "api.request_failed"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], Unforeseen)
    assert record.__dict__["path"] == path
    assert record.__dict__["correlation_id"] == answer.headers["x-correlation-id"]


async def test_a_code_that_no_client_should_see_is_a_defect_of_ours(stage: Stage) -> None:
    job_id = await stage.submitted()
    error = ContractError(ErrorCode.LEASE_EXPIRED, "inner affairs")
    stage.plane.detour.fail("load", error=error)
    answer = await stage.get(f"/v1/jobs/{job_id}")
    assert code(answer) == (500, "INTERNAL")
    assert "inner affairs" not in answer.text


GIVEN: dict[str, Any] = {"plain": "c-1", "long": "x" * 128, "odd": "~!@#$%^&*()"}
MADE: dict[str, Any] = {
    "empty": "",
    "too long": "x" * 129,
    "space": "a b",
    "tab": b"\x09a",
    "ü": b"\xc3\xbc",
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=list(GIVEN))
async def test_a_correlation_id_is_echoed(stage: Stage, given: str) -> None:
    for path in ("/healthz/live", "/v1/jobs", "/nothing"):
        answer = await stage.get(path, headers={"X-Correlation-Id": given})
        assert answer.headers.get_list("x-correlation-id") == [given]


@pytest.mark.parametrize("given", MADE.values(), ids=list(MADE))
async def test_one_that_is_unfit_for_logs_is_replaced(stage: Stage, given: str | bytes) -> None:
    answer = await stage.get("/healthz/live", headers={b"X-Correlation-Id": given})
    (made,) = answer.headers.get_list("x-correlation-id")
    assert made != given
    assert len(made) == 32


async def test_the_correlation_id_is_known_while_the_request_is_served(stage: Stage) -> None:
    seen: list[str | None] = []

    async def note(*_: Any) -> None:
        seen.append(correlation.get())

    stage.plane.detour.before["jobs"] = note
    await stage.get("/v1/jobs", headers={"X-Correlation-Id": "c-1"})
    assert seen == ["c-1"]
    assert correlation.get() is None


async def test_the_process_lives(stage: Stage) -> None:
    answer = await stage.get("/healthz/live", None)
    assert (answer.status_code, answer.json()) == (200, {"status": "live"})


async def test_the_process_is_ready_when_all_that_it_needs_is_there(stage: Stage) -> None:
    answer = await stage.get("/healthz/ready", "root")
    checks = [{"name": "ledger", "ok": True, "detail": "answers"}]
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "checks": checks})
    stage.checks.append(Check("bus", False, "unreachable"))
    answer = await stage.get("/healthz/ready", "root")
    assert (answer.status_code, answer.json()["status"]) == (503, "not ready")
    assert answer.json()["checks"][1] == {"name": "bus", "ok": False, "detail": "unreachable"}


async def test_metrics_are_prometheus_text(stage: Stage) -> None:
    answer = await stage.get("/metrics", "root")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.text == "lucius_jobs_submitted_total 1.0\n"
