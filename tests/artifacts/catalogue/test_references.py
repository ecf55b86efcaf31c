"""Who needs a blob, which blobs nobody needs, and what a collection marks."""

from datetime import timedelta

from lucius_artifacts.model import Entry, Hold, NeededBy, Reference
from lucius_artifacts.ports.catalogue import Catalogue, MarkedPage
from lucius_artifacts.states import BlobState, UploadState, VersionState
from tests.artifacts import rows
from tests.artifacts.catalogue.asking import MANY, ask, blob, digest, digests, do, put, version_of
from tests.artifacts.rows import DIGEST, HOUR, NOW

TICK = timedelta(microseconds=1)


async def references(catalogue: Catalogue, of: str = DIGEST, limit: int = MANY) -> list[Reference]:
    return await ask(catalogue).references(of, NOW, limit)


async def test_versions_jobs_and_open_uploads_need_a_blob(catalogue: Catalogue) -> None:
    await put(
        catalogue,
        rows.version(VersionState.PUBLISHED, number=3),
        Hold("job_1", "zeta", DIGEST, NOW),
        rows.upload(expires_at=NOW - HOUR),
        version_of(digest("other"), number=4),
        Hold("job_1", "zeta", digest("other"), NOW),
        rows.upload(upload_id="up_other", digest=digest("other")),
        rows.upload(UploadState.COMMITTED, upload_id="up_ended"),
    )
    assert await references(catalogue) == [
        Reference(NeededBy.JOB, "zeta", "job_1"),
        Reference(NeededBy.UPLOAD, "acme", "up_1"),
        Reference(NeededBy.VERSION, "acme", "answers/v3"),
    ]
    assert await references(catalogue, digest("nobody's")) == []


async def test_a_version_needs_its_blobs_until_it_is_no_longer_retained(
    catalogue: Catalogue,
) -> None:
    ends = {1: NOW - HOUR, 2: NOW, 3: NOW + TICK, 4: NOW + HOUR, 5: None}
    await put(
        catalogue,
        *(
            rows.version(VersionState.TOMBSTONED, number=number, retained_until=end)
            for number, end in ends.items()
        ),
    )
    needing = [reference.who for reference in await references(catalogue)]
    assert needing == ["answers/v3", "answers/v4", "answers/v5"]


async def test_references_are_listed_by_kind_and_who_each_once(catalogue: Catalogue) -> None:
    entries = tuple(Entry(path, DIGEST, 1) for path in "abc")
    names = [("a", 9), ("a", 10), ("a-b", 1), ("a0", 1)]
    versions = [rows.version(name=name, number=number, entries=entries) for name, number in names]
    await put(
        catalogue,
        *versions,
        rows.version(name="a", number=9, tenant_id="aaaa", entries=entries),
        *(Hold(job, "acme", DIGEST, NOW) for job in ("job_b", "job_a", "job_B")),
        *(rows.upload(upload_id=name) for name in ("up_é", "up_z")),
    )
    listed = [
        *(Reference(NeededBy.JOB, "acme", job) for job in ("job_B", "job_a", "job_b")),
        *(Reference(NeededBy.UPLOAD, "acme", name) for name in ("up_z", "up_é")),
        Reference(NeededBy.VERSION, "acme", "a-b/v1"),
        Reference(NeededBy.VERSION, "acme", "a/v10"),
        Reference(NeededBy.VERSION, "aaaa", "a/v9"),
        Reference(NeededBy.VERSION, "acme", "a/v9"),
        Reference(NeededBy.VERSION, "acme", "a0/v1"),
    ]
    for limit in (1, 4, 7, MANY):
        assert await references(catalogue, limit=limit) == listed[:limit]
    assert await ask(catalogue).references(DIGEST, NOW) == listed


async def put_needed_and_not(catalogue: Catalogue) -> tuple[list[str], list[str]]:
    """Digests of blobs that somebody needs, for each reason, and of those that nobody does."""
    needed, idle = digests(8)[::2], digests(8)[1::2]
    await put(
        catalogue,
        *(blob(key) for key in (*needed, *idle)),
        version_of(needed[0], DIGEST, retained_until=NOW + TICK),
        version_of(needed[1], needed[1], number=2, retained_until=None),
        Hold("job_1", "acme", needed[2], NOW),
        rows.upload(digest=needed[3], expires_at=NOW - HOUR),
        version_of(*idle, number=3, retained_until=NOW),
        rows.upload(UploadState.ABORTED, upload_id="up_2", digest=idle[0]),
    )
    return needed, idle


