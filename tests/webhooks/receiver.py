"""A receiver of webhooks on this machine: https, with a certificate of its own."""

import asyncio
import json
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lucius_orchestrator.webhooks.signature import verify
from tests.ledger.backends import Clock
from tests.runner.deadlines import DEADLINE

HOST = "hooks.example"
KEY = b"k" * 32
LOOPBACK = "127.0.0.1"


class Certificate(NamedTuple):
    """Self-signed: who trusts the file trusts the receiver."""

    file: Path
    key_file: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.file, self.key_file)
        return context


def new_certificate(folder: Path, host: str = HOST) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    written = Certificate(folder / "certificate.pem", folder / "key.pem")
    written.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    written.key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return written


class Names(AbstractResolver):
    """Every name has these addresses, as far as its owner says."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked: list[str] = []

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - as the client asks
    ) -> list[ResolveResult]:
        self.asked.append(host)
        return [_result(host, address, port) for address in self.addresses]

    async def close(self) -> None: ...


def _result(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)


Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Receiver:
    """Checks every signature, keeps an event once however often it comes, and answers as a test
    says, then with 200."""

    def __init__(self, clock: Clock, keys: Sequence[bytes] = (KEY,)) -> None:
        self.clock = clock
        self.keys = keys
        self.tries: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.events: dict[str, dict[str, Any]] = {}
        self.answers: deque[Answer] = deque()
        self.port = 0
        self._changed = asyncio.Condition()

    def url(self, path: str = "/done", host: str = HOST) -> str:
        return f"https://{host}:{self.port}{path}"

    async def saw(self, tries: int) -> None:
        async with asyncio.timeout(DEADLINE), self._changed:
            await self._changed.wait_for(lambda: len(self.tries) >= tries)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        verify(request.headers["Lucius-Signature"], body, self.keys, self.clock())
        event = json.loads(body)
        assert request.headers["Lucius-Event-Id"] == event["event_id"]
        assert request.headers["Content-Type"] == "application/json"
        async with self._changed:
            self.tries.append({"path": request.path_qs, **request.headers})
            self.bodies.append(body)
            self.events.setdefault(event["event_id"], event)
            self._changed.notify_all()
        return await self.answers.popleft()(request) if self.answers else web.Response()

    @asynccontextmanager
    async def running(self, certificate: Certificate) -> AsyncIterator["Receiver"]:
        application = web.Application()
        application.router.add_route("*", "/{anything:.*}", self.handle)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, LOOPBACK, 0, ssl_context=certificate.server_context()).start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await runner.cleanup()


def status(code: int, **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=code, headers=headers)

    return answer


async def hang_up(request: web.Request) -> web.StreamResponse:
    """The body was read, and the sender never learns of it."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def never(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")
