"""The order of every list, where its pages begin and end, and what is counted."""

from dataclasses import replace
from datetime import timedelta

from lucius_artifacts.model import AuditRecord, Claim, Doomed, Fence, Hold, Producer, RunPhase
from lucius_artifacts.ports.catalogue import ArtifactSummary, BlobStats, Catalogue, Stats
from lucius_artifacts.states import OPEN_UPLOADS, BlobState, UploadState, VersionState
from tests.artifacts import rows
from tests.artifacts.catalogue.asking import MANY, ask, blob, digests, paged, put, version_of
from tests.artifacts.rows import DIGEST, HOUR, NOW

TICK = timedelta(microseconds=1)


async def test_uploads_are_open_in_the_states_that_the_table_says(catalogue: Catalogue) -> None:
    uploads = [rows.upload(state, upload_id=f"up_{state}") for state in UploadState]
    await put(catalogue, *uploads, rows.upload(upload_id="up_zeta", tenant_id="zeta"))
    assert await ask(catalogue).open_uploads("acme") == len(OPEN_UPLOADS)
    assert await ask(catalogue).open_uploads("zeta") == 1
    assert await ask(catalogue).open_uploads("nobody") == 0
    expired = await ask(catalogue).expired_uploads(NOW + HOUR, MANY)
    assert {upload.state for upload in expired} == OPEN_UPLOADS
    references = await ask(catalogue).references(DIGEST, NOW, MANY)
    assert len(references) == len(OPEN_UPLOADS) + 1


async def test_expired_uploads_come_oldest_first_up_to_the_very_moment(
    catalogue: Catalogue,
) -> None:
    ages = {"c": -HOUR, "d": -2 * HOUR, "a": timedelta(), "b": timedelta(), "e": TICK}
    await put(
        catalogue,
        *(rows.upload(upload_id=name, expires_at=NOW + age) for name, age in ages.items()),
    )
    for limit in (1, 3, 4, MANY):
        found = await ask(catalogue).expired_uploads(NOW, limit)
        assert [upload.upload_id for upload in found] == ["d", "c", "a", "b"][:limit]


async def test_blobs_of_a_state_are_listed_by_digest_in_pages(catalogue: Catalogue) -> None:
    keys = digests(7)
    live = [blob(key) for key in keys[:5]]
    doomed = [blob(key, state=BlobState.TOMBSTONED) for key in keys[5:]]
    await put(catalogue, *reversed(live), *doomed)
    for size in (1, 2, 5, MANY):
        found = await paged(
            size,
            lambda after, n: ask(catalogue).blobs_in(BlobState.LIVE, after, n),
            lambda row: row.digest,
        )
        assert found == live
    gone = await ask(catalogue).blobs_in(BlobState.DELETED, None, MANY)
    assert gone == []


async def test_versions_come_from_the_highest_number_with_their_own_entries(
    catalogue: Catalogue,
) -> None:
    keys = digests(12)
    versions = [version_of(*keys[:n], number=n) for n in range(1, 12)]
    strangers = [
        version_of(keys[0], number=3, name="other"),
        version_of(number=4, tenant_id="zeta"),
    ]
    await put(catalogue, *versions, *strangers)
    newest_first = versions[::-1]
    for size in (1, 4, MANY):
        found = await ask(catalogue).versions("acme", "answers", None, size)
        assert found == newest_first[:size]
        found = await ask(catalogue).versions("acme", "answers", 9, size)
        assert found == newest_first[3:][:size]
    assert await ask(catalogue).versions("acme", "answers", 1, 9) == []
    assert await ask(catalogue).versions("acme", "nothing", None, 9) == []


async def test_the_latest_number_is_the_highest_that_was_given(catalogue: Catalogue) -> None:
    assert await ask(catalogue).latest_number("acme", "answers") == 0
    states = list(VersionState)
    await put(catalogue, *(rows.version(state, number=n) for n, state in enumerate(states, 9)))
    await put(catalogue, rows.version(number=99, name="other"))
    assert await ask(catalogue).latest_number("acme", "answers") == 11


async def test_the_newest_version_of_a_job_is_its_own(catalogue: Catalogue) -> None:
    mine, other = (
        Producer("job_1", Fence("step_01", 1, 1)),
        Producer("job_2", Fence("step_01", 1, 1)),
    )
    makers = [mine, other, mine, None]
    await put(catalogue, *(rows.version(number=n, producer=p) for n, p in enumerate(makers, 1)))
    await put(catalogue, rows.version(number=7, name="other", producer=mine))
    for job_id, number in (("job_1", 3), ("job_2", 2)):
        found = await ask(catalogue).newest_of_job("acme", "answers", job_id)
        assert found is not None
        assert found == rows.version(number=number, producer=makers[number - 1])
    assert await ask(catalogue).newest_of_job("zeta", "answers", "job_1") is None


async def test_artifacts_are_listed_by_name_with_their_newest_numbers(
    catalogue: Catalogue,
) -> None:
    published, draft, gone = VersionState.PUBLISHED, VersionState.DRAFT, VersionState.TOMBSTONED
    await put(
        catalogue,
        rows.version(published, name="a-b", number=1, published_at=NOW),
        rows.version(draft, name="a-b", number=2, created_at=NOW - TICK),
        rows.version(gone, name="a", number=1, published_at=NOW, tombstoned_at=NOW + HOUR),
        rows.version(published, name="a.b", number=1, published_at=NOW),
        rows.version(published, name="a.b", number=2, created_at=NOW, published_at=NOW + TICK),
        rows.version(draft, name="b", number=1, created_at=NOW + HOUR),
        rows.version(published, name="zeta", tenant_id="zeta"),
    )
    summaries = [
        ArtifactSummary("a", 1, None, NOW + HOUR),
        ArtifactSummary("a-b", 2, 1, NOW),
        ArtifactSummary("a.b", 2, 2, NOW + TICK),
        ArtifactSummary("b", 1, None, NOW + HOUR),
    ]
    for size in (1, 3, MANY):
        found = await paged(
            size,
            lambda after, n: ask(catalogue).artifacts("acme", after, n),
            lambda summary: summary.name,
        )
        assert found == summaries


