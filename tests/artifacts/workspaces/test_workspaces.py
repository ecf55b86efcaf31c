"""Folders of jobs, wherever they are, and which of them go."""

import os
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from lucius_artifacts.collection.workspaces import WorkspaceCollector
from lucius_artifacts.errors import Unavailable
from lucius_artifacts.ports.jobs import Ended, Running, Standing
from lucius_artifacts.workspaces.files import FileWorkspaces
from lucius_artifacts.workspaces.names import is_job_id, made_at
from lucius_artifacts.world import World
from lucius_contract.ids import new_job_id
from tests.artifacts.rows import NOW
from tests.artifacts.stage import Ledger
from tests.artifacts.workspaces.conftest import Place

DAY = timedelta(days=1)


def _job_id(made: datetime = NOW) -> str:
    return new_job_id(made, os.urandom(10))


def _collector(place: Place, ledger: Ledger, now: datetime = NOW) -> WorkspaceCollector:
    world = World(lambda: now, os.urandom)
    return WorkspaceCollector(place.workspaces, ledger, world, 30 * DAY)


async def test_folders_of_jobs_are_found_below_every_tenant(place: Place) -> None:
    one, two = _job_id(), _job_id()
    await place.write(f"lucius/acme/{one}/ocr/1/output.txt")
    await place.write(f"lucius/Bolt %26 Co/{two}/sis/1/result.json")
    assert {each.job_id async for each in place.workspaces.folders()} == {one, two}


async def test_what_is_not_named_like_a_job_is_left_alone(place: Place) -> None:
    others = {
        "results/demo.json",
        "lucius/acme/notes/a.txt",
        f"lucius/{_job_id()}/a.txt",
        f"other/acme/{_job_id()}/a.txt",
    }
    for name in others:
        await place.write(name)
    assert await _collector(place, Ledger(), NOW + 1000 * DAY).collect() == 0
    assert await place.names() == others


async def test_a_root_without_any_job_has_no_folders(place: Place) -> None:
    assert [each async for each in place.workspaces.folders()] == []


async def test_a_folder_goes_with_all_that_is_in_it_and_again_is_no_error(place: Place) -> None:
    gone, stays = _job_id(), _job_id()
    for name in ("ocr/1/output.txt", "ocr/1/~2/output.txt", "sis/1/result.json"):
        await place.write(f"lucius/acme/{gone}/{name}")
    await place.write(f"lucius/acme/{stays}/ocr/1/output.txt")
    (folder,) = [each async for each in place.workspaces.folders() if each.job_id == gone]
    await place.workspaces.delete(folder)
    await place.workspaces.delete(folder)
    assert await place.names() == {f"lucius/acme/{stays}/ocr/1/output.txt"}


async def test_a_workspace_goes_when_its_job_ended_long_enough_ago(place: Place) -> None:
    running, ended, just, forgotten, unknown = jobs = [
        *(_job_id(NOW - 90 * DAY) for _ in range(4)),
        _job_id(NOW - DAY),
    ]
    for job_id in jobs:
        await place.write(f"lucius/acme/{job_id}/ocr/1/output.txt")
    standings: dict[str, Standing] = {
        running: Running(),
        ended: Ended(NOW - 30 * DAY),
        just: Ended(NOW - 29 * DAY),
    }
    collector = _collector(place, Ledger(standings))
    why = {each.subject: each async for each in collector.candidates()}
    assert set(why) == {f"workspace of {job_id}" for job_id in jobs if job_id != unknown}
    goes = {subject for subject, candidate in why.items() if candidate.goes}
    assert goes == {f"workspace of {job_id}" for job_id in (ended, forgotten)}
    assert why[f"workspace of {running}"].why == "the job is running"
    assert await collector.collect() == 2
    left = {each.job_id async for each in place.workspaces.folders()}
    assert left == {running, just, unknown}


async def test_a_ledger_that_cannot_be_asked_deletes_nothing(place: Place) -> None:
    class Away(Ledger):
        async def standing(self, job_id: str) -> Running:
            raise Unavailable(f"nobody knows {job_id}")

    await place.write(f"lucius/acme/{_job_id(NOW - 90 * DAY)}/a.txt")
    with pytest.raises(Unavailable):
        await _collector(place, Away()).collect()
    assert len(await place.names()) == 1


async def test_a_link_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / _job_id(NOW - 90 * DAY)
    other.mkdir(parents=True)
    folder = tmp_path / "workspace" / "lucius"
    folder.mkdir(parents=True)
    (folder / "acme").symlink_to(other.parent)
    workspaces = FileWorkspaces(tmp_path / "workspace", "lucius")
    assert [each async for each in workspaces.folders()] == []


def test_an_id_tells_when_its_job_was_made() -> None:
    assert made_at(_job_id()) == NOW
    assert not is_job_id("job_1")
    with pytest.raises(ValueError, match="not the id of a job"):
        made_at("job_1")
