"""Public keys of an issuer of tokens, read from its JSON Web Key Set.

A key is bound to the algorithms of its own kind, so that a token can never choose how it is
checked. Keys that cannot be used are passed over, as the format's standard asks: an issuer may well
publish keys for other purposes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWTError
from jwt.algorithms import AllowedPublicKeys

_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_ALGORITHMS: Mapping[tuple[object, object], tuple[str, ...]] = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
_SMALLEST_RSA_BITS = 2048


@dataclass(frozen=True, slots=True)
class IssuerKey:
    kid: str
    algorithms: tuple[str, ...]
    public_key: AllowedPublicKeys = field(repr=False)


def read_key_set(content: bytes) -> Mapping[str, IssuerKey] | None:
    """The usable keys by their id; None where the content is not a key set.

    Not an exception: those of the parsers quote what they read.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        return None
    keys = [_usable(jwk) for jwk in listed if isinstance(jwk, dict)]
    return {key.kid: key for key in reversed(keys) if key is not None}


def _usable(jwk: dict[str, Any]) -> IssuerKey | None:
    kid, algorithms = jwk.get("kid"), _algorithms(jwk)
    if not isinstance(kid, str) or not algorithms or not _for_signatures(jwk):
        return None
    public_key = _public_key(jwk, algorithms[0])
    return None if public_key is None else IssuerKey(kid, algorithms, public_key)


def _algorithms(jwk: Mapping[str, object]) -> tuple[str, ...]:
    kty, crv, alg = jwk.get("kty"), jwk.get("crv"), jwk.get("alg")
    if not isinstance(kty, str) or not isinstance(crv, str | None):
        return ()
    of_its_kind = _ALGORITHMS.get((kty, crv), ())
    return of_its_kind if alg is None else tuple(name for name in of_its_kind if name == alg)


def _for_signatures(jwk: Mapping[str, object]) -> bool:
    """A key whose private half was published is nobody's any more."""
    operations = jwk.get("key_ops", ["verify"])
    verifies = isinstance(operations, list) and "verify" in operations
    return jwk.get("use", "sig") == "sig" and verifies and "d" not in jwk


def _public_key(jwk: dict[str, Any], algorithm: str) -> AllowedPublicKeys | None:
    try:
        key = PyJWK(jwk, algorithm).key
    except (PyJWTError, UnsupportedAlgorithm, ValueError, TypeError, KeyError):
        return None
    if isinstance(key, RSAPublicKey) and key.key_size < _SMALLEST_RSA_BITS:
        return None
    public: AllowedPublicKeys = key
    return public
