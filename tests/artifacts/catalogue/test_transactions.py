"""All or nothing, and one moment for every reader."""

import asyncio

import pytest

from lucius_artifacts.errors import Refused, Unavailable
from lucius_artifacts.model import AuditRecord, Claim, Doomed, Hold, RunPhase
from lucius_artifacts.ports.catalogue import Catalogue, Reader, Transaction
from lucius_artifacts.states import BlobState
from lucius_outbox import InvalidMessage
from tests.artifacts import rows
from tests.artifacts.catalogue.asking import MANY, ask, blob, message, put, put_in
from tests.artifacts.catalogue.backends import Backend, Told
from tests.artifacts.rows import DIGEST, NOW
from tests.runner.deadlines import DEADLINE

RECORD = AuditRecord(NOW, "ann", "acme", "published", "answers/v1")
EVERYTHING = (
    rows.upload(),
    rows.blob(),
    Claim("acme", DIGEST, NOW),
    rows.version(),
    Hold("job_1", "acme", DIGEST, NOW),
    Doomed("ob_2", NOW, "swept"),
    rows.run(),
    RECORD,
    message(),
    message(key="a"),
)


async def view(catalogue: Catalogue) -> list[object]:
    """Every kind of row, as one moment saw it."""

    async def look(reader: Reader) -> list[object]:
        return [
            await reader.upload("up_1"),
            await reader.blob(DIGEST),
            await reader.claim("acme", DIGEST),
            await reader.version("acme", "answers", 1),
            await reader.hold("job_1", DIGEST),
            await reader.doomed(NOW, MANY),
            await reader.run("gc_1"),
            await reader.audit("answers/v1", MANY),
            await reader.references(DIGEST, NOW),
            await reader.stats(),
        ]

    return await catalogue.read(look)


async def write_and_raise(transaction: Transaction, error: BaseException) -> None:
    await put_in(transaction, *EVERYTHING)
    raise error


@pytest.mark.parametrize("error", [Refused("no"), Unavailable("away"), ZeroDivisionError("oh")])
async def test_whatever_the_work_raises_takes_everything_back_and_passes_through(
    backend: Backend, error: Exception
) -> None:
    before = await view(backend.catalogue)
    with pytest.raises(type(error)) as raised:
        await backend.catalogue.change(lambda transaction: write_and_raise(transaction, error))
    assert raised.value is error
    assert await view(backend.catalogue) == before
    assert await backend.told() == []
    await put(backend.catalogue, *EVERYTHING)
    assert await view(backend.catalogue) != before
    assert await backend.told() == [Told("happened", None)] * 2


async def test_rows_that_were_there_are_as_before_when_the_work_raises(backend: Backend) -> None:
    catalogue = backend.catalogue
    await put(catalogue, *EVERYTHING)
    before = await view(catalogue)

    async def upset(transaction: Transaction) -> None:
        gone = rows.blob(BlobState.DELETED)
        await put_in(transaction, rows.upload(reason="x"), gone, blob(DIGEST, object_key="ob_9"))
        await put_in(transaction, rows.version(reason="x"), rows.run(RunPhase.DONE))
        await transaction.drop_claims(DIGEST)
        await transaction.drop_claim("acme", DIGEST)
        await transaction.drop_holds("job_1")
        await transaction.drop_doomed("ob_2")
        await transaction.mark("gc_1", NOW, None, MANY)
        raise Refused("no")

    with pytest.raises(Refused):
        await catalogue.change(upset)
    assert await view(catalogue) == before
    assert await ask(catalogue).current_run() == rows.run()


async def test_a_transaction_reads_what_it_wrote(catalogue: Catalogue) -> None:
    async def write_and_read(t: Transaction) -> None:
        await put_in(t, rows.upload(), rows.blob(), rows.version(number=7), rows.run())
        await put_in(t, Claim("acme", DIGEST, NOW), Hold("job_1", "acme", DIGEST, NOW), RECORD)
        assert await t.upload("up_1") == rows.upload()
        assert await t.open_uploads("acme") == 1
        assert await t.blob(DIGEST) == rows.blob()
        assert await t.latest_number("acme", "answers") == 7
        assert await t.versions("acme", "answers", None, MANY) == [rows.version(number=7)]
        assert await t.claims(DIGEST) == [Claim("acme", DIGEST, NOW)]
        assert len(await t.references(DIGEST, NOW)) == 3
        assert await t.current_run() == rows.run()
        assert await t.audit("answers/v1", MANY) == [RECORD]
        await t.drop_holds("job_1")
        assert await t.held_jobs(None, MANY) == []
        await t.put_blob(rows.blob(BlobState.DELETED))
        assert await t.blob(DIGEST) is None
        await t.put_blob(rows.blob(object_key="ob_2"))
        assert await t.blob(DIGEST) == rows.blob(object_key="ob_2")

    await catalogue.change(write_and_read)
    assert await ask(catalogue).blob(DIGEST) == rows.blob(object_key="ob_2")


async def test_a_change_returns_what_the_work_returns(catalogue: Catalogue) -> None:
    async def answer(_: object) -> str:
        return "an answer"

    assert await catalogue.change(answer) == "an answer"
    assert await catalogue.read(answer) == "an answer"


