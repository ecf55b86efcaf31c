"""A service whose workspace is in blobs, from the directive to the result."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lucius_azure.storage import StorageAccount
from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Directive, ResultStatus
from lucius_sdk import StepContext
from lucius_sdk.testing.directives import make_directive
from lucius_sdk.workspace_io import open_storages
from lucius_settings.secret import Secret
from tests.azurite import Azurite
from tests.sdk.runtime.rig import CALLBACKS, Payload, Rig
from tests.sdk.workspace_io.stage import BlobStage

SCAN = b"a scanned page"


class BlobRig(Rig):
    def __init__(self, folder: Path, root: str, connection: str) -> None:
        super().__init__(folder)
        self._root = root
        account = StorageAccount(Secret(connection))
        self.storages = open_storages(root, [root], account, output_roots=[root])

    def directive(self, job: str = "job_1", **members: Any) -> Directive:
        members = {"jobId": job, **CALLBACKS, **members}
        return make_directive(self.clock.now(), self._root, **members)


@pytest.fixture
async def rig(
    tmp_path: Path, blob_stage: BlobStage, azure_storage: Azurite
) -> AsyncIterator[BlobRig]:
    rig = BlobRig(tmp_path, blob_stage.root, azure_storage.connection)
    blob_stage.put(blob_stage.uri("input"), SCAN)
    yield rig
    await rig.close()


def read_page(ctx: StepContext[Payload]) -> None:
    ctx.publish(ctx.workspace.write("output.txt", ctx.input.read().upper()), "text/plain")


async def test_a_step_reads_writes_and_publishes_blobs(rig: BlobRig, blob_stage: BlobStage) -> None:
    rig.workshop.act = read_page
    await rig.start()
    await rig.send(rig.directive(tenant_id="Müller & Co."))
    (result,) = await rig.results()
    assert result.status is ResultStatus.SUCCEEDED
    (artifact,) = result.artifacts
    assert artifact.sha256 == hashlib.sha256(SCAN.upper()).hexdigest()
    assert blob_stage.visible() == {
        "input": SCAN,
        "lucius/M%C3%BCller%20%26%20Co%2E/job_1/test/1/output.txt": SCAN.upper(),
        "output": SCAN.upper(),
    }


async def test_a_second_step_reads_what_the_first_one_wrote(
    rig: BlobRig, blob_stage: BlobStage
) -> None:
    rig.workshop.act = read_page
    await rig.start()
    await rig.send(rig.directive())
    (first,) = await rig.results()

    def repeat(ctx: StepContext[Payload]) -> None:
        ctx.publish(ctx.prior.find("TEST", "output.txt").read() * 2)

    rig.workshop.act = repeat
    prior = {"TEST": [artifact.to_json() for artifact in first.artifacts]}
    await rig.send(rig.directive(stepId="step_02", prior_artifacts=prior))
    _, second = await rig.results(2)
    assert second.status is ResultStatus.SUCCEEDED
    assert blob_stage.visible()["output"] == SCAN.upper() * 2


async def test_a_container_that_is_away_fails_the_attempt_and_not_the_step(
    rig: BlobRig, blob_stage: BlobStage
) -> None:
    rig.workshop.act = read_page
    await rig.start()
    blob_stage.lose_root()
    await rig.send(rig.directive())
    (result,) = await rig.results()
    assert result.status is ResultStatus.FAILED_RETRY
    assert result.error is not None
    assert result.error.code == ErrorCode.STORAGE_UNAVAILABLE
    blob_stage.prepare()
    blob_stage.put(blob_stage.uri("input"), SCAN)
    await rig.send(rig.directive(attempt_no=2))
    assert (await rig.results(2))[1].status is ResultStatus.SUCCEEDED
