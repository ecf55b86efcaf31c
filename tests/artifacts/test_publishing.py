"""Versions: published once, never changed, tombstoned and restored."""

from datetime import timedelta

import pytest

from lucius_artifacts.errors import Gone, Invalid, NotFound, Refused, Unavailable
from lucius_artifacts.model import Fence
from lucius_artifacts.ports.policy import Allow, Quarantine
from lucius_artifacts.publishing import SUPERSEDED, Author, NewEntry
from lucius_artifacts.states import VersionState
from tests.artifacts.stage import ACME, BOLT, Stage, digest_of

DAY = timedelta(days=1)


async def test_versions_count_up_per_tenant_and_name() -> None:
    stage = Stage()
    for tenant_id in (ACME, BOLT):
        await stage.upload(b"one", tenant_id)
        await stage.upload(b"two", tenant_id)
    assert (await stage.publish(b"one")).number == 1
    assert (await stage.publish(b"two")).number == 2
    assert (await stage.publish(b"one", name="others")).number == 1
    assert (await stage.publish(b"one", BOLT)).number == 1
    assert stage.told.count("version.published") == 4


async def test_a_publication_is_told_audited_and_has_the_lengths_of_its_blobs() -> None:
    stage = Stage()
    await stage.upload(b"one")
    version = await stage.publish(b"one")
    assert (version.state, version.entries[0].length) == (VersionState.PUBLISHED, 3)
    assert stage.told[-1] == stage.audited[-1] == "version.published"


async def test_the_same_content_again_is_the_same_version() -> None:
    stage = Stage()
    await stage.upload(b"one")
    first = await stage.publish(b"one")
    stage.let_pass(DAY)
    assert await stage.publish(b"one") == first
    assert stage.told.count("version.published") == 1


async def test_content_of_another_tenant_cannot_be_published() -> None:
    stage = Stage()
    await stage.upload(b"one")
    with pytest.raises(NotFound, match="upload it before it is published"):
        await stage.publish(b"one", BOLT)
    assert not stage.rows.versions


async def test_a_policy_that_quarantines_leaves_a_draft_that_nobody_reads() -> None:
    stage = Stage()
    await stage.upload(b"one")
    stage.judge.verdict = Quarantine("holds a virus")
    draft = await stage.publish(b"one")
    assert (draft.state, draft.reason) == (VersionState.DRAFT, "holds a virus")
    assert stage.told[-1] == stage.audited[-1] == "version.quarantined"
    with pytest.raises(NotFound):
        await stage.all.reading.locate(ACME, "artifact://answers/v1/answer.json")
    stage.judge.verdict = Allow()
    version = await stage.all.publishing.publish_draft(ACME, "bob", "answers", 1)
    assert (version.state, version.reason) == (VersionState.PUBLISHED, None)


async def test_publishing_a_draft_again_is_the_same_draft() -> None:
    stage = Stage()
    await stage.upload(b"one")
    stage.judge.verdict = Quarantine("holds a virus")
    assert (await stage.publish(b"one")).number == (await stage.publish(b"one")).number == 1
    stage.judge.verdict = Allow()
    version = await stage.publish(b"one")
    assert (version.number, version.state) == (1, VersionState.PUBLISHED)


@pytest.mark.parametrize("fault", [Unavailable("away"), OSError("away"), TimeoutError()])
async def test_a_policy_that_cannot_be_asked_publishes_nothing(fault: Exception) -> None:
    stage = Stage()
    await stage.upload(b"one")
    stage.judge.verdict = fault
    with pytest.raises(Unavailable):
        await stage.publish(b"one")
    assert not stage.rows.versions


async def test_a_blob_that_is_deleted_while_the_policy_is_asked_is_not_published() -> None:
    stage = Stage()
    await stage.upload(b"one")

    async def delete_everything() -> None:
        for days in (2, 8):
            stage.let_pass(timedelta(days=days))
            await stage.all.collector.collect()

    stage.judge.meanwhile = delete_everything
    with pytest.raises(NotFound, match="upload it"):
        await stage.publish(b"one")
    assert not stage.rows.versions


