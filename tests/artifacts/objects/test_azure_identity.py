"""Objects by the identity of the process: with keys that the service lends it."""

import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from aiohttp.client_proto import ResponseHandler
from azure.core.credentials import AccessToken

import lucius_azure.storage
from lucius_artifacts.objects.azure_blob import AzureBlobObjects
from lucius_azure.storage import StorageAccount, open_blobs
from tests import azurite
from tests.artifacts.objects.stages import KEY, content_of, frozen
from tests.components import require
from tests.webhooks.receiver import Certificate, new_certificate

NOBODY = "00000000-0000-0000-0000-000000000000"
SOMEBODY = "11111111-1111-1111-1111-111111111111"


class Clock:
    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


class Identity:
    """What `azure-identity` would be on a machine that has one."""

    async def get_token(self, *_: str, **__: Any) -> AccessToken:
        now = int(time.time())
        claims = {
            "aud": "https://storage.azure.com",
            "iss": f"https://sts.windows.net/{NOBODY}/",
            "oid": SOMEBODY,
            "tid": NOBODY,
            "nbf": now - 60,
            "iat": now - 60,
            "exp": now + 3600,
        }
        return AccessToken(jwt.encode(claims, "a key that the emulator does not ask for"), now + 60)

    async def close(self) -> None: ...


@pytest.fixture(scope="module")
def secured(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[azurite.Azurite, Certificate]]:
    require(azurite.is_available(), "Azurite, which `make setup` installs")
    certificate = new_certificate(tmp_path_factory.mktemp("tls"), "localhost")
    files = ("--cert", str(certificate.file), "--key", str(certificate.key_file))
    with azurite.azurite_server("--oauth", "basic", *files) as server:
        yield server, certificate


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def objects(
    monkeypatch: pytest.MonkeyPatch, secured: tuple[azurite.Azurite, Certificate], clock: Clock
) -> AsyncIterator[AzureBlobObjects]:
    server, certificate = secured
    monkeypatch.setattr(lucius_azure.storage, "default_credential", Identity)
    # A connection that the HTTP client gives up says goodbye by TLS, and nobody waits for that.
    monkeypatch.setattr(ResponseHandler, "close", ResponseHandler.abort)
    account = StorageAccount(endpoint=server.blob.replace("127.0.0.1", "localhost"))
    opened = open_blobs(account, connection_verify=str(certificate.file), retry_total=0)
    objects = AzureBlobObjects(opened, "objects", clock=clock)
    await objects._prepare()
    yield objects
    await objects.close()


def said(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


async def test_an_identity_does_all_that_a_key_does(objects: AzureBlobObjects) -> None:
    content = await frozen(objects, b"one", b"two")
    assert await content_of(objects) == content
    await objects.delete(KEY)
    assert await objects.parts(KEY) == {}


async def test_addresses_are_signed_with_a_key_that_was_lent(
    objects: AzureBlobObjects, clock: Clock
) -> None:
    address = await objects.sign_part(KEY, 1, 3, clock.now + timedelta(hours=1))
    query = said(address.url)
    assert query["skoid"] == SOMEBODY
    assert query["spr"] == "https"
    assert query["sp"] == "w"
    assert query["sr"] == "b"
    assert query["se"] <= query["ske"]
    assert address.expires_at == (clock.now + timedelta(hours=1)).replace(microsecond=0)


async def test_a_key_is_lent_once_until_addresses_would_outlive_it(
    objects: AzureBlobObjects, clock: Clock
) -> None:
    begins = []
    for hours in (0, 1, 22, 2):
        clock.now += timedelta(hours=hours)
        address = await objects.sign_part(KEY, 1, 3, clock.now + timedelta(hours=1))
        begins.append(said(address.url)["skt"])
    assert begins[0] == begins[1] == begins[2]
    assert begins[3] != begins[0]


async def test_no_address_outlives_the_longest_loan(
    objects: AzureBlobObjects, clock: Clock
) -> None:
    address = await objects.sign_read(KEY, clock.now + timedelta(days=30), "text/plain", "a")
    assert clock.now < address.expires_at < clock.now + timedelta(days=7)
    assert said(address.url)["se"] <= said(address.url)["ske"]
