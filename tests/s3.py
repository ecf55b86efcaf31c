"""A server that speaks the protocol of S3: moto, in a process of its own."""

import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import pytest

_PART_LIMIT = {"S3_UPLOAD_PART_MIN_SIZE": "1"}  # or a test would need megabytes for two parts
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Any will do; without them the client would look for those of the machine."""


Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]


def as_s3_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients find credentials, and share what each session reads: megabytes of JSON."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("boto3.session.Session", _shared_session())


@cache
def _shared_session() -> Callable[[], Any]:
    from boto3.session import Session

    return cache(Session)


class S3Server(NamedTuple):
    endpoint: str


def is_available() -> bool:
    return all(map(find_spec, ("boto3", "flask", "flask_cors", "moto")))


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """One that lives as long as the context, on a free port, and keeps everything in memory."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.s3"],
        cwd=Path(__file__).parents[1],
        env={**os.environ, **_PART_LIMIT},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        port = process.stdout.readline().strip()
        if not port:
            raise RuntimeError("moto did not start")
        yield S3Server(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()


def _serve() -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Silent(WSGIRequestHandler):
        def log(self, *_: object) -> None: ...

    app = _one_at_a_time(_conditional(DomainDispatcherApplication(create_backend_app)))
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Silent)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    print(server.server_port, flush=True)
    server.serve_forever()


def _one_at_a_time(app: Wsgi) -> Wsgi:
    """What S3 does at once, moto does in several steps."""
    lock = threading.Lock()

    def answer(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        with lock:
            return list(app({**environ, "wsgi.input": io.BytesIO(body)}, start))

    return answer


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def _conditional(app: Wsgi) -> Wsgi:
    """moto ignores `If-Match` where S3 honours it: when the parts of an upload are joined."""

    def answer(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        wanted = environ.get("HTTP_IF_MATCH")
        joins = environ["REQUEST_METHOD"] == "POST" and "uploadId" in parse_qs(
            environ["QUERY_STRING"]
        )
        if wanted is None or not joins:
            return app(environ, start)
        found = _etag(app, environ)
        if found == wanted:
            return app(environ, start)
        code, status = (
            ("NoSuchKey", "404 Not Found")
            if found is None
            else ("PreconditionFailed", "412 Precondition Failed")
        )
        start(status, [("Content-Type", "application/xml")])
        return [f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()]

    return answer


def _etag(app: Wsgi, environ: dict[str, Any]) -> str | None:
    """Of the object as it stands."""
    found: dict[str, str] = {}

    def start(_status: str, headers: list[tuple[str, str]], *_: object) -> Callable[..., None]:
        found.update((name.lower(), value) for name, value in headers)
        return lambda *_: None

    own = {"HTTP_IF_MATCH", "HTTP_CONTENT_ENCODING", "CONTENT_LENGTH"}
    look = {name: value for name, value in environ.items() if name not in own}
    look |= {"REQUEST_METHOD": "HEAD", "QUERY_STRING": "", "RAW_URI": environ["PATH_INFO"]}
    look["REQUEST_URI"] = environ["PATH_INFO"]
    list(app(look, start))
    return found.get("etag")


if __name__ == "__main__":
    _serve()
