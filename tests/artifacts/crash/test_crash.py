"""Processes that are killed at any moment, on real files and SQLite, and on Azurite and PostgreSQL.

Half of them end themselves at a storage call, before its effect or after it; the others are killed
from outside, in the midst of whatever they do.
"""

import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from lucius_artifacts.artifacts import Artifacts
from lucius_artifacts.measuring import measure
from lucius_artifacts.model import AuditRecord, Blob, Version
from lucius_artifacts.ports.catalogue import Reader
from lucius_artifacts.publishing import Author
from lucius_artifacts.states import VersionState
from tests.artifacts.crash.place import JobFiles, Place, opened
from tests.artifacts.crash.process import DIGESTS, TENANTS
from tests.azurite import Azurite
from tests.names import unique
from tests.runner.deadlines import time_limit
from tests.runner.tiers import by_tier
from tests.runner.workload import Workload

NEVER = 10**9
AT_ONCE = 2

pytestmark = time_limit(280)


def _start(place: Place, seed: int, calls: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.artifacts.crash.process",
            place.to_text(),
            str(seed),
            str(calls),
        ],
        stdout=subprocess.PIPE,
    )


def _kill(users: Sequence["subprocess.Popen[bytes]"], acts: int) -> None:
    """After so many acts of the first, or when it has ended itself."""
    first = users[0].stdout
    assert first is not None
    first.read(acts)
    for user in users:
        user.kill()
        assert user.wait() == -signal.SIGKILL, "it ended by itself"
        assert user.stdout is not None
        user.stdout.close()


async def _torment(place: Place, rounds: int) -> None:
    """So many rounds, and more until one has deleted something: the test is about that too."""
    chance, workload = random.Random(), Workload(rounds)
    for number in count(1):
        calls = [chance.randint(100, 1500), *[NEVER] * (AT_ONCE - 1)]
        users = [_start(place, chance.randrange(10**6), each) for each in calls]
        _kill(users, chance.randint(50, 200))
        async with opened(place) as artifacts:
            await _sound(place, artifacts)
            if not workload.wants_more(number) and await _deleted(artifacts):
                return


async def _sound(place: Place, artifacts: Artifacts) -> None:
    """Every blob has its bytes, every retained version and every running job has its blobs."""
    blobs = await artifacts.catalogue.read(_blobs)
    for blob in blobs.values():
        measured = await measure(artifacts.objects, blob.object_key)
        assert (measured.digest, measured.length) == (blob.digest, blob.length)
    for job_id, digest in JobFiles(Path(place.folder, "jobs")).running().items():
        assert digest in blobs, f"{job_id} has lost its input"
    for tenant_id in TENANTS:
        for version in await _versions(artifacts, tenant_id):
            if version.state is VersionState.PUBLISHED:
                assert set(version.digests) <= set(blobs), f"{version} is not whole"


async def _blobs(rows: Reader) -> dict[str, Blob]:
    found = [await rows.blob(digest) for digest in DIGESTS]
    return {blob.digest: blob for blob in found if blob is not None}


async def _purge(place: Place) -> None:
    """Nobody needs anything any more: nothing is left, in rows or in storage."""
    jobs = JobFiles(Path(place.folder, "jobs"))
    for job_id in jobs.running():
        jobs.end(job_id)
    async with opened(place) as artifacts:
        await _tombstone_all(artifacts)
    for days in (2, 4, 6):
        async with opened(place, timedelta(days=days)) as artifacts:
            await artifacts.collector.collect()
    async with opened(place) as artifacts:
        assert await artifacts.catalogue.read(_blobs) == {}
        stats = await artifacts.catalogue.read(lambda rows: rows.stats())
        assert (stats.open_uploads, stats.doomed) == (0, 0)


async def _tombstone_all(artifacts: Artifacts) -> None:
    for tenant_id in TENANTS:
        for version in await _versions(artifacts, tenant_id):
            if version.state is VersionState.PUBLISHED:
                await artifacts.publishing.tombstone(
                    Author(tenant_id, "ann"),
                    "answers",
                    version.number,
                    authorized=True,
                    retention=timedelta(0),
                    reason="the end",
                )


async def _versions(artifacts: Artifacts, tenant_id: str) -> list[Version]:
    return await artifacts.catalogue.read(
        lambda rows: rows.versions(tenant_id, "answers", None, 10_000)
    )


async def _deleted(artifacts: Artifacts) -> int:

    async def records(rows: Reader) -> list[AuditRecord]:
        return [each for digest in DIGESTS for each in await rows.audit(f"blob {digest}", 100)]

    found = await artifacts.catalogue.read(records)
    return sum(record.action == "blob.deleted" for record in found)


async def _survives(place: Place, rounds: int) -> None:
    await _torment(place, rounds)
    await _purge(place)


async def test_on_files_and_sqlite_nothing_is_lost_and_nothing_is_left(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    await _survives(place, rounds=by_tier(1, 2, 8))
    left = [each for each in (tmp_path / "objects").rglob("*") if each.is_file()]
    assert left == []


@pytest.mark.check
async def test_on_azurite_and_postgresql_nothing_is_lost_and_nothing_is_left(
    tmp_path: Path, postgres_uri: str, azure_storage: Azurite
) -> None:
    schema = "artifacts_crash"
    async with await AsyncConnection.connect(postgres_uri, autocommit=True) as connection:
        await connection.execute(f"CREATE SCHEMA {schema}".encode())
    database = make_conninfo(postgres_uri, options=f"-c search_path={schema}")
    place = Place(str(tmp_path), database, azure_storage.connection, unique("crash"))
    await _survives(place, rounds=by_tier(1, 1, 6))
    async with opened(place) as artifacts:
        container = artifacts.objects._container  # type: ignore[attr-defined]
        left = [each.name async for each in container.list_blobs(include=["uncommittedblobs"])]
    assert left == []
