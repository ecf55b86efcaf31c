"""Logs of a service: every line that is written while a directive is worked on says which one.

`ctx.log` carries the fields itself. Loggers that know nothing of a directive, the team's own and
those of libraries, get them from the context, which goes along into threads and tasks.
"""

import copy
import logging
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from lucius_contract.messages import Directive
from lucius_logs import logs
from lucius_logs.context import correlation
from lucius_logs.formatting import LogFormat
from lucius_logs.masking import shown_field

Fields = Mapping[str, object]

QUIET = (
    "aiohttp",
    "asyncio",
    "azure",
    "httpcore",
    "httpx",
    "opentelemetry",
    "redis",
    "urllib3",
)
STEP_FIELDS = (
    "jobId",
    "stepId",
    "tenant_id",
    "attempt_no",
    "lease_id",
    "correlation_id",
    "step_type",
)
_step_log = logging.getLogger("lucius_sdk.step")
_current: ContextVar[Directive | None] = ContextVar("lucius_step", default=None)


def configure_logs(level: str, format: LogFormat, stream: TextIO | None = None) -> None:
    """Send all logs of the process to `stream` (standard error if there is none). Of the libraries
    that the SDK uses at most warnings are shown."""
    logs.configure_logs(level, format, stream, quiet=QUIET, prepare=_with_step)


def step_fields(directive: Directive) -> Fields:
    """What names a directive in a log. The lease is cut, since who has all of it can answer."""
    values = (
        directive.job_id,
        directive.step_id,
        directive.tenant_id,
        directive.attempt_no,
        shown_field("lease_id", directive.lease_id),
        directive.correlation_id,
        directive.step_type,
    )
    return dict(zip(STEP_FIELDS, values, strict=True))


class StepLogger(logging.LoggerAdapter[logging.Logger]):
    """The fields of its directive are on each record, beside those that a call gives."""

    def __init__(self, logger: logging.Logger, directive: Directive) -> None:
        super().__init__(logger)
        self._directive = directive

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(kwargs.get("extra") or {}), **step_fields(self._directive)}
        return msg, kwargs


def step_logger(directive: Directive) -> StepLogger:
    return StepLogger(_step_log, directive)


@contextmanager
def step_logs(directive: Directive) -> Iterator[None]:
    """Within, every record of the process's logs names the directive."""
    current = _current.set(directive)
    correlated = correlation.set(directive.correlation_id)
    try:
        yield
    finally:
        correlation.reset(correlated)
        _current.reset(current)


class StepFields(logging.Filter):
    """Puts the fields on records, for handlers of a team's own: `handler.addFilter(StepFields())`.
    What a record says itself is kept."""

    def filter(self, record: logging.LogRecord) -> bool:
        vars(record).update(_missing(record))
        return True


def _with_step(record: logging.LogRecord) -> logging.LogRecord:
    missing = _missing(record)
    if not missing:
        return record
    prepared = copy.copy(record)
    vars(prepared).update(missing)
    return prepared


def _missing(record: logging.LogRecord) -> dict[str, object]:
    directive = _current.get()
    if directive is None:
        return {}
    there = vars(record)
    return {name: value for name, value in step_fields(directive).items() if name not in there}
