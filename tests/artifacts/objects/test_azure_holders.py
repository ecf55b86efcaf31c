"""What the address of a part allows besides, and why nothing of it matters."""

import pytest

from lucius_artifacts.errors import NotFound, Unavailable
from lucius_artifacts.objects.azure_blob import AzureBlobObjects
from tests.artifacts.objects.azure import holder, is_copy, names_in
from tests.artifacts.objects.stages import KEY, content_of, frozen, put, soon, web
from tests.azure_proxy import Asked, Met, Refusal, StorageProxy


async def test_it_does_not_read_delete_or_tag(direct: AzureBlobObjects) -> None:
    await direct.begin(KEY)
    await put(direct, 1, b"one")
    somebody = await holder(direct)
    tags = b"<Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>"
    for answer in (
        await somebody.ask("GET"),
        await somebody.ask("DELETE"),
        await somebody.ask("PUT", "comp=tags", tags),
    ):
        assert answer.status_code == 403
    assert await direct.parts(KEY) == {1: 3}


async def test_it_breaks_leases_so_no_lease_could_freeze(direct: AzureBlobObjects) -> None:
    """If this fails, a simpler way to freeze has become possible."""
    await direct.begin(KEY)
    somebody = await holder(direct)
    assert (await somebody.take_it_for_ever()).is_success
    assert (await somebody.put_blob(b"evil")).status_code == 412
    assert (await somebody.break_lease()).is_success
    assert (await somebody.put_blob(b"evil")).is_success


async def test_it_does_not_change_a_frozen_object(direct: AzureBlobObjects) -> None:
    content = await frozen(direct, b"one", b"two")
    somebody = await holder(direct)
    assert (await somebody.put_blob(b"evil")).is_success
    committed = await somebody.ask("PUT", "comp=blocklist", b"<BlockList></BlockList>")
    assert committed.is_success
    assert (await somebody.take_it_for_ever()).is_success
    assert await content_of(direct) == content
    assert await direct.parts(KEY) == {1: 3, 2: 3}
    await direct.freeze(KEY, 2)
    assert await content_of(direct) == content
    await direct.delete(KEY)
    assert await names_in(direct) == []


async def test_it_is_of_another_name_than_the_object(direct: AzureBlobObjects) -> None:
    content = await frozen(direct, b"one")
    somebody = await holder(direct)
    somebody.blob = somebody.blob.replace("/staging/", "/objects/")
    assert (await somebody.put_blob(b"evil")).status_code == 403
    assert (await somebody.break_lease()).status_code == 403
    assert await content_of(direct) == content


async def test_a_lease_holds_up_neither_freezing_nor_deleting(direct: AzureBlobObjects) -> None:
    await direct.begin(KEY)
    await put(direct, 1, b"one")
    assert (await (await holder(direct)).take_it_for_ever()).is_success
    await direct.freeze(KEY, 1)
    assert await content_of(direct) == b"one"
    await direct.begin(KEY)
    assert (await (await holder(direct)).take_it_for_ever()).is_success
    await direct.delete(KEY)
    assert await names_in(direct) == []


async def test_who_takes_leases_all_the_time_does_not_keep_us_for_ever(
    proxied: AzureBlobObjects, proxy: StorageProxy
) -> None:
    await proxied.begin(KEY)
    await put(proxied, 1, b"one")
    proxy.all_meet(Refusal(412, "LeaseIdMissing"), lambda asked: "comp=blocklist" in asked.path)
    for attempt in (proxied.freeze(KEY, 1), proxied.delete(KEY)):
        with pytest.raises(Unavailable):
            await attempt


@pytest.mark.parametrize("kind", ["AppendBlob", "BlockBlob"])
async def test_another_blob_in_place_of_the_parts_is_as_if_they_were_missing(
    direct: AzureBlobObjects, kind: str
) -> None:
    await direct.begin(KEY)
    somebody = await holder(direct)
    assert (await somebody.put_blob(b"" if kind == "AppendBlob" else b"one", kind)).is_success
    assert (await somebody.ask("PUT", "comp=snapshot")).is_success
    with pytest.raises(NotFound):
        await direct.freeze(KEY, 1)
    await direct.delete(KEY)
    assert await names_in(direct) == []


async def test_what_is_copied_is_what_was_committed(
    proxied: AzureBlobObjects, direct: AzureBlobObjects, proxy: StorageProxy
) -> None:
    """Else a header that somebody sets meanwhile would show a reader other bytes than those that
    were verified."""
    await proxied.begin(KEY)
    await put(proxied, 1, b"one")
    somebody = await holder(direct)
    times = iter(range(2))

    async def meddle(asked: Asked) -> Met:
        if is_copy(asked) and next(times, None) is not None:
            done = await somebody.ask("PUT", "comp=properties", x_ms_blob_content_encoding="gzip")
            assert done.is_success
        return None

    proxy.rule = meddle
    await proxied.freeze(KEY, 1)
    assert len([asked for asked in proxy.asked if is_copy(asked)]) == 3
    address = await direct.sign_read(KEY, soon(), "text/plain", "a.txt")
    async with web() as client:
        answer = await client.get(address.url)
    assert answer.content == b"one"
    assert "Content-Encoding" not in answer.headers


async def test_blocks_with_foreign_names_are_no_parts(direct: AzureBlobObjects) -> None:
    await direct.begin(KEY)
    await put(direct, 1, b"one")
    somebody = await holder(direct)
    for name in ("cGFydC0wMDAwYQ%3D%3D", "%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2Fw%3D%3D"):
        assert (await somebody.ask("PUT", f"comp=block&blockid={name}", b"x")).is_success
    assert await direct.parts(KEY) == {1: 3}
    await direct.freeze(KEY, 1)
    assert await content_of(direct) == b"one"


async def test_blocks_that_came_late_are_deleted_with_the_rest(direct: AzureBlobObjects) -> None:
    await frozen(direct, b"one")
    somebody = await holder(direct)
    late = await somebody.ask("PUT", "comp=block&blockid=cGFydC0wMDAwMQ%3D%3D", b"new")
    assert late.is_success
    assert len(await names_in(direct)) == 2
    await direct.delete(KEY)
    assert await names_in(direct) == []
