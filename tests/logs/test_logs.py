"""One line per record, with the correlation id, without secrets, whatever is logged."""

import io
import json
import logging
import sys
import warnings
from datetime import UTC, datetime
from typing import Any

import pytest

from lucius_logs.context import correlation
from lucius_logs.formatting import LogFormat
from lucius_logs.logs import configure_logs
from tests.logs.capture import Log
from tests.runner.deadlines import DEADLINE

pytestmark = pytest.mark.usefixtures("logging_as_before")
OURS = logging.getLogger("ours")
SECRET = "S3cr3t"  # noqa: S105 - stands for one
LEASE = "0123456789abcdef0123456789abcdef"


def record(**attributes: Any) -> logging.LogRecord:
    head = {"name": "ours", "msg": "x", "levelno": logging.INFO}
    return logging.makeLogRecord({**head, **attributes})


class Broken:
    """Nothing can be asked of it."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("no attributes, not even a class")


def test_a_line_has_time_level_logger_event_and_the_records_fields() -> None:
    log, before = Log(), datetime.now(UTC)
    OURS.info("job.finished", extra={"jobId": "job_1", "state": "SUCCEEDED", "count": 3})
    line = log.line()
    at = datetime.fromisoformat(line.pop("time"))
    assert abs((at - before).total_seconds()) < DEADLINE
    assert at.utcoffset() is not None
    assert line == {
        "level": "INFO",
        "logger": "ours",
        "event": "job.finished",
        "correlation_id": None,
        "jobId": "job_1",
        "state": "SUCCEEDED",
        "count": 3,
    }


def test_the_time_is_utc_and_says_so() -> None:
    log = Log()
    OURS.handle(record(created=0.5))
    assert log.line()["time"] == "1970-01-01T00:00:00.500Z"


def test_the_correlation_id_of_the_work_at_hand_is_on_every_line() -> None:
    log = Log()
    token = correlation.set("c-1")
    for name in ("ours", "ours.part", "another", "some.library"):
        logging.getLogger(name).warning("x")
    correlation.reset(token)
    OURS.info("x")
    assert [line["correlation_id"] for line in log.lines()] == ["c-1"] * 4 + [None]


def test_a_records_own_correlation_id_wins() -> None:
    log = Log()
    token = correlation.set("of the request")
    OURS.info("x", extra={"correlation_id": "of the job"})
    correlation.reset(token)
    assert log.line()["correlation_id"] == "of the job"


def test_the_second_configuration_replaces_the_first() -> None:
    first, second = Log(), Log("text", "ERROR")
    OURS.info("x")
    OURS.error("y")
    assert first.text == ""
    assert second.text.rstrip().endswith("ours y")


def test_an_unknown_level_is_refused_with_those_that_are_allowed() -> None:
    with pytest.raises(ValueError, match="allowed: DEBUG"):
        configure_logs("loud", "json")


def test_without_a_stream_logs_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("INFO", "json")
    OURS.info("x")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err)["event"] == "x"


def test_warnings_of_the_interpreter_are_logged() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        log = Log()
        warnings.warn("this will go away", stacklevel=1)
        logging.captureWarnings(False)
    assert "this will go away" in log.line()["event"]


@pytest.mark.parametrize("format", ["json", "text"])
def test_what_cannot_be_printed_breaks_nothing(format: LogFormat) -> None:
    log = Log(format)
    endless: list[Any] = []
    endless.append(endless)
    OURS.info(
        "x",
        extra={
            "broken": Broken(),
            "lease_id": Broken(),
            "correlation_id": Broken(),
            "endless": endless,
            "infinite": float("inf"),
            "huge": 10**5000,
            "half": "\ud800",
            "raw": b"\xff" * 9,
            "nested": {Broken: Broken(), "list": [Broken(), 1]},
        },
    )
    assert len(log.text.splitlines()) == 1
    for expected in ("<unprintable Broken>", "<a huge number>", "<9 bytes>", "inf"):
        assert expected in log.text


def test_a_message_whose_arguments_do_not_fit_is_shown_as_it_is() -> None:
    log = Log()
    OURS.info("%d jobs of %s", "no number")
    assert log.line()["event"] == "%d jobs of %s"


def test_a_message_that_cannot_be_printed_is_a_line_all_the_same() -> None:
    log = Log()
    OURS.info(Broken())
    OURS.info("%s %s", Broken(), 1)
    assert [line["event"] for line in log.lines()] == ["<unprintable Broken>", "%s %s"]


def test_a_stream_that_is_closed_or_narrow_breaks_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = Log()
    log.stream.close()
    OURS.info("password=S3cr3t", extra={"note": "x"})
    assert capsys.readouterr().err == ""
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    configure_logs("INFO", "text", narrow)
    OURS.info("na\N{LATIN SMALL LETTER I WITH DIAERESIS}ve")
    narrow.seek(0)
    assert "na\\xefve" in narrow.read()


def _fail(secret: str) -> None:
    raise ConnectionError(f"postgresql://app:{secret}@db/lucius")


def _fail_twice(secret: str) -> None:
    try:
        _fail(secret)
    except ConnectionError as cause:
        raise RuntimeError(f"password={secret},\n token:\n  '{secret}'") from cause


def test_an_exception_is_told_with_its_cause_and_without_credentials() -> None:
    log = Log()
    try:
        _fail_twice(SECRET)
    except RuntimeError:
        OURS.exception("broken")
    line = log.line()
    assert line["exception"].index("ConnectionError: ") < line["exception"].index("RuntimeError: ")
    assert "test_logs.py" in line["exception"]
    assert "@db/lucius" in line["exception"]
    assert "S3cr3t" not in log.text


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_exceptions_of_every_shape_are_told() -> None:
    log = Log()
    group = ExceptionGroup("two", [ValueError("secret=S3cr3t"), KeyError("k")])
    unspeakable = Unspeakable()
    loop = ValueError("round")
    loop.__cause__ = RuntimeError("and round")
    loop.__cause__.__cause__ = loop
    for error in (group, unspeakable, loop, KeyboardInterrupt()):
        OURS.error("broken", exc_info=error)
    told = [line["exception"] for line in log.lines()]
    assert "  | ValueError: secret=***" in told[0]
    assert "KeyError: 'k'" in told[0]
    assert told[1] == "Unspeakable: <unprintable Unspeakable>"
    assert told[2].count("round") == 2
    assert told[3].startswith("KeyboardInterrupt")


def test_an_exception_that_another_formatter_has_put_into_words_is_looked_through() -> None:
    log = Log()
    text = "in f\n  connect(password='S3cr3t')"
    OURS.handle(record(exc_text=text, stack_info=text))
    assert log.line()["exception"] == log.line()["stack"] == "in f\n  connect(password=***)"


def test_a_stack_and_an_exception_that_is_none_are_no_trouble() -> None:
    log = Log()
    OURS.info("x", exc_info=True, stack_info=True)
    line = log.line()
    assert "exception" not in line
    assert "test_logs.py" in line["stack"]
    assert sys.exc_info() == (None, None, None)


def test_a_field_cannot_pretend_to_be_the_event_or_the_level() -> None:
    log = Log()
    OURS.info("x", extra={"event": "job.finished", "level": "DEBUG", "time": "never"})
    line = log.line()
    assert (line["event"], line["level"]) == ("x", "INFO")
    assert (line["event_"], line["level_"], line["time_"]) == ("job.finished", "DEBUG", "never")


def test_lease_ids_are_shortened_wherever_they_are() -> None:
    log = Log()
    message_id = f"job_{'1' * 32}.step_01.2.{LEASE}.ACK"
    OURS.info(
        f"lease_id={LEASE}",
        extra={"lease_id": LEASE, "ids": [message_id], "of": {"leaseId": LEASE}},
    )
    assert LEASE not in log.text
    line = log.line()
    assert line["lease_id"] == line["of"]["leaseId"] == "01234567\N{HORIZONTAL ELLIPSIS}"
    assert "step_01.2.01234567" in line["ids"][0]


def test_text_is_one_line_per_record_with_the_same_content() -> None:
    log = Log("text")
    token = correlation.set("c-1")
    OURS.info("job.finished", extra={"jobId": "job_1", "why": "all is\nwell", "at": [1, "a b"]})
    correlation.reset(token)
    (line,) = log.text.splitlines()
    _, _, rest = line.partition("Z ")
    assert rest == (
        'INFO    ours job.finished correlation_id=c-1 jobId=job_1 why="all is\\nwell" at=[1, "a b"]'
    )


def test_nobody_can_forge_a_line_of_text_or_move_the_cursor() -> None:
    log = Log("text")
    OURS.info("a\n2026 INFO forged", extra={"b": "\x1b[2J", "c\n2026": "d\r\ne", "k": '"=x'})
    assert len(log.text.splitlines()) == 1
    assert "\x1b" not in log.text


def test_text_shows_an_exception_set_in() -> None:
    log = Log("text")
    OURS.error("broken", exc_info=ValueError("a\x1b\nb"))
    head, *block = log.text.splitlines()
    assert head.endswith("ours broken")
    assert block == ["    ValueError: a\\u001b", "    b"]


def test_configuring_twice_writes_every_line_once() -> None:
    Log()
    log = Log()
    OURS.info("x")
    assert len(log.lines()) == 1


def test_the_level_holds_for_the_own_loggers_and_others_show_warnings_at_most() -> None:
    log = Log(level="debug", configure=lambda *how: configure_logs(*how, own=("ours",)))
    for name in ("ours", "ours.part", "some.library"):
        logging.getLogger(name).debug("x")
        logging.getLogger(name).warning("y")
    seen = [(line["logger"], line["event"]) for line in log.lines()]
    assert ("some.library", "y") in seen
    assert ("some.library", "x") not in seen
    assert len(seen) == 5


def test_without_own_loggers_the_level_holds_for_all_that_are_not_quiet() -> None:
    log = Log(configure=lambda *how: configure_logs(*how, quiet=("some.library",)))
    for name in ("anything", "some.library"):
        logging.getLogger(name).info("x")
        logging.getLogger(name).warning("y")
    seen = [(line["logger"], line["event"]) for line in log.lines()]
    assert seen == [("anything", "x"), ("anything", "y"), ("some.library", "y")]


def test_documented_fields_are_shown_even_if_their_names_suggest_a_secret() -> None:
    known = {"index.mended": frozenset({"key"})}
    log = Log(configure=lambda *how: configure_logs(*how, known=known))
    OURS.warning("index.mended", extra={"key": "TENANT acme"})
    OURS.warning("anything.else", extra={"key": "TENANT acme"})
    assert [line["key"] for line in log.lines()] == ["TENANT acme", "***"]


def test_a_line_may_be_prepared_or_left_out_and_a_failure_of_that_costs_no_line() -> None:
    def prepare(record: logging.LogRecord) -> logging.LogRecord | None:
        if record.msg == "broken":
            raise RuntimeError(record.msg)
        if record.msg == "dull":
            return None
        return logging.makeLogRecord({**vars(record), "msg": "other"})

    log = Log(configure=lambda *how: configure_logs(*how, prepare=prepare))
    for message in ("broken", "dull", "this"):
        OURS.info(message)
    assert [line["event"] for line in log.lines()] == ["broken", "other"]
