"""Tokens of an issuer: whom they name, and which are refused."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

import pytest
from jwt import PyJWS

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.security.callers import Caller, Role
from lucius_orchestrator.security.issuers import JwtAuthenticator
from tests.security.clock import START, Clock
from tests.security.issuer import Issuer, SigningKey, claims, ec_key, ed_key, rsa_key
from tests.security.refusals import refused

SECOND = int(START.timestamp())


def segment(content: Mapping[str, Any] | bytes) -> str:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def hs_token(secret: bytes, algorithm: str, kid: str) -> str:
    """By hand: libraries do not let a public key sign."""
    signed = f"{segment({'alg': algorithm, 'kid': kid})}.{segment(claims(START))}"
    digest = hmac.digest(secret, signed.encode(), f"sha{algorithm[2:]}")
    return f"{signed}.{segment(digest)}"


async def test_a_token_names_its_caller(authenticator: JwtAuthenticator) -> None:
    token = ec_key().sign(claims(START, roles=["read", "operate"], tenants=["acme", "other"]))
    assert await authenticator.authenticate(f"Bearer {token}") == Caller(
        "alice", frozenset({"acme", "other"}), frozenset({Role.READ, Role.OPERATE})
    )


async def test_a_token_may_be_for_all_tenants(authenticator: JwtAuthenticator) -> None:
    token = ec_key().sign(claims(START, tenants="*"))
    assert (await authenticator.authenticate(f"Bearer {token}")).tenants is None


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        *((rsa_key(), name) for name in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
        *((ec_key(name, name), name) for name in ("ES256", "ES384", "ES512")),
        (ed_key(), "EdDSA"),
    ],
)
async def test_keys_of_every_asymmetric_kind_count(
    issuer: Issuer, authenticator: JwtAuthenticator, key: SigningKey, algorithm: str
) -> None:
    issuer.publish(key)
    token = key.sign(claims(START), algorithm=algorithm)
    assert (await authenticator.authenticate(f"Bearer {token}")).name == "alice"


async def test_one_of_several_audiences_is_enough(authenticator: JwtAuthenticator) -> None:
    token = ec_key().sign(claims(START, aud=["other", "lucius"]))
    assert (await authenticator.authenticate(f"Bearer {token}")).name == "alice"


@pytest.mark.parametrize(
    "changes",
    [
        {"roles": None},
        {"roles": []},
        {"roles": ["emperor"]},
        {"roles": ["read", "emperor"]},
        {"roles": ["READ"]},
        {"roles": "read"},
        {"roles": {"read": True}},
        {"roles": ["read", 1]},
        {"roles": [["read"]]},
        {"roles": [{}]},
        {"tenants": None},
        {"tenants": []},
        {"tenants": [""]},
        {"tenants": ["*"]},
        {"tenants": ["acme", "*"]},
        {"tenants": "acme"},
        {"tenants": ["acme", None]},
        {"tenants": [["acme"]]},
        {"tenants": True},
        {"sub": None},
        {"sub": ""},
        {"sub": 1},
        {"sub": "a\nb"},
        {"iss": None},
        {"iss": "https://issuer.example/"},
        {"aud": None},
        {"aud": "other"},
        {"aud": []},
        {"aud": {"lucius": 1}},
        {"aud": [["lucius"]]},
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": str(SECOND + 300)},
        {"exp": True},
        {"exp": []},
        {"exp": float("nan")},
        {"exp": float("inf")},
        {"exp": 10**400},
        {"nbf": "today"},
        {"nbf": False},
        {"nbf": float("nan")},
        {"nbf": -(10**400)},
    ],
)
async def test_a_token_with_a_claim_missing_or_malformed_is_refused(
    authenticator: JwtAuthenticator, changes: dict[str, Any]
) -> None:
    token = ec_key().sign(claims(START, **changes))
    with refused(ErrorCode.UNAUTHENTICATED, hiding=token):
        await authenticator.authenticate(f"Bearer {token}")


@pytest.mark.parametrize("nothing", ["exp", "nbf"])
async def test_null_is_no_moment(authenticator: JwtAuthenticator, nothing: str) -> None:
    token = ec_key().sign({**claims(START), nothing: None})
    with refused(ErrorCode.UNAUTHENTICATED):
        await authenticator.authenticate(f"Bearer {token}")


async def test_a_token_from_another_issuer_with_the_same_keys_is_refused(
    authenticator: JwtAuthenticator,
) -> None:
    token = ec_key().sign(claims(START, iss="https://elsewhere.example"))
    with refused(ErrorCode.UNAUTHENTICATED, hiding=token):
        await authenticator.authenticate(f"Bearer {token}")


async def test_a_token_ends_thirty_seconds_late_at_most(
    authenticator: JwtAuthenticator, clock: Clock
) -> None:
    token = ec_key().sign(claims(START, exp=SECOND + 60))
    clock.advance(seconds=89.999)
    assert (await authenticator.authenticate(f"Bearer {token}")).name == "alice"
    clock.advance(seconds=0.001)
    with refused(ErrorCode.UNAUTHENTICATED, hiding=token):
        await authenticator.authenticate(f"Bearer {token}")


async def test_a_token_begins_thirty_seconds_early_at_most(
    authenticator: JwtAuthenticator, clock: Clock
) -> None:
    token = ec_key().sign(claims(START, nbf=SECOND + 31))
    with refused(ErrorCode.UNAUTHENTICATED, hiding=token):
        await authenticator.authenticate(f"Bearer {token}")
    clock.advance(seconds=1)
    assert (await authenticator.authenticate(f"Bearer {token}")).name == "alice"


@pytest.mark.parametrize("name", ["none", "None", "NONE", "nOnE", "", None, 1, ["ES256"], {}])
async def test_a_token_without_a_signature_is_refused(
    authenticator: JwtAuthenticator, name: object
) -> None:
    signed = f"{segment({'alg': name, 'kid': 'ec-1'})}.{segment(claims(START))}"
    good = ec_key().sign(claims(START)).rpartition(".")[2]
    for signature in ("", good):
        with refused(ErrorCode.UNAUTHENTICATED, hiding=signed):
            await authenticator.authenticate(f"Bearer {signed}.{signature}")


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
@pytest.mark.parametrize("key", [rsa_key(), ec_key(), ed_key()], ids=lambda key: key.kid)
async def test_a_public_key_does_not_pass_for_a_shared_secret(
    issuer: Issuer, authenticator: JwtAuthenticator, key: SigningKey, algorithm: str
) -> None:
    issuer.publish(key)
    token = hs_token(key.public_pem(), algorithm, key.kid)
    with refused(ErrorCode.UNAUTHENTICATED, hiding=token):
        await authenticator.authenticate(f"Bearer {token}")


async def test_a_shared_secret_that_an_issuer_publishes_is_not_used(
    issuer: Issuer, authenticator: JwtAuthenticator
) -> None:
    secret = hashlib.sha256(b"shared").digest()
    issuer.publish_jwks({"kty": "oct", "kid": "shared", "alg": "HS256", "k": segment(secret)})
    token = hs_token(secret, "HS256", "shared")
    with refused(ErrorCode.UNAUTHENTICATED, hiding=token):
        await authenticator.authenticate(f"Bearer {token}")


@pytest.mark.parametrize(
    "changes",
    [
        {"use": "enc"},
        {"key_ops": ["encrypt"]},
        {"key_ops": "verify"},
        {"alg": "HS256"},
        {"alg": "none"},
        {"alg": "PS256"},
        {"alg": "RSA-OAEP"},
        {"alg": ["RS256"]},
        {"kty": "EC"},
        {"kty": ["RSA"]},
        {"crv": {}},
        {"n": 5},
        {"n": "!"},
        {"n": None},
        {"e": "AA"},
        {"kid": None},
        {"kid": 7},
        {"d": "AQAB"},
    ],
)
async def test_a_key_that_is_not_for_such_tokens_is_not_used(
    issuer: Issuer, authenticator: JwtAuthenticator, changes: dict[str, Any]
) -> None:
    issuer.publish_jwks(rsa_key().jwk(**changes), ec_key().jwk())
    token = rsa_key().sign(claims(START))
    with refused(ErrorCode.UNAUTHENTICATED, hiding=token):
        await authenticator.authenticate(f"Bearer {token}")
    good = ec_key().sign(claims(START))
    assert (await authenticator.authenticate(f"Bearer {good}")).name == "alice"


async def test_a_key_that_names_its_algorithm_is_used_for_no_other(
    issuer: Issuer, authenticator: JwtAuthenticator
) -> None:
    issuer.publish_jwks(rsa_key().jwk(alg="RS512"))
    token = rsa_key().sign(claims(START), algorithm="RS512")
    assert (await authenticator.authenticate(f"Bearer {token}")).name == "alice"
    with refused(ErrorCode.UNAUTHENTICATED):
        await authenticator.authenticate(f"Bearer {rsa_key().sign(claims(START))}")


async def test_a_short_rsa_key_is_not_used(issuer: Issuer, authenticator: JwtAuthenticator) -> None:
    short = rsa_key("short", 1024)
    issuer.publish(short)
    with pytest.warns(match="below the minimum"):
        token = short.sign(claims(START))
    with refused(ErrorCode.UNAUTHENTICATED):
        await authenticator.authenticate(f"Bearer {token}")


async def test_a_token_signed_by_another_key_of_that_name_is_refused(
    authenticator: JwtAuthenticator,
) -> None:
    impostor = SigningKey("ec-1", "ES256", ec_key("impostor").private)
    token = impostor.sign(claims(START))
    with refused(ErrorCode.UNAUTHENTICATED, hiding=token):
        await authenticator.authenticate(f"Bearer {token}")


@pytest.mark.parametrize("header", ["jwk", "jku", "x5u", "x5c"])
async def test_a_key_that_the_token_brings_along_is_not_used(
    authenticator: JwtAuthenticator, header: str
) -> None:
    impostor = SigningKey("ec-1", "ES256", ec_key("impostor").private)
    token = impostor.sign(claims(START), headers={header: impostor.jwk()})
    with refused(ErrorCode.UNAUTHENTICATED):
        await authenticator.authenticate(f"Bearer {token}")


@pytest.mark.parametrize(
    "headers", [{"crit": ["unheard-of"], "unheard-of": 1}, {"crit": []}, {"crit": "b64"}]
)
async def test_a_token_that_demands_what_nobody_understands_is_refused(
    authenticator: JwtAuthenticator, headers: dict[str, Any]
) -> None:
    header = segment({"alg": "ES256", "kid": "ec-1", **headers})
    token = f"{header}.{segment(claims(START))}.{segment(b'0' * 64)}"
    with refused(ErrorCode.UNAUTHENTICATED):
        await authenticator.authenticate(f"Bearer {token}")


async def test_a_changed_claim_breaks_the_signature(authenticator: JwtAuthenticator) -> None:
    header, _, signature = ec_key().sign(claims(START)).split(".")
    token = f"{header}.{segment(claims(START, roles=['admin'], tenants='*'))}.{signature}"
    with refused(ErrorCode.UNAUTHENTICATED, hiding=token):
        await authenticator.authenticate(f"Bearer {token}")


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "a.b",
        "a.b.c",
        "a.b.c.d",
        "...",
        "é.é.é",
        "\udcff.a.b",
        f"{segment(b'[]')}.e30.e30",
        f"{segment(b'{')}.e30.e30",
        f"{segment(b'[' * 30000)}.e30.e30",
        f"{segment({'alg': 'ES256'})}.e30.e30",
        f"{segment({'alg': 'ES256', 'kid': 7})}.e30.e30",
        f"{segment({'alg': 'ES256', 'kid': 'ec-1'})}.!.e30",
    ],
    ids=range(13),
)
async def test_what_is_no_token_is_refused(authenticator: JwtAuthenticator, token: str) -> None:
    with refused(ErrorCode.UNAUTHENTICATED):
        await authenticator.authenticate(f"Bearer {token}")


async def test_a_payload_that_is_no_object_is_refused(authenticator: JwtAuthenticator) -> None:
    key = ec_key()
    for payload in (b"[]", b"null", b"{", b"\xff"):
        token = _sign_bytes(key, payload)
        with refused(ErrorCode.UNAUTHENTICATED):
            await authenticator.authenticate(f"Bearer {token}")


def _sign_bytes(key: SigningKey, payload: bytes) -> str:
    return PyJWS().encode(payload, key.private, algorithm="ES256", headers={"kid": key.kid})


@pytest.mark.parametrize("authorization", [None, "", "Basic abc", "Bearer"])
async def test_without_a_token_nobody_is_let_in(
    authenticator: JwtAuthenticator, issuer: Issuer, authorization: str | None
) -> None:
    with refused(ErrorCode.UNAUTHENTICATED):
        await authenticator.authenticate(authorization)
    assert issuer.fetches == 0