async def test_idle_blobs_are_those_that_nobody_needs(catalogue: Catalogue) -> None:
    _, idle = await put_needed_and_not(catalogue)

    async def found(after: str | None, limit: int) -> list[str]:
        blobs = await ask(catalogue).idle_blobs(NOW, NOW, after, limit)
        return [each.digest for each in blobs]

    assert await found(None, MANY) == idle
    assert await found(None, 3) == idle[:3]
    assert await found(idle[2], 3) == idle[3:]
    assert await found(idle[3], 3) == []


async def test_a_blob_is_not_idle_when_it_was_needed_of_late_or_is_not_live(
    catalogue: Catalogue,
) -> None:
    keys, states = digests(6), list(BlobState)
    times = [NOW - HOUR - TICK, NOW - HOUR, NOW]
    recent = [blob(key, needed_at=at) for key, at in zip(keys[:3], times, strict=True)]
    others = [blob(key, state=state) for key, state in zip(keys[3:], states[1:], strict=True)]
    await put(catalogue, *recent, *others)
    found = await ask(catalogue).idle_blobs(NOW, NOW - HOUR, None, MANY)
    assert found == recent[:1]


async def marks(catalogue: Catalogue, digests_of: list[str]) -> list[str | None]:
    blobs = [await ask(catalogue).blob(key) for key in digests_of]
    return [each.marked_by if each else None for each in blobs]


async def test_a_collection_marks_what_somebody_needs_page_by_page(catalogue: Catalogue) -> None:
    needed, idle = await put_needed_and_not(catalogue)
    for size in (1, 3, 8, MANY):
        run_id, after, marked, pages = f"gc_{size}", None, 0, 0
        while True:
            page = await do(catalogue).mark(run_id, NOW, after, size)
            marked, pages = marked + page.marked, pages + 1
            after = page.after
            if after is None:
                break
        assert marked == len(needed)
        assert pages <= 8 // size + 1
        assert await marks(catalogue, needed) == [run_id] * len(needed)
        assert await marks(catalogue, idle) == [None] * len(idle)


async def test_a_page_of_marks_ends_where_the_next_one_begins(catalogue: Catalogue) -> None:
    needed, idle = await put_needed_and_not(catalogue)
    keys = sorted((*needed, *idle))
    page = await do(catalogue).mark("gc_1", NOW, None, 3)
    assert page == MarkedPage(2, keys[2])
    assert await marks(catalogue, needed) == ["gc_1", "gc_1", None, None]
    page = await do(catalogue).mark("gc_1", NOW, keys[6], 3)
    assert page == MarkedPage(0, None)
    page = await do(catalogue).mark("gc_1", NOW, keys[7], 3)
    assert page == MarkedPage(0, None)


async def test_marks_are_written_on_blobs_in_every_state_but_deleted(catalogue: Catalogue) -> None:
    states = {state: blob(DIGEST, object_key=f"ob_{state}", state=state) for state in BlobState}
    await put(catalogue, rows.version(), states[BlobState.DELETED])
    for state in (BlobState.LIVE, BlobState.TOMBSTONED, BlobState.ELIGIBLE_FOR_GC):
        there = blob(DIGEST, object_key="ob_there", state=state)
        await put(catalogue, there)
        page = await do(catalogue).mark("gc_1", NOW, None, MANY)
        assert page == MarkedPage(1, None)
        assert await marks(catalogue, [DIGEST]) == ["gc_1"]
    gone = await ask(catalogue).blobs_in(BlobState.DELETED, None, MANY)
    assert gone == [states[BlobState.DELETED]]


async def test_marks_leave_the_rest_of_a_row_as_it_is(catalogue: Catalogue) -> None:
    marked = rows.blob(BlobState.ELIGIBLE_FOR_GC, marked_by="gc_0")
    await put(catalogue, marked, Hold("job_1", "acme", DIGEST, NOW))
    await do(catalogue).mark("gc_1", NOW, None, MANY)
    found = await ask(catalogue).blob(DIGEST)
    assert found == rows.blob(BlobState.ELIGIBLE_FOR_GC, marked_by="gc_1")