async def test_a_tombstoned_version_is_gone_for_readers_and_can_be_restored() -> None:
    stage = Stage()
    await stage.upload(b"one")
    version = await stage.publish(b"one")
    await stage.tombstone(version, DAY)
    with pytest.raises(Gone):
        await stage.all.reading.locate(ACME, "artifact://answers/v1/answer.json")
    restored = await stage.all.publishing.restore(Author(ACME, "bob"), "answers", 1)
    assert restored.state is VersionState.PUBLISHED
    assert stage.told[-2:] == stage.audited[-2:] == ["version.tombstoned", "version.restored"]


async def test_after_its_retention_a_version_cannot_be_restored() -> None:
    stage = Stage()
    await stage.upload(b"one")
    await stage.tombstone(await stage.publish(b"one"), DAY)
    stage.let_pass(DAY)
    with pytest.raises(Refused, match="publish anew"):
        await stage.all.publishing.restore(Author(ACME, "bob"), "answers", 1)


async def test_the_policy_is_asked_before_a_version_is_restored() -> None:
    stage = Stage()
    await stage.upload(b"one")
    await stage.tombstone(await stage.publish(b"one"), DAY)
    stage.judge.verdict = Quarantine("holds a virus")
    with pytest.raises(Refused, match="quarantine"):
        await stage.all.publishing.restore(Author(ACME, "bob"), "answers", 1)


@pytest.mark.parametrize("days", [-1, 3651])
async def test_a_retention_has_bounds(days: int) -> None:
    stage = Stage()
    await stage.upload(b"one")
    with pytest.raises(Invalid, match="retention"):
        await stage.tombstone(await stage.publish(b"one"), timedelta(days=days))


async def test_a_later_run_of_a_job_replaces_what_an_earlier_one_published() -> None:
    stage = Stage()
    await stage.upload(b"one")
    await stage.upload(b"two")
    first = await stage.publish(b"one", run=Fence("step_01", 1, 1))
    second = await stage.publish(b"two", run=Fence("step_01", 1, 2))
    assert (first.number, second.number) == (1, 2)
    superseded = await stage.all.publishing.version(ACME, "answers", 1)
    assert (superseded.state, superseded.reason) == (VersionState.TOMBSTONED, SUPERSEDED)
    with pytest.raises(Refused, match="is outdated"):
        await stage.publish(b"one", run=Fence("step_01", 1, 1))


async def test_a_run_that_publishes_the_same_again_gets_the_same_version_and_its_fence() -> None:
    stage = Stage()
    await stage.upload(b"one")
    first = await stage.publish(b"one", run=Fence("step_01", 1, 1))
    again = await stage.publish(b"one", run=Fence("step_01", 2, 1))
    assert (again.number, again.entries) == (first.number, first.entries)
    with pytest.raises(Refused, match="is outdated"):
        await stage.publish(b"one", run=Fence("step_01", 1, 1))


async def test_another_job_with_the_same_content_has_a_version_of_its_own() -> None:
    stage = Stage()
    await stage.upload(b"one")
    await stage.publish(b"one")
    assert (await stage.publish(b"one", run=Fence("step_01", 1, 1))).number == 2


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [NewEntry("a", digest_of(b"")), NewEntry("a", digest_of(b"x"))],
        [NewEntry("../a", digest_of(b""))],
        [NewEntry("/a", digest_of(b""))],
        [NewEntry("a\\b", digest_of(b""))],
        [NewEntry("a", "none")],
        [NewEntry("a", digest_of(b""), "text/\nplain")],
    ],
)
async def test_entries_that_can_never_work_are_said_at_once(entries: list[NewEntry]) -> None:
    stage = Stage()
    with pytest.raises(Invalid):
        await stage.all.publishing.publish(Author(ACME, "ann"), "answers", entries)


@pytest.mark.parametrize("name", ["", "Answers", "blobs", "uploads", "a/b", "a..b", "a.", "-a"])
async def test_names_are_checked(name: str) -> None:
    stage = Stage()
    with pytest.raises(Invalid, match="name"):
        await stage.publish(b"one", name=name)