async def test_of_each_job_the_oldest_hold_is_listed(catalogue: Catalogue) -> None:
    keys = digests(3)
    holds = [
        Hold("job_b", "acme", keys[2], NOW),
        Hold("job_b", "acme", keys[0], NOW + TICK),
        Hold("job_a", "acme", keys[1], NOW),
        Hold("job_a", "acme", keys[0], NOW),
        Hold("job_c", "zeta", keys[2], NOW - HOUR),
    ]
    await put(catalogue, *holds)
    for size in (1, 2, MANY):
        found = await paged(
            size,
            lambda after, n: ask(catalogue).held_jobs(after, n),
            lambda hold: hold.job_id,
        )
        assert found == [holds[3], holds[0], holds[4]]


async def test_doomed_objects_come_oldest_first_up_to_the_very_moment(
    catalogue: Catalogue,
) -> None:
    ages = {"b": -HOUR, "a": timedelta(), "c": timedelta(), "d": TICK}
    await put(catalogue, *(Doomed(name, NOW + age, "swept") for name, age in ages.items()))
    for limit in (1, 2, MANY):
        found = await ask(catalogue).doomed(NOW, limit)
        assert [doomed.object_key for doomed in found] == ["b", "a", "c"][:limit]


async def test_records_of_a_subject_come_newest_first(catalogue: Catalogue) -> None:
    records = [
        AuditRecord(NOW + age, "ann", "acme", "published", "answers/v1", f"{n}")
        for n, age in enumerate([timedelta(), HOUR, HOUR, -HOUR])
    ]
    stranger = AuditRecord(NOW, "ann", None, "published", "answers/v10")
    await put(catalogue, *records[:2], stranger)
    await put(catalogue, *records[2:])
    newest_first = [records[n] for n in (2, 1, 0, 3)]
    for limit in (1, 3, MANY):
        found = await ask(catalogue).audit("answers/v1", limit)
        assert found == newest_first[:limit]


async def test_the_current_run_is_marking_or_sweeping(catalogue: Catalogue) -> None:
    for phase in RunPhase:
        run = rows.run(phase)
        await put(catalogue, run)
        current = phase in {RunPhase.MARKING, RunPhase.SWEEPING}
        found = await ask(catalogue).current_run()
        assert found == (run if current else None)


async def test_stats_count_what_is_there(catalogue: Catalogue) -> None:
    there = [state for state in BlobState if state is not BlobState.DELETED]
    empty = Stats(tuple(BlobStats(state, 0, 0) for state in there), 0, 0)
    assert await ask(catalogue).stats() == empty
    keys = digests(4)
    await put(
        catalogue,
        blob(keys[0], length=2**50),
        blob(keys[1], length=2**50),
        blob(keys[2], length=5, state=BlobState.ELIGIBLE_FOR_GC),
        blob(keys[3], length=7, state=BlobState.DELETED),
        rows.upload(),
        rows.upload(upload_id="up_2", tenant_id="zeta"),
        rows.upload(UploadState.COMMITTED, upload_id="up_3"),
        Doomed("ob_1", NOW + HOUR, "swept"),
    )
    blobs = (
        BlobStats(BlobState.LIVE, 2, 2**51),
        BlobStats(BlobState.TOMBSTONED, 0, 0),
        BlobStats(BlobState.ELIGIBLE_FOR_GC, 1, 5),
    )
    assert await ask(catalogue).stats() == Stats(blobs, 2, 1)


async def test_claims_on_a_digest_are_listed_by_tenant(catalogue: Catalogue) -> None:
    claim = Claim("acme", DIGEST, NOW)
    of_zeta = replace(claim, tenant_id="zeta", object_key="ob_2")
    await put(catalogue, of_zeta, claim, claim)
    assert await ask(catalogue).claims(DIGEST) == [claim, of_zeta]
    assert await ask(catalogue).claims("0" * 64) == []


async def test_idle_claims_are_those_that_their_own_tenant_refers_to_no_more(
    catalogue: Catalogue,
) -> None:
    one, other, third = digests(3)
    tenants = ("acme", "bolt", "zeta")
    claims = [Claim(tenant, each, NOW - HOUR) for tenant in tenants for each in (one, other)]
    of_acme = version_of(one, tenant_id="acme", retained_until=NOW + HOUR)
    over = version_of(other, tenant_id="acme", number=2, retained_until=NOW)
    of_bolt = rows.upload(tenant_id="bolt", digest=one)
    await put(catalogue, *claims, Claim("acme", third, NOW), of_acme, over, of_bolt)
    await put(catalogue, Hold("job_1", "zeta", other, NOW))
    idle = [("acme", other), ("bolt", other), ("zeta", one)]

    async def page(after: Claim | None, size: int) -> list[Claim]:
        return await ask(catalogue).idle_claims(NOW, NOW, after, size)

    for size in (1, 2, MANY):
        found: list[Claim] = []
        while claims := await page(found[-1] if found else None, size):
            found += claims
        assert [(claim.tenant_id, claim.digest) for claim in found] == idle
    assert await ask(catalogue).idle_claims(NOW, NOW - HOUR, None, MANY) == []
    for tenant in tenants:
        for each in (one, other):
            needed = await ask(catalogue).is_referenced(tenant, each, NOW)
            assert needed is ((tenant, each) not in idle), (tenant, each)
