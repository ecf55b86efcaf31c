"""Server-sent events, read from the bytes of an answer as they arrive."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from lucius_cli.failures import EnvironmentFailed


class ServerEvent(NamedTuple):
    """`id` is what a later connection names to go on after this event."""

    id: str | None
    name: str
    data: dict[str, Any]


def server_events(chunks: Iterable[bytes]) -> Iterator[ServerEvent]:
    """Events whose blank line has arrived; one that was cut off is not an event."""
    fields: dict[str, list[str]] = {}
    for line in _lines(chunks):
        if line:
            name, _, value = line.partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))
            continue
        if "data" in fields:
            yield _event(fields)
        fields = {}


def _event(fields: dict[str, list[str]]) -> ServerEvent:
    """A line that begins with a colon is a comment: it is kept under the empty name."""
    try:
        data = json.loads("\n".join(fields["data"]))
    except ValueError as error:
        raise EnvironmentFailed("the server sent an event that cannot be read") from error
    return ServerEvent(
        fields.get("id", [None])[-1],
        fields.get("event", ["message"])[-1],
        data if isinstance(data, dict) else {"data": data},
    )


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Only line feeds end a line: JSON may hold other characters that Python would split at."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r").decode(errors="replace")
