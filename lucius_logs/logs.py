"""The logs of the whole process, our own and those of the libraries, in one form."""

import logging
import sys
from collections.abc import Callable, Iterable
from typing import TextIO

from lucius_logs.formatting import FORMATTERS, KnownEvents, LogFormat

EVERYTHING = ("",)
Prepare = Callable[[logging.LogRecord], logging.LogRecord | None]


def configure_logs(
    level: str,
    format: LogFormat,
    stream: TextIO | None = None,
    *,
    own: Iterable[str] = EVERYTHING,
    quiet: Iterable[str] = (),
    known: KnownEvents | None = None,
    prepare: Prepare | None = None,
) -> None:
    """Send all logs of the process to `stream` (standard error if there is none).

    `level` holds for the loggers `own`; of the others, and of those that are `quiet`, at most
    warnings are shown. `known` and `prepare` are the formatter's and the handler's. Asked again, it
    replaces what it did before.
    """
    number = _level(level)
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, LogHandler)]:
        root.removeHandler(handler)
    root.addHandler(LogHandler(stream or sys.stderr, FORMATTERS[format](known or {}), prepare))
    _set_levels(number, own, quiet)
    logging.captureWarnings(True)


class LogHandler(logging.StreamHandler[TextIO]):
    """What cannot be written is lost: the standard handler would print the record, unmasked.

    `prepare` gives the record as it shall be shown, which may be another one, or None where a line
    is not worth it; it must not change a record that others see too.
    """

    def __init__(
        self, stream: TextIO, formatter: logging.Formatter, prepare: Prepare | None = None
    ) -> None:
        super().__init__(stream)
        self._encoding = getattr(stream, "encoding", None) or "utf-8"
        self._prepare = prepare
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            prepared = record if self._prepare is None else self._prepare(record)
        except Exception:
            prepared = record
        if prepared is not None:
            super().emit(prepared)

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        return line.encode(self._encoding, "backslashreplace").decode(self._encoding)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802
        return


def _set_levels(number: int, own: Iterable[str], quiet: Iterable[str]) -> None:
    subdued = max(number, logging.WARNING)
    logging.getLogger().setLevel(subdued)
    for name in own:
        logging.getLogger(name).setLevel(number)
        logging.getLogger(name).propagate = True
    for name in quiet:
        logging.getLogger(name).setLevel(subdued)


def _level(name: str) -> int:
    number = logging.getLevelNamesMapping().get(name.upper())
    if number is None:
        raise ValueError(
            f"{name!r} is no log level; allowed: DEBUG, INFO, WARNING, ERROR, CRITICAL"
        )
    return number
