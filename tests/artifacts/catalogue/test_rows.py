"""Every kind of row comes back as it was put."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from lucius_artifacts.errors import Invalid
from lucius_artifacts.model import (
    AuditRecord,
    Claim,
    Doomed,
    Entry,
    Fence,
    Hold,
    Producer,
    RunPhase,
)
from lucius_artifacts.ports.catalogue import Catalogue, Reader
from lucius_artifacts.states import BlobState, UploadState, VersionState
from tests.artifacts import rows
from tests.artifacts.catalogue.asking import MANY, ask, do, put
from tests.artifacts.rows import DIGEST, HOUR, NOW

AT = datetime(2026, 3, 1, 12, 0, 0, 123457, tzinfo=UTC)
TENANT = "größe/株式会社 🏢'\"%s:x"
CLAIM = Claim("acme", DIGEST, AT)
HOLD = Hold("job_1", "acme", DIGEST, AT)
DOOMED = Doomed("ob_1", AT, "its upload was aborted")
PRODUCER = Producer("job_1", Fence("step_01", 2**40, 2**41))
FULL_UPLOAD = rows.upload(
    UploadState.ABORTED,
    length=2**50,
    part_size=2**33,
    created_at=AT,
    expires_at=AT + HOUR,
    ended_at=AT - HOUR,
    reason="expired",
    proof_refused=True,
)
FULL_BLOB = rows.blob(
    BlobState.DELETED, length=2**50, created_at=AT, marked_by="gc_1", deleted_at=AT + HOUR
)
FULL_VERSION = rows.version(
    VersionState.TOMBSTONED,
    number=2**30,
    producer=PRODUCER,
    published_at=AT,
    tombstoned_at=AT + HOUR,
    retained_until=AT + 2 * HOUR,
    reason="superseded",
    entries=(Entry("a/ä/日本.txt", DIGEST, 0, "text/plain; charset=utf-8"), Entry("b", DIGEST, 1)),
)
RUN = rows.run(RunPhase.DONE, ended_at=AT)

Found = Callable[[Reader], Awaitable[Any]]
KINDS: dict[str, tuple[Any, Found]] = {
    "upload": (rows.upload(), lambda reader: reader.upload("up_1")),
    "full upload": (FULL_UPLOAD, lambda reader: reader.upload("up_1")),
    "blob": (rows.blob(), lambda reader: reader.blob(DIGEST)),
    "claim": (CLAIM, lambda reader: reader.claim("acme", DIGEST)),
    "full claim": (
        replace(CLAIM, object_key="ob_2"),
        lambda reader: reader.claim("acme", DIGEST),
    ),
    "version": (rows.version(), lambda reader: reader.version("acme", "answers", 1)),
    "full version": (FULL_VERSION, lambda reader: reader.version("acme", "answers", 2**30)),
    "empty version": (
        rows.version(number=5, entries=()),
        lambda r: r.version("acme", "answers", 5),
    ),
    "hold": (HOLD, lambda reader: reader.hold("job_1", DIGEST)),
    "run": (RUN, lambda reader: reader.run("gc_1")),
}


async def test_every_row_comes_back_as_it_was_put(catalogue: Catalogue) -> None:
    for kind, (row, found) in KINDS.items():
        await put(catalogue, row)
        assert await catalogue.read(found) == row, kind


async def test_what_is_not_there_is_none(catalogue: Catalogue) -> None:
    for kind, (_, found) in KINDS.items():
        assert await catalogue.read(found) is None, kind
    assert await ask(catalogue).newest_of_job("a", "b", "c") is None
    assert await ask(catalogue).current_run() is None


async def test_every_state_comes_back_as_itself(catalogue: Catalogue) -> None:
    for state in UploadState:
        await put(catalogue, rows.upload(state))
        found = await ask(catalogue).upload("up_1")
        assert found is not None
        assert found.state is state
    for phase in RunPhase:
        await put(catalogue, rows.run(phase))
        run = await ask(catalogue).run("gc_1")
        assert run is not None
        assert run.phase is phase


async def test_a_row_that_is_put_again_is_replaced(catalogue: Catalogue) -> None:
    later = replace(DOOMED, delete_after=AT + HOUR, why="swept")
    claim = replace(CLAIM, claimed_at=AT + HOUR, object_key="ob_2")
    await put(catalogue, rows.upload(), rows.blob(), rows.run(), DOOMED, CLAIM)
    await put(catalogue, FULL_UPLOAD, rows.blob(needed_at=AT), RUN, later, claim)
    assert await ask(catalogue).claim("acme", DIGEST) == claim
    assert await ask(catalogue).upload("up_1") == FULL_UPLOAD
    assert await ask(catalogue).blob(DIGEST) == rows.blob(needed_at=AT)
    assert await ask(catalogue).run("gc_1") == RUN
    assert await ask(catalogue).doomed(AT + HOUR, MANY) == [later]


async def test_a_hold_that_is_there_stays_as_it_is(catalogue: Catalogue) -> None:
    again = replace(HOLD, held_at=AT + HOUR)
    await put(catalogue, HOLD)
    await put(catalogue, again)
    await put(catalogue, again)
    assert await ask(catalogue).hold("job_1", DIGEST) == HOLD


async def test_entries_are_written_once_whatever_is_put_later(catalogue: Catalogue) -> None:
    draft = rows.version()
    published = rows.version(VersionState.PUBLISHED, published_at=AT, producer=PRODUCER)
    others = (Entry("answer.json", "0" * 64, 9, "text/plain"), Entry("other.json", DIGEST, 1))
    await put(catalogue, draft)
    await put(catalogue, replace(published, entries=others))
    found = await ask(catalogue).version("acme", "answers", 1)
    assert found == published
    await put(catalogue, replace(FULL_VERSION, number=1, entries=()))
    found = await ask(catalogue).version("acme", "answers", 1)
    assert found == replace(FULL_VERSION, number=1, entries=draft.entries)


async def test_entries_come_in_the_order_of_their_paths(catalogue: Catalogue) -> None:
    paths = ["B", "Z", "a", "a-b", "a/b", "a0", "é", "日本", "🏢"]
    entries = tuple(Entry(path, DIGEST, 1) for path in paths)
    assert paths == sorted(paths)
    await put(catalogue, rows.version(entries=entries))
    found = await ask(catalogue).version("acme", "answers", 1)
    assert found is not None
    assert found.entries == entries


async def test_tenants_and_reasons_may_be_in_any_script(catalogue: Catalogue) -> None:
    upload = rows.upload(tenant_id=TENANT, created_by=TENANT, reason=TENANT)
    version = rows.version(tenant_id=TENANT)
    record = AuditRecord(AT, TENANT, TENANT, "published", TENANT, TENANT)
    await put(catalogue, upload, version, Claim(TENANT, DIGEST, AT), record)
    assert await ask(catalogue).upload("up_1") == upload
    assert await ask(catalogue).open_uploads(TENANT) == 1
    assert await ask(catalogue).version(TENANT, "answers", 1) == version
    assert await ask(catalogue).claim(TENANT, DIGEST) is not None
    assert await ask(catalogue).claim(TENANT.upper(), DIGEST) is None
    assert await ask(catalogue).audit(TENANT, MANY) == [record]


async def test_times_are_kept_to_the_microsecond_and_given_in_utc(catalogue: Catalogue) -> None:
    tokyo = AT.astimezone(timezone(timedelta(hours=9)))
    for at in (
        AT,
        AT + timedelta(microseconds=1),
        tokyo,
        datetime(2199, 12, 31, 23, 59, 59, 999999, UTC),
    ):
        await put(catalogue, rows.upload(expires_at=at, ended_at=at))
        found = await ask(catalogue).upload("up_1")
        assert found is not None
        assert (found.expires_at, found.ended_at) == (at, at)


async def test_what_is_dropped_is_gone_and_nothing_else(catalogue: Catalogue) -> None:
    other = "0" * 64
    claims = [Claim(tenant, each, AT) for tenant in "abc" for each in (DIGEST, other)]
    holds = [Hold(job, "acme", each, AT) for job in ("job_1", "job_2") for each in (DIGEST, other)]
    await put(catalogue, *claims, *holds, DOOMED, replace(DOOMED, object_key="ob_2"))
    await do(catalogue).drop_claim("a", DIGEST)
    assert await ask(catalogue).claim("a", DIGEST) is None
    assert len(await ask(catalogue).claims(DIGEST)) == 2
    await do(catalogue).drop_claims(DIGEST)
    assert await ask(catalogue).claims(DIGEST) == []
    assert len(await ask(catalogue).claims(other)) == 3
    await do(catalogue).drop_holds("job_1")
    assert await ask(catalogue).hold("job_1", other) is None
    assert await ask(catalogue).hold("job_2", other) is not None
    await do(catalogue).drop_doomed("ob_1")
    (left,) = await ask(catalogue).doomed(AT, MANY)
    assert left.object_key == "ob_2"


async def test_dropping_what_is_not_there_is_nothing(catalogue: Catalogue) -> None:
    for _ in range(2):
        await do(catalogue).drop_claim("a", DIGEST)
        await do(catalogue).drop_claims(DIGEST)
        await do(catalogue).drop_holds("job_1")
        await do(catalogue).drop_doomed("ob_1")


@pytest.mark.parametrize("text", ["a\0b", "half \ud800"])
async def test_text_that_a_database_cannot_keep_is_refused_by_all(
    catalogue: Catalogue, text: str
) -> None:
    entries = (Entry(text, DIGEST, 1),)
    unstorable = {
        "reason": rows.upload(reason=text),
        "tenant_id": Claim(text, DIGEST, AT),
        "detail": AuditRecord(NOW, "ann", None, "published", "s", text),
        "path": rows.version(entries=entries),
        "job_id": rows.version(producer=Producer(text, Fence("step_01", 1, 1))),
        "step_id": rows.version(producer=Producer("job_1", Fence(text, 1, 1))),
    }
    for field, row in unstorable.items():
        with pytest.raises(Invalid) as refused:
            await put(catalogue, rows.upload(), row)
        assert refused.value.field == field
        assert await ask(catalogue).upload("up_1") is None


async def test_what_no_row_can_hold_is_not_found_or_invalid(catalogue: Catalogue) -> None:
    asked: list[Found] = [
        lambda reader: reader.upload("a\0b"),
        lambda reader: reader.upload("half \ud800"),
        lambda reader: reader.version("acme", "answers", 2**80),
    ]
    await put(catalogue, rows.version())
    for question in asked:
        with suppress(Invalid):
            assert await catalogue.read(question) is None
    assert await ask(catalogue).latest_number("acme", "answers") == 1
