from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from lucius_artifacts.objects.azure_blob import AzureBlobObjects
from lucius_artifacts.ports.objects import Objects
from lucius_azure.storage import StorageAccount, open_blobs
from lucius_settings.secret import Secret
from tests.artifacts.objects.azure import CopyStatus
from tests.artifacts.objects.stages import STAGES, AzureBlobStage, FileStage, MemoryStage, Stage
from tests.azure_proxy import StorageProxy, proxy_to
from tests.azurite import Azurite
from tests.names import unique


@pytest.fixture
async def memory_stage() -> AsyncIterator[Stage]:
    stage = MemoryStage()
    await stage.start()
    yield stage
    await stage.stop()


@pytest.fixture
async def files_stage(tmp_path: Path) -> AsyncIterator[FileStage]:
    stage = FileStage(tmp_path / "objects")
    await stage.start()
    yield stage
    await stage.stop()


@pytest.fixture
async def azure_blob_stage(azure_storage: Azurite) -> AsyncIterator[AzureBlobStage]:
    stage = AzureBlobStage(azure_storage.connection)
    await stage.start()
    yield stage
    await stage.stop()


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest) -> Stage:
    stage: Stage = request.getfixturevalue(f"{request.param}_stage")
    return stage


@pytest.fixture
def objects(stage: Stage) -> Objects:
    return stage.objects


@pytest.fixture
async def proxy(azure_storage: Azurite) -> AsyncIterator[StorageProxy]:
    async with proxy_to(azure_storage.blob) as proxy:
        yield proxy


@pytest.fixture
def copies() -> CopyStatus:
    return CopyStatus()


@pytest.fixture
async def direct(azure_storage: Azurite) -> AsyncIterator[AzureBlobObjects]:
    account = StorageAccount(Secret(azure_storage.connection))
    objects = await AzureBlobObjects.open(account, unique("direct"))
    yield objects
    await objects.close()


@pytest.fixture
async def proxied(
    direct: AzureBlobObjects, proxy: StorageProxy, azure_storage: Azurite, copies: CopyStatus
) -> AsyncIterator[AzureBlobObjects]:
    """The same storage by way of the proxy, which tells no sizes. Every call is tried once, and no
    copy is waited for."""
    account = StorageAccount(Secret(proxy.connection(azure_storage)))
    opened = open_blobs(account, retry_total=0, raw_response_hook=copies)
    container = direct._container.container_name
    objects = AzureBlobObjects(opened, container, patience=timedelta())
    yield objects
    await objects.close()
