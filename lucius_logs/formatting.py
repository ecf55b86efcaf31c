"""A record as one line of JSON, or as a line for people.

Either way it has the time, the level, the logger, the event, the record's own fields and the
correlation id of the work at hand. Formatting never raises and never shows a secret (see
`masking`).
"""

import json
import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from lucius_logs.context import correlation
from lucius_logs.exceptions import exception_text, traced_text
from lucius_logs.masking import shown, shown_field, shown_text

LogFormat = Literal["json", "text"]
KnownEvents = Mapping[str, frozenset[str]]
"""The documented fields of each event: they hold no secret, whatever their names suggest."""

_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}
_HEAD = ("time", "level", "logger", "event")
_TAKEN = frozenset({*_HEAD, "exception", "stack", "unreadable"})
_PLAIN = re.compile(r"[^\s\"'=\\]+")
_NONE_KNOWN: KnownEvents = {}


class JsonFormatter(logging.Formatter):
    def __init__(self, known: KnownEvents = _NONE_KNOWN) -> None:
        super().__init__()
        self._known = known

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(fields_of(record, self._known))


class TextFormatter(logging.Formatter):
    """Exceptions and stacks follow on lines of their own, set in."""

    def __init__(self, known: KnownEvents = _NONE_KNOWN) -> None:
        super().__init__()
        self._known = known

    def format(self, record: logging.LogRecord) -> str:
        fields = fields_of(record, self._known)
        blocks = [str(fields.pop(name)) for name in ("exception", "stack") if name in fields]
        time, level, logger, event = (str(fields.pop(name)) for name in _HEAD)
        head = _on_one_line(f"{time} {level:<7} {logger} {event}")
        there = ((name, value) for name, value in fields.items() if value is not None)
        said = [f"{_on_one_line(name)}={_quoted(value)}" for name, value in there]
        return "\n".join([" ".join([head, *said]), *map(_set_in, blocks)])


FORMATTERS: Mapping[LogFormat, type[JsonFormatter | TextFormatter]] = {
    "json": JsonFormatter,
    "text": TextFormatter,
}


def fields_of(record: logging.LogRecord, known: KnownEvents = _NONE_KNOWN) -> dict[str, object]:
    """All that a line says of the record, in its order."""
    fields = _head(record, known)
    try:
        _add_rest(fields, record, known.get(str(fields["event"]), frozenset()))
    except Exception as error:
        fields["unreadable"] = type(error).__name__
    return fields


def _head(record: logging.LogRecord, known: KnownEvents) -> dict[str, object]:
    at = datetime.fromtimestamp(record.created, UTC)
    own = getattr(record, "correlation_id", None)
    return {
        "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname,
        "logger": record.name,
        "event": _event(record, known),
        "correlation_id": shown(correlation.get() if own is None else own),
    }


def _event(record: logging.LogRecord, known: KnownEvents) -> str:
    try:
        message = record.getMessage()
        return message if message in known else shown_text(message)
    except Exception:
        return str(shown(record.msg))


def _add_rest(fields: dict[str, object], record: logging.LogRecord, known: frozenset[str]) -> None:
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


def _extras(record: logging.LogRecord) -> dict[str, object]:
    there = vars(record).items()
    return {k: v for k, v in there if k not in _STANDARD and k != "correlation_id"}


def _quoted(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    is_plain = text.isprintable() and (_PLAIN.fullmatch(text) or not isinstance(value, str))
    return text if is_plain else json.dumps(text, ensure_ascii=not text.isprintable())


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)[1:-1]


def _set_in(block: str) -> str:
    lines = (_on_one_line(line) for line in block.splitlines())
    return "\n".join(f"    {line}" for line in lines)
