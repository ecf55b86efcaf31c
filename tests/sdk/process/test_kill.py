"""A service that is killed, at every stage of a directive, under a real orchestrator."""

import asyncio
import signal
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from tests.azurite import Azurite
from tests.runner.deadlines import seconds, time_limit
from tests.runner.tiers import by_tier
from tests.sdk.process.plane import Plane, open_plane
from tests.sdk.process.service import STAGES
from tests.sdk.process.yard import Yard, open_yard

pytestmark = time_limit(240)

LOCK = timedelta(seconds=seconds(8))
RUNS = dict.fromkeys(STAGES, 1) | {"in work": 2, "before COMPLETED": 2}
"""At which stage it is killed, and how often the work is done then."""
SOME = ("in work", "after COMPLETED")


@pytest.mark.parametrize(
    ("reply_via", "stages"),
    [
        ("http", by_tier(SOME, tuple(RUNS))),
        pytest.param("bus", by_tier(SOME, SOME, tuple(RUNS)), marks=pytest.mark.check),
    ],
    ids=["http", "bus"],
)
async def test_killed_at_any_stage_there_is_one_result_and_completed_work_is_not_done_again(
    tmp_path: Path, reply_via: str, stages: Sequence[str]
) -> None:
    services = {f"stage-{number}": stage for number, stage in enumerate(stages)}
    step_types = dict.fromkeys(services, "WRITE")
    async with (
        open_yard(tmp_path, services, LOCK) as yard,
        open_plane(yard, step_types, LUCIUS_REPLY_VIA=reply_via) as plane,
        asyncio.TaskGroup() as group,
    ):
        for name, stage in services.items():
            group.create_task(kill_and_go_on(yard, plane, name, stage))


async def kill_and_go_on(yard: Yard, plane: Plane, name: str, stage: str, **environ: str) -> None:
    job = await plane.submit(name)
    async with yard.service(name, TEST_KILL_AT=stage, **environ) as running:
        assert await running.line() == f"ended {-signal.SIGKILL}\n", stage
        assert (await running.line()).startswith("ready "), stage
        found = await plane.finished(job)
        await yard.empty(name)
        assert await running.stop() == 0, stage
    assert found["state"] == "SUCCEEDED", stage
    assert [step["attempt_no"] for step in found["steps"]] == [1], stage
    assert (await plane.causes(job)).count("RESULT_SUCCEEDED") == 1, stage
    assert yard.runs[job] == RUNS[stage], stage


@pytest.mark.check
async def test_a_service_that_has_everything_in_azure_is_killed(
    tmp_path: Path, azure_storage: Azurite
) -> None:
    """Its successor reports what was stored; the work is not done again."""
    name, connection = f"all{uuid4().hex}", azure_storage.connection
    stores = {"on-tables": f"aztable:{name}", "on-blobs": f"azblob:{name}/dedup"}
    environ = {
        "LUCIUS_WORKSPACE_ROOT": f"az://{name}/work",
        "LUCIUS_TABLE_CONNECTION": connection,
        "LUCIUS_BLOB_CONNECTION": connection,
    }
    root = environ["LUCIUS_WORKSPACE_ROOT"]
    async with (
        open_yard(tmp_path, stores, LOCK) as yard,
        open_plane(yard, dict.fromkeys(stores, "WRITE"), LUCIUS_WORKSPACE_ROOT=root) as plane,
        asyncio.TaskGroup() as group,
    ):
        for service, store in stores.items():
            given = environ | {"LUCIUS_DEDUP_STORE": store}
            group.create_task(kill_and_go_on(yard, plane, service, "after COMPLETED", **given))
