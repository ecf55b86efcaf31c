"""The logs of the whole process, our own and those of the libraries, in one form.

A record is one line of JSON, or a line for people. Either way it has the time, the level, the
logger, the event, the record's own fields and the correlation id of the work at hand. Logging never
raises and never shows a secret (see `masking`).
"""

import json
import logging
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, TextIO

from lucius_orchestrator.engine.telemetry import EVENTS as ENGINE_EVENTS
from lucius_orchestrator.observability.context import correlation
from lucius_orchestrator.observability.exceptions import exception_text, traced_text
from lucius_orchestrator.observability.masking import shown, shown_field, shown_text
from lucius_orchestrator.observability.tables import EVENTS
from lucius_outbox.telemetry import EVENTS as OUTBOX_EVENTS

LogFormat = Literal["json", "text"]

HEALTH = "/healthz"
_LEVELLED = ("lucius_orchestrator", "lucius_outbox", "uvicorn", "uvicorn.error", "uvicorn.access")
_ACCESS = "uvicorn.access"
_ACCESS_FIELDS = ("client", "method", "path", "http_version", "status")
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}
_KNOWN_FIELDS = {
    info.name: frozenset(info.fields) for info in (*ENGINE_EVENTS, *OUTBOX_EVENTS, *EVENTS)
}
_PLAIN = re.compile(r"[^\s\"'=\\]+")


def configure_logs(level: str, format: LogFormat, stream: TextIO | None = None) -> None:
    """Send all logs of the process to `stream` (standard error if there is none).

    `level` holds for our own packages and for the HTTP server; of other libraries at most warnings
    are shown. Asked again, it replaces what it did before. The HTTP server must be started without
    a logging configuration of its own (`log_config=None`).
    """
    number = _level(level)
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, LogHandler)]:
        root.removeHandler(handler)
    root.addHandler(LogHandler(stream or sys.stderr, FORMATTERS[format]()))
    root.setLevel(max(number, logging.WARNING))
    for name in _LEVELLED:
        logger = logging.getLogger(name)
        logger.setLevel(number)
        logger.propagate = True
        if name.startswith("uvicorn"):
            logger.handlers.clear()
    logging.captureWarnings(True)


class LogHandler(logging.StreamHandler[TextIO]):
    """What cannot be written is lost: the standard handler would print the record, unmasked."""

    def __init__(self, stream: TextIO, formatter: logging.Formatter) -> None:
        super().__init__(stream)
        self._encoding = getattr(stream, "encoding", None) or "utf-8"
        self.setFormatter(formatter)
        self.addFilter(_is_worth_a_line)

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        return line.encode(self._encoding, "backslashreplace").decode(self._encoding)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802
        return


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(fields_of(record))


class TextFormatter(logging.Formatter):
    """Exceptions and stacks follow on lines of their own, set in."""

    def format(self, record: logging.LogRecord) -> str:
        fields = fields_of(record)
        blocks = [str(fields.pop(name)) for name in ("exception", "stack") if name in fields]
        time, level, logger, event = (str(fields.pop(name)) for name in _HEAD)
        head = _on_one_line(f"{time} {level:<7} {logger} {event}")
        there = ((name, value) for name, value in fields.items() if value is not None)
        said = [f"{_on_one_line(name)}={_quoted(value)}" for name, value in there]
        return "\n".join([" ".join([head, *said]), *map(_set_in, blocks)])


FORMATTERS: Mapping[LogFormat, type[logging.Formatter]] = {
    "json": JsonFormatter,
    "text": TextFormatter,
}
_HEAD = ("time", "level", "logger", "event")


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """All that a line says of the record, in its order."""
    fields = _head(record)
    try:
        _add_rest(fields, record)
    except Exception as error:
        fields["unreadable"] = type(error).__name__
    return fields


def _head(record: logging.LogRecord) -> dict[str, object]:
    at = datetime.fromtimestamp(record.created, UTC)
    own = getattr(record, "correlation_id", None)
    return {
        "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname,
        "logger": record.name,
        "event": "http.access" if _is_access(record) else _event(record),
        "correlation_id": shown(correlation.get() if own is None else own),
    }


def _event(record: logging.LogRecord) -> str:
    try:
        message = record.getMessage()
        return message if message in _KNOWN_FIELDS else shown_text(message)
    except Exception:
        return str(shown(record.msg))


def _add_rest(fields: dict[str, object], record: logging.LogRecord) -> None:
    known = _KNOWN_FIELDS.get(str(fields["event"]), frozenset())
    for name, value in _extras(record).items():
        free = f"{name}_" if name in _TAKEN else name
        fields[shown_text(free)] = shown_field(name, value, is_known=name in known)
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    if error is not None:
        fields["exception"] = exception_text(error)
    elif record.exc_text:
        fields["exception"] = traced_text(record.exc_text)
    if record.stack_info:
        fields["stack"] = traced_text(record.stack_info)


_TAKEN = frozenset({*_HEAD, "exception", "stack", "unreadable"})


def _extras(record: logging.LogRecord) -> dict[str, object]:
    if _is_access(record) and isinstance(record.args, tuple):
        return dict(zip(_ACCESS_FIELDS, record.args, strict=True))
    there = vars(record).items()
    return {k: v for k, v in there if k not in _STANDARD and k != "correlation_id"}


def _is_access(record: logging.LogRecord) -> bool:
    is_tuple = isinstance(record.args, tuple) and len(record.args) == len(_ACCESS_FIELDS)
    return record.name == _ACCESS and is_tuple


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Probes ask every few seconds; a line for each would hide the others."""
    path = _extras(record)["path"] if _is_access(record) else None
    return not (isinstance(path, str) and path.startswith(HEALTH))


def _quoted(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    is_plain = text.isprintable() and (_PLAIN.fullmatch(text) or not isinstance(value, str))
    return text if is_plain else json.dumps(text, ensure_ascii=not text.isprintable())


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)[1:-1]


def _set_in(block: str) -> str:
    lines = (_on_one_line(line) for line in block.splitlines())
    return "\n".join(f"    {line}" for line in lines)


def _level(name: str) -> int:
    number = logging.getLevelNamesMapping().get(name.upper())
    if number is None:
        raise ValueError(
            f"{name!r} is no log level; allowed: DEBUG, INFO, WARNING, ERROR, CRITICAL"
        )
    return number
