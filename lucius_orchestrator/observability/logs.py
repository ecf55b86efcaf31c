"""The logs of a control plane: its packages, and the HTTP server's, in the form of `lucius_logs`.

The HTTP server must be started without a logging configuration of its own (`log_config=None`).
"""

import copy
import logging
from typing import TextIO

from lucius_artifacts.telemetry import EVENTS as ARTIFACT_EVENTS
from lucius_logs import logs
from lucius_logs.formatting import LogFormat
from lucius_orchestrator.engine.telemetry import EVENTS as ENGINE_EVENTS
from lucius_orchestrator.observability.tables import EVENTS
from lucius_outbox.telemetry import EVENTS as OUTBOX_EVENTS

HEALTH = "/healthz"
_OURS = ("lucius_orchestrator", "lucius_outbox", "lucius_artifacts")
_SERVER = ("uvicorn", "uvicorn.error", "uvicorn.access")
_ACCESS = "uvicorn.access"
_ACCESS_FIELDS = ("client", "method", "path", "http_version", "status")
_KNOWN_FIELDS = {
    info.name: frozenset(info.fields)
    for info in (*ENGINE_EVENTS, *OUTBOX_EVENTS, *ARTIFACT_EVENTS, *EVENTS)
}


def configure_logs(level: str, format: LogFormat, stream: TextIO | None = None) -> None:
    """`level` holds for our own packages and for the HTTP server; of other libraries at most
    warnings are shown."""
    for name in _SERVER:
        logging.getLogger(name).handlers.clear()
    logs.configure_logs(
        level, format, stream, own=_OURS + _SERVER, known=_KNOWN_FIELDS, prepare=access_as_event
    )


def access_as_event(record: logging.LogRecord) -> logging.LogRecord | None:
    """The server's line about a request with fields instead of a text, so that a path is masked
    like any other. None for a probe: they come every few seconds and would hide the others."""
    if record.name != _ACCESS or not isinstance(record.args, tuple):
        return record
    if len(record.args) != len(_ACCESS_FIELDS):
        return record
    fields = dict(zip(_ACCESS_FIELDS, record.args, strict=True))
    path = fields["path"]
    if isinstance(path, str) and path.startswith(HEALTH):
        return None
    event = copy.copy(record)
    event.msg, event.args = "http.access", ()
    vars(event).update(fields)
    return event