async def test_a_reader_sees_one_moment(backend: Backend) -> None:
    """A change that comes in the middle is seen wholly or not at all, also by two statements."""
    catalogue = backend.catalogue
    await put(catalogue, rows.upload(), rows.version(reason="before"))
    changing: list[asyncio.Task[None]] = []

    async def read_twice(reader: Reader) -> tuple[object, object]:
        upload = await reader.upload("up_1")
        rest = (rows.upload(reason="after"), rows.version(reason="after"))
        changing.append(asyncio.create_task(put(catalogue, *rest)))
        await asyncio.wait(changing, timeout=DEADLINE if backend.side_by_side else 0.05)
        version = await reader.version("acme", "answers", 1)
        return upload and upload.reason, version and version.reason

    assert await catalogue.read(read_twice) == (None, "before")
    await changing[0]
    assert await ask(catalogue).upload("up_1") == rows.upload(reason="after")


async def test_nobody_reads_what_is_not_committed(database: Backend) -> None:
    """Nor does a reader wait for a writer."""
    other = await database.reopen()
    written, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(transaction: Transaction) -> None:
        await transaction.put_upload(rows.upload())
        written.set()
        await go_on.wait()

    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(database.catalogue.change(slowly))
        await written.wait()
        for catalogue in (database.catalogue, other):
            assert await ask(catalogue).upload("up_1") is None
            await catalogue.check()
        go_on.set()
    assert await ask(other).upload("up_1") == rows.upload()


UNIQUE: dict[str, tuple[object, object]] = {
    "digest": (rows.blob(), rows.blob(BlobState.TOMBSTONED, object_key="ob_2")),
    "run": (rows.run(RunPhase.MARKING), rows.run(RunPhase.SWEEPING, run_id="gc_2")),
}


@pytest.mark.parametrize("kind", UNIQUE)
async def test_there_is_one_blob_of_a_digest_and_one_current_run(
    impatient: Catalogue, kind: str
) -> None:
    one, two = UNIQUE[kind]
    await put(impatient, one)
    with pytest.raises(Unavailable):
        await put(impatient, rows.upload(), two)
    with pytest.raises(Unavailable):
        await put(impatient, two, one)
    assert await ask(impatient).upload("up_1") is None
    found = await ask(impatient).stats()
    assert sum(each.count for each in found.blobs) == (kind == "digest")
    await put(impatient, one)


async def test_a_digest_and_a_run_make_room_when_they_have_ended(catalogue: Catalogue) -> None:
    gone = rows.blob(BlobState.DELETED)
    await put(catalogue, rows.blob(), rows.run())
    await put(catalogue, gone, rows.blob(object_key="ob_2"))
    await put(catalogue, rows.run(RunPhase.ABANDONED), rows.run(run_id="gc_2"))
    assert await ask(catalogue).blob(DIGEST) == rows.blob(object_key="ob_2")
    assert await ask(catalogue).current_run() == rows.run(run_id="gc_2")
    await put(catalogue, rows.blob(BlobState.DELETED, object_key="ob_2"))
    assert await ask(catalogue).blob(DIGEST) is None
    deleted = await ask(catalogue).blobs_in(BlobState.DELETED, None, MANY)
    assert [each.object_key for each in deleted] == ["ob_1", "ob_2"]


@pytest.mark.parametrize("kind", UNIQUE)
async def test_a_statement_that_failed_fails_the_change_even_if_the_work_goes_on(
    impatient: Catalogue, kind: str
) -> None:
    one, two = UNIQUE[kind]
    await put(impatient, one)

    async def shrug(transaction: Transaction) -> None:
        await transaction.put_upload(rows.upload())
        with pytest.raises(Unavailable):
            await put_in(transaction, two)

    with pytest.raises(Unavailable):
        await impatient.change(shrug)
    assert await ask(impatient).upload("up_1") is None


async def test_a_message_that_is_no_message_is_refused(backend: Backend) -> None:
    with pytest.raises(InvalidMessage):
        await put(backend.catalogue, rows.upload(), message(topic=""))
    assert await ask(backend.catalogue).upload("up_1") is None


async def test_messages_are_told_in_order_and_a_dedupe_key_once(backend: Backend) -> None:
    one, two = message("made", "a", {"n": 1}), message("made", "b", {"ü": [1, None]})
    await put(backend.catalogue, one, one, two)
    again = message("made", "a", {"n": 9})
    elsewhere = message("gone", "a", {"n": 3})
    await put(backend.catalogue, again, elsewhere, message(), message())
    assert await backend.told() == [
        Told("made", {"n": 1}),
        Told("made", {"ü": [1, None]}),
        Told("gone", {"n": 3}),
        Told("happened", None),
        Told("happened", None),
    ]


async def test_a_dedupe_key_that_was_taken_back_is_free(backend: Backend) -> None:
    async def tell_and_raise(transaction: Transaction) -> None:
        await transaction.emit(message(key="a", payload=1))
        raise Refused("no")

    with pytest.raises(Refused):
        await backend.catalogue.change(tell_and_raise)
    await put(backend.catalogue, message(key="a", payload=2))
    assert await backend.told() == [Told("happened", 2)]
