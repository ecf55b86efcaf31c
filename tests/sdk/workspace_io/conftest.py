"""A workspace on real files, one on blobs, and one in S3."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lucius_sdk.workspace_io import BlobStorage, StepFolder, Storage, Workspace
from lucius_sdk.workspace_io.blob.account import Patience
from tests.azurite import Azurite
from tests.s3 import S3Server, as_s3_client
from tests.sdk.workspace_io.far import AT_ONCE, OpenThrough
from tests.sdk.workspace_io.proxy import Proxy, proxy_to
from tests.sdk.workspace_io.reopening import blob_storage
from tests.sdk.workspace_io.stage import (
    STAGES,
    WORKSPACE,
    BlobStage,
    LocalStage,
    S3Stage,
    Stage,
    Uri,
)


@pytest.fixture
def local_stage(tmp_path: Path) -> LocalStage:
    return LocalStage(tmp_path)


@pytest.fixture
def blob_stage(azure_storage: Azurite) -> Iterator[BlobStage]:
    stage = BlobStage(azure_storage.connection)
    yield stage
    stage.close()


@pytest.fixture
def s3_stage(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Stage]:
    as_s3_client(monkeypatch)
    stage = S3Stage(s3_server.endpoint)
    yield stage
    stage.close()


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest) -> Stage:
    found: Stage = request.getfixturevalue(f"{request.param}_stage")
    return found


@pytest.fixture
def storage(stage: Stage) -> Storage:
    return stage.storage


@pytest.fixture
def uri(stage: Stage) -> Uri:
    return stage.uri


@pytest.fixture
def folder(storage: Storage, uri: Uri) -> StepFolder:
    return StepFolder(storage, uri(WORKSPACE), "OCR", 1, 1)


@pytest.fixture
def workspace(folder: StepFolder) -> Workspace:
    return Workspace(folder)


@pytest.fixture
def proxy(azure_storage: Azurite) -> Iterator[Proxy]:
    with proxy_to(azure_storage.blob) as proxy:
        yield proxy


@pytest.fixture
def open_through(
    azure_storage: Azurite, blob_stage: BlobStage, proxy: Proxy
) -> Iterator[OpenThrough]:
    """Storages on the root of the stage, which reach it through the proxy."""
    opened: list[BlobStorage] = []

    def open_(patience: Patience) -> BlobStorage:
        connection = azure_storage._replace(blob=proxy.url).connection
        opened.append(blob_storage(connection, blob_stage.root, patience=patience))
        return opened[-1]

    yield open_
    for storage in opened:
        storage.close()


@pytest.fixture
def far(open_through: OpenThrough) -> BlobStorage:
    return open_through(AT_ONCE)
