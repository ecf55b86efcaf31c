"""Every adapter is in this suite, can be checked, closed, and opened again."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from lucius_artifacts.errors import Unavailable
from lucius_artifacts.ports.catalogue import Catalogue, Transaction
from tests.artifacts import rows
from tests.artifacts.catalogue.asking import ask, message, put
from tests.artifacts.catalogue.backends import (
    Backend,
    Told,
    adapters_in_the_suite,
    adapters_in_the_tree,
)
from tests.runner.deadlines import DEADLINE


def test_every_adapter_is_in_this_suite() -> None:
    assert adapters_in_the_tree() == adapters_in_the_suite()


async def test_a_catalogue_that_can_be_used_passes_its_check(catalogue: Catalogue) -> None:
    await catalogue.check()
    await put(catalogue, rows.upload())
    await catalogue.check()


async def test_a_catalogue_may_be_closed_twice_and_by_two_at_once(catalogue: Catalogue) -> None:
    await put(catalogue, rows.upload())
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(catalogue.close(), catalogue.close())
    await catalogue.close()


VERBS: dict[str, Callable[[Catalogue], Awaitable[object]]] = {
    "change": lambda catalogue: put(catalogue, rows.upload()),
    "read": lambda catalogue: ask(catalogue).upload("up_1"),
    "check": lambda catalogue: catalogue.check(),
}


async def test_a_closed_catalogue_is_unavailable_at_once(catalogue: Catalogue) -> None:
    await catalogue.close()
    for verb in VERBS.values():
        async with asyncio.timeout(DEADLINE):
            with pytest.raises(Unavailable):
                await verb(catalogue)


async def test_a_catalogue_is_closed_when_the_change_under_way_has_ended(
    catalogue: Catalogue, backend: Backend
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(transaction: Transaction) -> None:
        begun.set()
        await go_on.wait()
        await transaction.put_upload(rows.upload())

    change = asyncio.create_task(catalogue.change(slowly))
    await begun.wait()
    closing = asyncio.create_task(catalogue.close())
    await asyncio.sleep(0)
    go_on.set()
    async with asyncio.timeout(DEADLINE):
        ended = await asyncio.gather(change, closing, return_exceptions=True)
    found = await (await backend.reopen()).read(lambda reader: reader.upload("up_1"))
    assert list(ended) == [None, None]
    assert found == rows.upload()


async def test_what_was_changed_is_there_when_the_store_is_opened_again(backend: Backend) -> None:
    await put(backend.catalogue, rows.upload(), rows.blob(), rows.version(), message())
    await backend.catalogue.close()
    catalogue = await backend.reopen()
    await catalogue.check()
    assert await ask(catalogue).upload("up_1") == rows.upload()
    assert await ask(catalogue).blob(rows.DIGEST) == rows.blob()
    found = await ask(catalogue).version("acme", "answers", 1)
    assert found == rows.version()
    assert await backend.told() == [Told("happened", None)]


async def test_two_catalogues_on_one_store_see_what_the_other_has_changed(backend: Backend) -> None:
    one, other = backend.catalogue, await backend.reopen()
    await put(one, rows.upload())
    assert await ask(other).upload("up_1") == rows.upload()
    await put(other, rows.upload(reason="by the other"))
    assert await ask(one).upload("up_1") == rows.upload(reason="by the other")
    await other.close()
    await one.check()
    await put(one, rows.blob())
