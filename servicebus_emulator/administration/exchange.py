"""A request, its answer, and how an answer says no."""

import json
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

from servicebus_emulator.administration.text import escaped

ENTRY = "application/atom+xml;type=entry;charset=utf-8"
FEED = "application/atom+xml;type=feed;charset=utf-8"
_XML = "application/xml; charset=utf-8"
_JSON = "application/json"


class Request(NamedTuple):
    """`path` is as it was sent, still encoded; names of `headers` are in lower case."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = {}
    body: bytes = b""

    @property
    def segments(self) -> list[str]:
        """An encoded slash is a slash: no name but that of a queue or a topic has any."""
        return unquote(self.path).strip("/").split("/")

    @property
    def resource(self) -> str:
        """What the request is about, in the form that tokens name."""
        return f"https://{self.headers.get('host', '')}{self.path}"


class Response(NamedTuple):
    """`is_last`: the connection ends with it."""

    status: int
    body: bytes = b""
    content_type: str = _XML
    headers: tuple[tuple[str, str], ...] = ()
    is_last: bool = False


class Refusal(Exception):
    """The request is not done; the peer gets the status and the detail."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def error_response(status: int, detail: str, *, is_last: bool = False) -> Response:
    """In the body that administration clients look for."""
    text = f"<Error><Code>{status}</Code><Detail>{escaped(detail)}</Detail></Error>"
    return Response(status, text.encode(), is_last=is_last)


def json_response(status: int, value: object) -> Response:
    return Response(status, json.dumps(value).encode(), _JSON)
