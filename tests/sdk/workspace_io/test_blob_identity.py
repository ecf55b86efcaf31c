"""Blobs by the identity of the process: tokens, over TLS, from a service that asks for them."""

import ipaddress
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import lucius_azure.storage
from lucius_azure.storage import StorageAccount
from lucius_contract.documents import Ref
from lucius_contract.errors import ErrorCode
from lucius_sdk.workspace_io import BlobStorage, open_storages, publish
from lucius_sdk.workspace_io.blob.account import open_account
from tests import azurite
from tests.azurite import Azurite
from tests.components import require
from tests.sdk.workspace_io.far import AT_ONCE
from tests.sdk.workspace_io.objects import create, read
from tests.sdk.workspace_io.stage import fence, raises

KEY = ec.generate_private_key(ec.SECP256R1())
ROOT = "az://work/jobs"


def certificate() -> bytes:
    """Of this machine, signed by itself."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder(name, name, KEY.public_key(), 1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(here, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def private_key() -> bytes:
    return KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Azurite, Path]]:
    """A service that wants tokens, and the certificate by which it is known."""
    require(azurite.is_available(), "Azurite, which `make setup` installs")
    folder = tmp_path_factory.mktemp("tls")
    known, secret = folder / "certificate.pem", folder / "key.pem"
    known.write_bytes(certificate())
    secret.write_bytes(private_key())
    options = ("--oauth", "basic", "--cert", str(known), "--key", str(secret))
    with azurite.azurite_server(*options) as server:
        yield server, known


class Identity:
    """What `azure-identity` would be on a machine that has one."""

    def __init__(self, audience: str = "https://storage.azure.com") -> None:
        self._audience = audience
        self.scopes: set[str] = set()
        self.is_closed = False

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        self.scopes |= set(scopes)
        now = int(time.time())
        times = {"nbf": now - 60, "iat": now - 60, "exp": now + 3600}
        issuer = "https://sts.windows.net/00000000-0000-0000-0000-000000000000/"
        claims = {"aud": self._audience, "iss": issuer, **times}
        return AccessToken(jwt.encode(claims, KEY, "ES256"), now + 3600)

    def close(self) -> None:
        self.is_closed = True


class NoIdentity(Identity):
    def get_token(self, *_: str, **__: Any) -> AccessToken:
        raise ClientAuthenticationError("this machine has no identity")


def opened(
    monkeypatch: pytest.MonkeyPatch, secured: tuple[Azurite, Path], identity: Identity
) -> BlobStorage:
    server, known = secured
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(known))
    monkeypatch.setattr(lucius_azure.storage, "blocking_credential", lambda: identity)
    return BlobStorage(open_account(StorageAccount(endpoint=server.blob), AT_ONCE), ROOT)


def test_an_endpoint_is_reached_with_the_identity_of_the_process(
    monkeypatch: pytest.MonkeyPatch, secured: tuple[Azurite, Path]
) -> None:
    identity = Identity()
    storage = opened(monkeypatch, secured, identity)
    storage.prepare()
    storage.check()
    create(storage, f"{ROOT}/a")
    publish(storage, Ref(uri=f"{ROOT}/out"), b"new", fence())
    assert read(storage, f"{ROOT}/a") == read(storage, f"{ROOT}/out") == b"new"
    assert identity.scopes == {"https://storage.azure.com/.default"}
    storage.close()
    storage.close()
    assert identity.is_closed


@pytest.mark.parametrize("identity", [Identity("https://elsewhere.example"), NoIdentity()])
def test_an_identity_that_is_not_believed_is_a_passing_fault(
    monkeypatch: pytest.MonkeyPatch, secured: tuple[Azurite, Path], identity: Identity
) -> None:
    storage = opened(monkeypatch, secured, identity)
    for attempt in (storage.prepare, storage.check, lambda: create(storage, f"{ROOT}/a")):
        with raises(ErrorCode.STORAGE_UNAVAILABLE):
            attempt()
    storage.close()


def test_who_cannot_start_keeps_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    identity = Identity()
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(lucius_azure.storage, "blocking_credential", lambda: identity)
    with raises(ErrorCode.STORAGE_UNAVAILABLE):
        open_storages(ROOT, blobs=StorageAccount(endpoint="https://127.0.0.1:9/account"))
    assert identity.is_closed
