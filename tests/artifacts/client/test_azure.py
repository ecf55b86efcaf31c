"""Where the objects are blobs, a client reaches them with shared access signatures."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from lucius_artifacts.client import ArtifactsClient
from lucius_artifacts.objects.azure_blob import AzureBlobObjects
from lucius_artifacts.ports.objects import Objects
from lucius_artifacts.world import Limits
from lucius_azure.storage import StorageAccount
from lucius_settings.secret import Secret
from tests.artifacts.client.quick import PART, digest_of, pattern, written
from tests.artifacts.client.server import KEY, TENANT, Server, serving
from tests.azurite import Azurite
from tests.ledger.backends import Clock

SIZE = 16 * PART + 3


class Now(Clock):
    """Azure has a clock of its own."""

    def __call__(self) -> datetime:
        return datetime.now(UTC)


@pytest.fixture
def azure_server(azure_storage: Azurite, tmp_path: Path) -> Iterator[Server]:
    async def blobs() -> Objects:
        account = StorageAccount(Secret(azure_storage.connection))
        return await AzureBlobObjects.open(account, f"c{uuid4().hex}")

    with serving(Server(tmp_path, Limits(part_size=PART), Now(), blobs)) as server:
        yield server


def test_bytes_go_to_the_blobs_and_come_from_there(azure_server: Server, tmp_path: Path) -> None:
    content = pattern(SIZE)
    source, target = written(tmp_path / "a", content), tmp_path / "b"
    with ArtifactsClient(azure_server.url, KEY) as client:
        done = client.upload(source, TENANT)
        assert (done.digest, done.length) == (digest_of(content), SIZE)
        assert azure_server.gate.count("PUT", "") == 0
        found = client.content(done.uri, TENANT)
        with client.open(done.uri, TENANT) as stream:
            assert stream.read(10) == content[:10]
        client.save(found, target, TENANT)
        assert target.read_bytes() == content
        assert client.upload(source, TENANT) == done
        assert azure_server.gate.count("POST", ":complete") == 1
