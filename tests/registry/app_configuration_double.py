"""Azure App Configuration on loopback, as far as its clients read from it.

Requests must be signed with the access key, or carry the token of an identity. Keys and labels are
filtered as the service does it; lists come in pages, and who shows the ETag of what there is gets
304.
"""

import base64
import hashlib
import hmac
import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from tests.runner.deadlines import DEADLINE

_ID = "test-id"
_SECRET = base64.b64encode(b"a key that only tests use").decode()
_NO_LABEL = "\0"
_CREDENTIAL = re.compile(r"HMAC-SHA256 Credential=(.*?)&SignedHeaders=(.*?)&Signature=(.*)")
_TYPE = "application/vnd.microsoft.appconfig."


class Fault(NamedTuple):
    """What becomes of every request whose target begins with `on`: this answer; or none, after
    `hang` was set or, with `drops`, at once."""

    status: int = 500
    headers: Mapping[str, str] = {}
    body: object = None
    drops: bool = False
    hang: threading.Event | None = None
    on: str = "/kv"


class Stored(NamedTuple):
    key: str
    label: str | None
    value: str | None
    content_type: str | None
    etag: str

    def as_json(self) -> dict[str, Any]:
        modified = "2026-11-16T09:00:00+00:00"
        return {**self._asdict(), "tags": {}, "locked": False, "last_modified": modified}


class Answer(NamedTuple):
    status: int
    body: object = None
    headers: Mapping[str, str] = {}
    content_type: str = "application/json"


class AppConfiguration:
    """`asked` are the targets of all requests that came, in order. `meanwhile` is called once, when
    a list was read and not yet answered."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.page_size = 100
        self.asked: list[str] = []
        self.fault: Fault | None = None
        self.meanwhile: Callable[[], None] | None = None
        self.token: str | None = None
        self._stored: dict[tuple[str, str], Stored] = {}
        self._changes = 0
        self._lock = threading.Lock()

    @property
    def connection(self) -> str:
        return f"Endpoint={self.endpoint};Id={_ID};Secret={_SECRET}"

    def put(
        self, key: str, value: str | None, label: str | None = None, content_type: str | None = None
    ) -> None:
        with self._lock:
            self._changes += 1
            found = Stored(key, label, value, content_type, f"etag-{self._changes}")
            self._stored[key, label or ""] = found

    def delete(self, key: str, label: str | None = None) -> None:
        with self._lock:
            self._changes += 1
            del self._stored[key, label or ""]

    def touch(self, sentinel: str = "lucius:sentinel", label: str | None = None) -> None:
        """Say that what was written before is complete."""
        self.put(sentinel, f"change {self._changes}", label)

    def answer(self, target: str, headers: Mapping[str, str]) -> Answer:
        """`headers` by their names in lower case."""
        self.asked.append(target)
        if not self._is_allowed(target, headers):
            return Answer(401, {"title": "Unauthorized", "status": 401})
        url = urlsplit(target)
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        known = headers.get("if-none-match", "")
        if url.path == "/kv":
            return self._list(query, known)
        if url.path.startswith("/kv/"):
            return self._one(unquote(url.path.removeprefix("/kv/")), query, known)
        return Answer(404, {"title": "Not Found", "status": 404})

    def _is_allowed(self, target: str, headers: Mapping[str, str]) -> bool:
        shown = headers.get("authorization", "")
        if self.token is not None:
            return shown == f"Bearer {self.token}"
        found = _CREDENTIAL.fullmatch(shown)
        if found is None or found[1] != _ID:
            return False
        if (
            headers["x-ms-content-sha256"]
            != base64.b64encode(hashlib.sha256(b"").digest()).decode()
        ):
            return False
        signed = ";".join(headers[name] for name in found[2].split(";"))
        text = f"GET\n{target}\n{signed}".encode()
        digest = hmac.new(base64.b64decode(_SECRET), text, hashlib.sha256).digest()
        return hmac.compare_digest(base64.b64encode(digest).decode(), found[3])

    def _list(self, query: Mapping[str, str], known: str) -> Answer:
        matching = [
            stored
            for _, stored in sorted(self._stored.items())
            if _matches(query.get("key", "*"), stored.key)
            and _matches(query.get("label", "*"), stored.label or _NO_LABEL)
        ]
        start = int(query.get("after", 0))
        end = start + self.page_size
        page = [stored.as_json() for stored in matching[start:end]]
        etag = f'"{hashlib.sha256(json.dumps(page).encode()).hexdigest()}"'
        headers, body = {"ETag": etag}, dict[str, Any](items=page)
        if end < len(matching):
            following = {**query, "after": str(end)}
            link = "/kv?" + "&".join(f"{name}={quote(text)}" for name, text in following.items())
            headers["Link"] = f'<{link}>; rel="next"'
            body["@nextLink"] = link
        called, self.meanwhile = self.meanwhile, None
        if called is not None:
            called()
        if known == etag:
            return Answer(304, None, headers)
        return Answer(200, body, headers, f"{_TYPE}kvset+json; charset=utf-8")

    def _one(self, key: str, query: Mapping[str, str], known: str) -> Answer:
        label = query.get("label", "")
        stored = self._stored.get((key, "" if label == _NO_LABEL else label))
        if stored is None:
            return Answer(404, None)
        headers = {"ETag": f'"{stored.etag}"'}
        if known == headers["ETag"]:
            return Answer(304, None, headers)
        return Answer(200, stored.as_json(), headers, f"{_TYPE}kv+json; charset=utf-8")


def _matches(filters: str, text: str) -> bool:
    """Filters are parted by commas; `*` at the end of one stands for anything, a backslash takes
    the meaning from what follows it."""
    return any(
        re.fullmatch(_pattern(one), text, re.DOTALL)
        for one in re.findall(r"(?:\\.|[^,\\])+", filters, re.DOTALL)
    )


def _pattern(one: str) -> str:
    is_open = one.endswith("*") and not one.endswith("\\*")
    literal = re.sub(r"\\(.)", r"\1", one[:-1] if is_open else one)
    return re.escape(literal) + (".*" if is_open else "")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    double: AppConfiguration

    def do_GET(self) -> None:
        fault = self.double.fault
        if fault is not None and self.path.startswith(fault.on):
            self.double.asked.append(self.path)
            self._fail(fault)
        else:
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._send(self.double.answer(self.path, headers))

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _fail(self, fault: Fault) -> None:
        if fault.hang is not None:
            fault.hang.wait(DEADLINE)
        if fault.drops or fault.hang is not None:
            self.close_connection = True
        else:
            self._send(Answer(fault.status, fault.body, fault.headers))

    def _send(self, answer: Answer) -> None:
        body = answer.body
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        if answer.status == 304:
            content = b""
        self.send_response(answer.status)
        for name, value in {"Content-Type": answer.content_type, **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client may keep its connection open for longer


@contextmanager
def running_app_configuration(
    context: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> Iterator[AppConfiguration]:
    """With a context over TLS: `host` is then the name in its certificate."""
    server = _Server(("127.0.0.1", 0), _Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if context is None else "https"
    double = AppConfiguration(f"{scheme}://{host}:{server.server_port}")
    server.RequestHandlerClass = type("_Bound", (_Handler,), {"double": double})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        thread.join(DEADLINE)
        server.server_close()
