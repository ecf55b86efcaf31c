"""An issuer of tokens on loopback: real keys, served as a key set over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from lucius_orchestrator.security.issuers import JwksSource, JwtAuthenticator
from tests.security.clock import Clock

ISSUER = "https://issuer.example"
AUDIENCE = "lucius"

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@dataclass(frozen=True)
class SigningKey:
    kid: str
    algorithm: str
    private: PrivateKey

    def jwk(self, **changes: Any) -> dict[str, Any]:
        return {**_public_jwk(self.private), "kid": self.kid, "use": "sig", **changes}

    def sign(
        self,
        claims: Mapping[str, Any],
        *,
        algorithm: str | None = None,
        headers: Mapping[str, Any] | None = None,
    ) -> str:
        return jwt.encode(
            dict(claims),
            self.private,
            algorithm=algorithm or self.algorithm,
            headers={"kid": self.kid, **(headers or {})},
        )

    def public_pem(self) -> bytes:
        return self.private.public_key().public_bytes(
            Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
        )


def _public_jwk(private: PrivateKey) -> dict[str, Any]:
    if isinstance(private, rsa.RSAPrivateKey):
        return RSAAlgorithm.to_jwk(private.public_key(), as_dict=True)
    if isinstance(private, ec.EllipticCurvePrivateKey):
        return ECAlgorithm.to_jwk(private.public_key(), as_dict=True)
    return OKPAlgorithm.to_jwk(private.public_key(), as_dict=True)


@cache
def rsa_key(kid: str = "rsa-1", bits: int = 2048) -> SigningKey:
    return SigningKey(kid, "RS256", rsa.generate_private_key(65537, bits))


@cache
def ec_key(kid: str = "ec-1", algorithm: str = "ES256") -> SigningKey:
    curves = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
    return SigningKey(kid, algorithm, ec.generate_private_key(curves[algorithm]))


@cache
def ed_key(kid: str = "ed-1") -> SigningKey:
    return SigningKey(kid, "EdDSA", ed25519.Ed25519PrivateKey.generate())


def claims(now: datetime, **changes: Any) -> dict[str, Any]:
    """What a good token says; a claim that is None is left out."""
    said = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "alice",
        "iat": int(now.timestamp()),
        "exp": int(now.timestamp()) + 300,
        "roles": ["read"],
        "tenants": ["acme"],
        **changes,
    }
    return {name: value for name, value in said.items() if value is not None}


class Issuer:
    """Serves `body` under /jwks; `fetches` counts who came. While `away` it answers 503, and
    while `gate` is closed it does not answer at all."""

    def __init__(self) -> None:
        self.url = ""
        self.fetches = 0
        self.away = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.came = asyncio.Event()
        self.body = b""
        self.publish(ec_key())

    def publish(self, *keys: SigningKey) -> None:
        self.publish_jwks(*(key.jwk() for key in keys))

    def publish_jwks(self, *jwks: Any) -> None:
        self.body = json.dumps({"keys": jwks}).encode()

    async def serve(self, _request: web.Request) -> web.Response:
        self.fetches += 1
        self.came.set()
        await self.gate.wait()
        if self.away:
            return web.Response(status=503)
        return web.Response(body=self.body, content_type="application/json")

    async def redirect(self, _request: web.Request) -> web.Response:
        raise web.HTTPFound("/jwks")


@asynccontextmanager
async def issuer_on_loopback() -> AsyncIterator[Issuer]:
    issuer = Issuer()
    app = web.Application()
    app.router.add_get("/jwks", issuer.serve)
    app.router.add_get("/moved", issuer.redirect)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        issuer.url = f"http://{host}:{port}/jwks"
        yield issuer
    finally:
        await runner.cleanup()


def authenticator_of(url: str, clock: Clock) -> JwtAuthenticator:
    return JwtAuthenticator(JwksSource(url, clock), ISSUER, AUDIENCE, clock)
