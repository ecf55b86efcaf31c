"""What becomes of a step when the endpoint does not answer as it should."""

import logging
import os
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING

import pytest
from lucius_sdk.testing import StepRun, run_step

from sis_service.endpoint import MOST_BYTES, TRIES
from sis_service.execute import service

if TYPE_CHECKING:
    from tests.conftest import EndpointDouble, Reply

PROMPTS = {"prompt_set": [{"name": "total", "prompt": "What is due?", "output": "text"}]}
LETTER = b"The total amount due is EUR 4,711.20. Secret of the letter: blue heron."


def run() -> StepRun:
    return run_step(service, PROMPTS, LETTER)


def good(reply: "type[Reply]") -> "Reply":
    return reply(b'{"choices": [{"message": {"content": "EUR 4,711.20"}}]}')


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_a_fault_that_passes_is_survived(
    endpoint: "EndpointDouble", reply: "type[Reply]", status: int
) -> None:
    endpoint.replies = [reply(b"{}", status), reply(b"{}", status), good(reply)]
    done = run()
    assert done.status == "SUCCEEDED"
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize(
    ("status", "code"),
    [(408, "TIMEOUT"), (429, "RATE_LIMITED"), (500, "DEPENDENCY_UNAVAILABLE")],
)
def test_a_fault_that_stays_is_worth_another_attempt(
    endpoint: "EndpointDouble", reply: "type[Reply]", status: int, code: str
) -> None:
    endpoint.replies = [reply(b"{}", status, {"Retry-After": "0"})]
    done = run()
    assert (done.status, done.code) == ("FAILED_RETRY", code)
    assert len(endpoint.requests) == TRIES


def test_the_pause_that_the_endpoint_asks_for_is_kept(
    endpoint: "EndpointDouble", reply: "type[Reply]"
) -> None:
    endpoint.replies = [reply(b"{}", 429, {"Retry-After": "1"}), good(reply)]
    begun = time.monotonic()
    assert run().status == "SUCCEEDED"
    assert time.monotonic() - begun >= 1


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_pause_that_is_too_long_is_left_to_the_orchestrator(
    endpoint: "EndpointDouble", reply: "type[Reply]", form: str
) -> None:
    tomorrow = format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)
    after = {"seconds": "86400", "date": tomorrow}[form]
    endpoint.replies = [reply(b"{}", 429, {"Retry-After": after}), good(reply)]
    done = run()
    assert (done.status, done.code) == ("FAILED_RETRY", "RATE_LIMITED")
    assert len(endpoint.requests) == 1


def test_an_endpoint_that_is_not_there_is_worth_another_attempt(
    endpoint: "EndpointDouble",
) -> None:
    endpoint.close()
    done = run()
    assert (done.status, done.code) == ("FAILED_RETRY", "DEPENDENCY_UNAVAILABLE")
    assert done.error
    assert "SIS_LLM_URL cannot be reached" in done.error.message


@pytest.mark.parametrize("way", ["hangs", "drips"])
def test_an_endpoint_that_takes_too_long_times_out(
    endpoint: "EndpointDouble",
    reply: "type[Reply]",
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    monkeypatch.setenv("SIS_LLM_TIMEOUT_SECONDS", "0.2")
    endpoint.replies = [reply(hangs=way == "hangs", drips=way == "drips")]
    done = run()
    assert (done.status, done.code) == ("FAILED_RETRY", "TIMEOUT")
    assert done.error
    assert "more than 0.2 seconds: see SIS_LLM_TIMEOUT_SECONDS" in done.error.message


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_ends_the_step_and_names_its_variable(
    endpoint: "EndpointDouble", reply: "type[Reply]", status: int
) -> None:
    endpoint.replies = [reply(b"{}", status)]
    done = run()
    assert (done.status, done.code) == ("FAILED_FINAL", "SIS_LLM_REFUSED")
    assert done.error
    assert done.error.message == f"the endpoint answered {status}: look at SIS_LLM_KEY"
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_request_that_is_refused_ends_the_step(
    endpoint: "EndpointDouble", reply: "type[Reply]", status: int
) -> None:
    endpoint.replies = [reply(b"{}", status)]
    done = run()
    assert (done.status, done.code) == ("FAILED_FINAL", "SIS_LLM_REJECTED")


def test_a_redirect_is_not_followed(endpoint: "EndpointDouble", reply: "type[Reply]") -> None:
    endpoint.replies = [reply(b"", 307, {"Location": f"{endpoint.url}/other"}), good(reply)]
    assert run().code == "SIS_LLM_REJECTED"
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"<html>Sign in</html>", "text/html"),
        (b"", "application/json"),
        (b"{}", "application/json"),
        (b'{"choices": []}', "application/json"),
        (b'{"choices": [{"message": {"content": 7}}]}', "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"\xff\xfe", "application/json"),
    ],
)
def test_what_is_no_chat_completion_ends_the_step(
    endpoint: "EndpointDouble", reply: "type[Reply]", body: bytes, content_type: str
) -> None:
    endpoint.replies = [reply(body, headers={"Content-Type": content_type})]
    done = run()
    assert (done.status, done.code) == ("FAILED_FINAL", "SIS_LLM_UNREADABLE")
    assert done.error
    assert "look at SIS_LLM_URL" in done.error.message


def test_an_answer_that_is_too_long_is_not_taken(endpoint: "EndpointDouble") -> None:
    endpoint.says("x" * 20 * MOST_BYTES)
    done = run()
    assert (done.status, done.code) == ("FAILED_FINAL", "SIS_LLM_UNREADABLE")


@pytest.mark.parametrize("status", [200, 401, 404, 429, 500])
def test_the_key_and_the_document_stay_out_of_logs_and_errors(
    endpoint: "EndpointDouble",
    reply: "type[Reply]",
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    status: int,
) -> None:
    """Though the endpoint repeats both."""
    caplog.set_level(logging.DEBUG)
    key = os.environ["SIS_LLM_KEY"]
    endpoint.replies = [reply(key.encode() + LETTER, status, {"Retry-After": "0"})]
    done = run()
    told = caplog.text + "".join(capfd.readouterr()) + repr(done)
    assert endpoint.requests[0].headers["Authorization"] == f"Bearer {key}"
    assert "HTTP Request: POST" in told
    assert key not in told
    assert "blue heron" not in told


def test_a_key_in_an_answer_is_masked(endpoint: "EndpointDouble") -> None:
    key = os.environ["SIS_LLM_KEY"]
    endpoint.says(f"The key is {key}.")
    done = run()
    assert done.json("result.json")["answers"][0]["answer"] == "The key is ***."
    assert key not in done.text("result.json")
