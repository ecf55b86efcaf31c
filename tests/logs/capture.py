"""What a process logs, for tests to read."""

import io
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lucius_logs.formatting import LogFormat
from lucius_logs.logs import LogHandler, configure_logs

Configure = Callable[[str, LogFormat, io.StringIO], None]


@contextmanager
def logging_kept(names: Sequence[str]) -> Iterator[None]:
    """Whatever is configured within holds within only."""
    loggers = [logging.getLogger(name) for name in ("", *names)]
    before = [(each, each.level, each.propagate) for each in loggers]
    yield
    logging.captureWarnings(False)
    for logger, level, propagate in before:
        logger.setLevel(level)
        logger.propagate = propagate
    root = logging.getLogger()
    root.handlers[:] = [each for each in root.handlers if not isinstance(each, LogHandler)]


class Log:
    """What was written. The test runner's own handlers, which refuse what cannot be printed, do not
    listen any more; it brings them back itself."""

    def __init__(
        self,
        format: LogFormat = "json",
        level: str = "INFO",
        configure: Configure = configure_logs,
    ) -> None:
        root = logging.getLogger()
        root.handlers[:] = [each for each in root.handlers if isinstance(each, LogHandler)]
        self.stream = io.StringIO()
        configure(level, format, self.stream)

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    def line(self) -> dict[str, Any]:
        (line,) = self.lines()
        return line
