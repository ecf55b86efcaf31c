"""Transactions that meet end as if one had come after the other."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from lucius_artifacts.model import Claim, Hold, RunPhase
from lucius_artifacts.ports.catalogue import Catalogue, Transaction
from lucius_artifacts.states import BlobState, UploadState
from tests.artifacts import rows
from tests.artifacts.catalogue.asking import (
    MANY,
    Meeting,
    ask,
    blob,
    digest,
    message,
    put,
    version_of,
)
from tests.artifacts.catalogue.backends import Backend, Told
from tests.artifacts.rows import DIGEST, NOW
from tests.runner.deadlines import seconds

T = TypeVar("T")
Pair = tuple[Catalogue, Catalogue]
Work = Callable[[Transaction], Awaitable[T]]


@pytest.fixture(params=["one catalogue", "two catalogues"])
async def pair(request: pytest.FixtureRequest, backend: Backend) -> Pair:
    one = backend.catalogue
    return one, one if request.param == "one catalogue" else await backend.reopen()


@pytest.fixture
def meet(backend: Backend) -> Meeting:
    return Meeting(backend)


async def together(pair: Pair, one: Work[T], two: Work[T]) -> list[T]:
    async with asyncio.timeout(seconds(60)):
        return list(await asyncio.gather(pair[0].change(one), pair[1].change(two)))


async def test_two_that_each_read_what_the_other_writes_do_not_both_go_on(
    pair: Pair, meet: Meeting
) -> None:
    """Each ends its own upload if the other one is open: one must stay open."""
    await put(pair[0], rows.upload(upload_id="a"), rows.upload(upload_id="b"))

    def end_unless_alone(mine: str, other: str) -> Work[bool]:
        async def work(transaction: Transaction) -> bool:
            upload = await transaction.upload(other)
            await meet()
            if upload is None or not upload.is_open:
                return False
            await transaction.put_upload(rows.upload(UploadState.ABORTED, upload_id=mine))
            return True

        return work

    ended = await together(pair, end_unless_alone("a", "b"), end_unless_alone("b", "a"))
    assert sorted(ended) == [False, True]
    assert await ask(pair[0]).open_uploads("acme") == 1


async def test_a_limit_that_two_found_free_is_kept(pair: Pair, meet: Meeting) -> None:
    def open_the_only_one(upload_id: str) -> Work[bool]:
        async def work(transaction: Transaction) -> bool:
            count = await transaction.open_uploads("acme")
            await meet()
            if count:
                return False
            await transaction.put_upload(rows.upload(upload_id=upload_id))
            return True

        return work

    opened = await together(pair, open_the_only_one("a"), open_the_only_one("b"))
    assert sorted(opened) == [False, True]
    assert await ask(pair[0]).open_uploads("acme") == 1


def publish(content: str, meet: Callable[[], Awaitable[None]]) -> Work[int]:
    async def work(transaction: Transaction) -> int:
        number = await transaction.latest_number("acme", "answers") + 1
        await meet()
        await transaction.put_version(version_of(digest(content), number=number))
        await transaction.emit(message(key=f"v{number}", payload=content))
        return number

    return work


async def test_two_publications_that_found_the_same_number_get_two(
    backend: Backend, pair: Pair, meet: Meeting
) -> None:
    numbers = await together(pair, publish("one", meet), publish("two", meet))
    assert sorted(numbers) == [1, 2]
    for number, content in zip(numbers, ("one", "two"), strict=True):
        found = await ask(pair[0]).version("acme", "answers", number)
        assert found == version_of(digest(content), number=number)
    assert sorted(told.payload for told in await backend.told()) == ["one", "two"]


async def test_a_crowd_that_publishes_gets_a_number_each(pair: Pair) -> None:
    works = [publish(f"{n}", lambda: asyncio.sleep(0)) for n in range(8)]
    async with asyncio.timeout(seconds(60)):
        numbers = await asyncio.gather(*(pair[n % 2].change(work) for n, work in enumerate(works)))
    assert sorted(numbers) == list(range(1, 9))


async def refers(transaction: Transaction) -> bool:
    return bool(await transaction.references(DIGEST, NOW))


async def is_not_idle(transaction: Transaction) -> bool:
    return not await transaction.idle_blobs(NOW, NOW, None, MANY)


async def is_marked(transaction: Transaction) -> bool:
    return bool((await transaction.mark("gc_1", NOW, None, MANY)).marked)


NEEDS = {
    "version": rows.version(),
    "job": Hold("job_1", "acme", DIGEST, NOW),
    "upload": rows.upload(),
}


@pytest.mark.parametrize("is_needed", [refers, is_not_idle, is_marked])
@pytest.mark.parametrize("need", NEEDS)
async def test_no_blob_is_deleted_that_somebody_begins_to_need(
    backend: Backend, meet: Meeting, is_needed: Work[bool], need: str
) -> None:
    await put(backend.catalogue, rows.blob())

    async def sweep(transaction: Transaction) -> bool:
        needed = await is_needed(transaction)
        await meet()
        if needed:
            return False
        await transaction.put_blob(rows.blob(BlobState.DELETED))
        return True

    async def begin_to_need(transaction: Transaction) -> bool:
        there = await transaction.blob(DIGEST)
        await meet()
        if there is None:
            return False
        await getattr(transaction, f"put_{_verb(need)}")(NEEDS[need])
        return True

    pair = (backend.catalogue, await backend.reopen())
    done = await together(pair, sweep, begin_to_need)
    assert sorted(done) == [False, True]
    is_there = await ask(backend.catalogue).blob(DIGEST) is not None
    assert bool(await ask(backend.catalogue).references(DIGEST, NOW)) == is_there


def _verb(need: str) -> str:
    return "hold" if need == "job" else need


async def test_of_two_that_bring_the_same_content_one_makes_the_blob(
    pair: Pair, meet: Meeting
) -> None:
    def bring(object_key: str) -> Work[str]:
        async def work(transaction: Transaction) -> str:
            there = await transaction.blob(DIGEST)
            await meet()
            if there is None:
                await transaction.put_blob(blob(DIGEST, object_key=object_key))
            return there.object_key if there else object_key

        return work

    one, two = await together(pair, bring("ob_1"), bring("ob_2"))
    assert one == two
    assert await ask(pair[0]).blob(DIGEST) == blob(DIGEST, object_key=one)


async def test_of_two_collections_that_begin_at_once_one_is_current(
    pair: Pair, meet: Meeting
) -> None:
    def begin(run_id: str) -> Work[str]:
        async def work(transaction: Transaction) -> str:
            current = await transaction.current_run()
            await meet()
            if current is None:
                await transaction.put_run(rows.run(RunPhase.MARKING, run_id=run_id))
            return current.run_id if current else run_id

        return work

    one, two = await together(pair, begin("gc_1"), begin("gc_2"))
    assert one == two
    assert await ask(pair[0]).current_run() == rows.run(RunPhase.MARKING, run_id=one)


async def test_a_message_that_two_emit_is_there_once(
    backend: Backend, pair: Pair, meet: Meeting
) -> None:
    async def tell(transaction: Transaction) -> None:
        await transaction.upload("up_1")
        await meet()
        await transaction.emit(message(key="a"))

    await together(pair, tell, tell)
    assert await backend.told() == [Told("happened", None)]


async def test_a_claim_and_a_hold_that_two_put_are_there_once(pair: Pair, meet: Meeting) -> None:
    async def need(transaction: Transaction) -> None:
        await transaction.hold("job_1", DIGEST)
        await meet()
        await transaction.put_hold(Hold("job_1", "acme", DIGEST, NOW))
        await transaction.put_claim(Claim("acme", DIGEST, NOW))

    await together(pair, need, need)
    assert len(await ask(pair[0]).references(DIGEST, NOW)) == 1
    assert len(await ask(pair[0]).claims(DIGEST)) == 1
