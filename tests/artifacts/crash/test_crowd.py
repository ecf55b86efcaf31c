"""Many who bring the same content at once: on files and SQLite, on Azurite and PostgreSQL."""

import asyncio
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from lucius_artifacts.artifacts import Artifacts
from lucius_artifacts.model import Upload
from lucius_artifacts.publishing import Author, NewEntry
from lucius_artifacts.states import UploadState
from lucius_artifacts.world import Limits
from tests.artifacts.crash.place import Place, opened
from tests.artifacts.crash.process import chunks
from tests.azurite import Azurite
from tests.names import unique

CROWD = 8
TENANTS = 2
LIMITS = Limits(part_size=1000)
CONTENT = bytes(range(250)) * 10
DIGEST = sha256(CONTENT).hexdigest()


async def _upload(artifacts: Artifacts, tenant_id: str) -> Upload:
    uploads = artifacts.uploads
    upload = await uploads.initiate(tenant_id, "ann", DIGEST, len(CONTENT))
    numbers = list(range(1, upload.part_count + 1))
    await uploads.sign_parts(tenant_id, upload.upload_id, numbers)
    for number in numbers:
        start = (number - 1) * upload.part_size
        piece = CONTENT[start : start + upload.part_size]
        await artifacts.objects.put_part(upload.object_key, number, len(piece), chunks(piece))
    return await uploads.complete(tenant_id, upload.upload_id)


async def _stored_once_for_each_tenant(place: Place) -> None:
    """And all of them can publish it."""
    async with opened(place, limits=LIMITS) as one, opened(place, limits=LIMITS) as other:
        both = [one, other] * (CROWD // 2)
        ended = await asyncio.gather(
            *(_upload(each, f"tenant-{number % TENANTS}") for number, each in enumerate(both))
        )
        assert {upload.state for upload in ended} == {UploadState.COMMITTED}
        stats = await one.catalogue.read(lambda rows: rows.stats())
        stored = Counter({str(each.state): each.count for each in stats.blobs})
        assert (stored["live"], stored.total(), stats.doomed) == (1, 1, CROWD - TENANTS)
        claims = await one.catalogue.read(lambda rows: rows.claims(DIGEST))
        assert len({claim.object_key for claim in claims}) == TENANTS
        entry = NewEntry("content", DIGEST)
        versions = await asyncio.gather(
            *(
                each.publishing.publish(
                    Author(f"tenant-{number % TENANTS}", "ann"), "answers", [entry]
                )
                for number, each in enumerate(both)
            )
        )
        assert {version.number for version in versions} == {1}


async def test_on_files_and_sqlite_eight_uploads_of_one_content_store_it_once_for_each_tenant(
    tmp_path: Path,
) -> None:
    await _stored_once_for_each_tenant(Place(str(tmp_path)))


@pytest.mark.check
async def test_on_azurite_and_postgresql_eight_uploads_of_one_content_store_it_once_for_each_tenant(
    tmp_path: Path, postgres_uri: str, azure_storage: Azurite
) -> None:
    async with await AsyncConnection.connect(postgres_uri, autocommit=True) as connection:
        await connection.execute(b"CREATE SCHEMA artifacts_crowd")
    database = make_conninfo(postgres_uri, options="-c search_path=artifacts_crowd")
    await _stored_once_for_each_tenant(
        Place(str(tmp_path), database, azure_storage.connection, unique("crowd"))
    )
