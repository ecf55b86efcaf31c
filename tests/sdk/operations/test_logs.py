"""Every line that is written while a directive is worked on names it, whoever writes it."""

import io
import logging
import threading
from collections.abc import Iterator
from contextvars import copy_context

import pytest

from lucius_sdk.logs import (
    QUIET,
    STEP_FIELDS,
    StepFields,
    configure_logs,
    step_fields,
    step_logger,
    step_logs,
)
from tests.logs.capture import Log, logging_kept
from tests.sdk.operations.directives import LEASE, directive

NAMED = {
    "correlation_id": "c-1",
    "jobId": "job_1",
    "stepId": "step_01",
    "tenant_id": "acme",
    "attempt_no": 2,
    "lease_id": "01234567\N{HORIZONTAL ELLIPSIS}",
    "step_type": "OCR",
}


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    with logging_kept(QUIET):
        yield


@pytest.fixture
def log() -> Log:
    return Log(configure=configure_logs)


def named(line: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in line.items() if name in STEP_FIELDS}


def test_the_logger_of_a_step_names_it_beside_the_fields_of_a_call(log: Log) -> None:
    step_logger(directive()).info("page.read", extra={"page": 3})
    line = log.line()
    assert named(line) == NAMED
    assert line["page"] == 3


def test_a_call_cannot_pretend_to_be_about_another_step(log: Log) -> None:
    step_logger(directive()).info("x", extra={"jobId": "job_2"})
    assert log.line()["jobId"] == "job_1"


def test_loggers_that_know_nothing_of_a_step_name_it_too(log: Log) -> None:
    with step_logs(directive()):
        logging.getLogger("team.code").info("x")
        logging.getLogger("redis").warning("y")
    logging.getLogger("team.code").info("z")
    *within, after = log.lines()
    assert [named(line) for line in within] == [NAMED, NAMED]
    assert named(after) == {"correlation_id": None}


def test_threads_that_are_given_the_context_name_the_step(log: Log) -> None:
    with step_logs(directive()):
        work = copy_context().run
    thread = threading.Thread(target=work, args=(logging.getLogger("team").info, "x"))
    thread.start()
    thread.join()
    assert named(log.line()) == NAMED


def test_steps_within_each_other_are_told_apart(log: Log) -> None:
    with step_logs(directive()):
        with step_logs(directive(jobId="job_2")):
            logging.getLogger("team").info("x")
        logging.getLogger("team").info("y")
    assert [line["jobId"] for line in log.lines()] == ["job_2", "job_1"]


def test_the_whole_lease_is_on_no_record() -> None:
    assert LEASE not in str(step_fields(directive()))


def test_handlers_of_a_teams_own_name_the_step_with_the_filter() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(message)s %(jobId)s %(lease_id)s", defaults={}))
    handler.addFilter(StepFields())
    record = logging.makeLogRecord({"msg": "x", "lease_id": "own"})
    with step_logs(directive()):
        handler.handle(record)
    assert stream.getvalue() == "x job_1 own\n"


def test_the_level_holds_for_the_teams_code_and_the_sdks_libraries_only_warn() -> None:
    log = Log(level="INFO", configure=configure_logs)
    for name in ("team", "lucius_sdk", "azure.core.http", "aiohttp.access"):
        logging.getLogger(name).info("x")
        logging.getLogger(name).warning("y")
    seen = [(line["logger"], line["event"]) for line in log.lines()]
    assert ("team", "x") in seen
    assert ("lucius_sdk", "x") in seen
    assert ("azure.core.http", "x") not in seen
    assert len(seen) == 6


def test_a_record_that_others_see_too_is_left_as_it_was(log: Log) -> None:
    record = logging.makeLogRecord({"name": "team", "msg": "x", "levelno": logging.INFO})
    with step_logs(directive()):
        logging.getLogger("team").handle(record)
    assert not hasattr(record, "jobId")
    assert log.line()["jobId"] == "job_1"
