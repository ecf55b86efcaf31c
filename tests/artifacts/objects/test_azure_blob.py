"""Objects as blobs: crashes between requests, answers that are lost, copies that take long."""

from contextlib import suppress
from datetime import timedelta
from itertools import count

import pytest

from lucius_artifacts.errors import NotFound, Unavailable
from lucius_artifacts.objects.azure_blob import AzureBlobObjects
from lucius_azure.storage import StorageAccount, open_blobs
from lucius_settings.secret import Secret
from tests.artifacts.objects.azure import CopyStatus, is_copy, names_in
from tests.artifacts.objects.stages import KEY, chunks, content_of, put, soon
from tests.azure_proxy import Asked, Fault, Met, Refusal, StorageProxy
from tests.azurite import Azurite

STEPS = 4  # of freezing: commit, copy, and two that remove the place
ACME = "DefaultEndpointsProtocol=https;AccountName=acme;EndpointSuffix=core.windows.net;"


async def test_whatever_request_a_process_dies_after_the_next_one_freezes(
    proxied: AzureBlobObjects, direct: AzureBlobObjects, proxy: StorageProxy
) -> None:
    for passing in range(STEPS):
        key = f"crash{passing}"
        await direct.begin(key)
        await put(direct, 1, b"one", key)
        await put(direct, 2, b"two", key)
        proxy.let_pass(passing)
        with pytest.raises(Unavailable):
            await proxied.freeze(key, 2)
        assert await direct.parts(key) == {1: 3, 2: 3}
        await direct.freeze(key, 2)
        assert await content_of(direct, key) == b"onetwo"
    assert await names_in(direct) == [f"objects/crash{passing}" for passing in range(STEPS)]


async def test_whatever_answer_is_lost_the_next_try_freezes(
    proxied: AzureBlobObjects, direct: AzureBlobObjects, proxy: StorageProxy
) -> None:
    for lost in range(STEPS):
        key = f"lost{lost}"
        await direct.begin(key)
        await put(direct, 1, b"one", key)
        proxy.writes_meet(*[None] * lost, Fault.LOST)
        with suppress(Unavailable):  # or the HTTP client asks again by itself
            await proxied.freeze(key, 1)
        await proxied.freeze(key, 1)
        assert await content_of(direct, key) == b"one"


async def test_whenever_a_place_becomes_an_object_while_it_is_deleted_it_is_deleted(
    proxied: AzureBlobObjects, direct: AzureBlobObjects, proxy: StorageProxy
) -> None:
    for step in range(4):
        key = f"deleted{step}"
        await direct.begin(key)
        await put(direct, 1, b"one", key)
        await _delete_with_a_freeze_at(step, key, proxied, direct, proxy)
        with pytest.raises(NotFound):
            await content_of(direct, key)
    assert await names_in(direct) == []


async def _delete_with_a_freeze_at(
    step: int, key: str, proxied: AzureBlobObjects, direct: AzureBlobObjects, proxy: StorageProxy
) -> None:
    requests = count()

    async def freeze(asked: Asked) -> Met:
        if next(requests) == step:
            with suppress(NotFound):
                await direct.freeze(key, 1)
        return None

    proxy.rule = freeze
    await proxied.delete(key)
    proxy.all_meet(None)


async def _commit_and_copy(objects: AzureBlobObjects, proxy: StorageProxy) -> None:
    """As a process that died before it removed the place."""
    await objects.begin(KEY)
    await put(objects, 1, b"one")
    proxy.let_pass(2)
    with pytest.raises(Unavailable):
        await objects.freeze(KEY, 1)
    proxy.all_meet(None)


async def test_a_copy_that_takes_long_is_no_object_yet(
    proxied: AzureBlobObjects, direct: AzureBlobObjects, proxy: StorageProxy, copies: CopyStatus
) -> None:
    await _commit_and_copy(proxied, proxy)
    copies.told = ["pending"]
    with pytest.raises(Unavailable, match="still being copied"):
        await proxied.freeze(KEY, 1)
    copies.told = ["pending"]
    with pytest.raises(NotFound):
        await content_of(proxied)
    copies.told = ["pending"]
    assert await proxied.parts(KEY) == {1: 3}
    await proxied.freeze(KEY, 1)
    assert await content_of(direct) == b"one"


async def test_a_copy_that_takes_a_moment_is_waited_for(
    azure_storage: Azurite, direct: AzureBlobObjects, copies: CopyStatus
) -> None:
    account = StorageAccount(Secret(azure_storage.connection))
    container = direct._container.container_name
    objects = AzureBlobObjects(open_blobs(account, raw_response_hook=copies), container)
    await objects.begin(KEY)
    await put(objects, 1, b"one")
    copies.told = ["pending"]
    await objects.freeze(KEY, 1)
    assert copies.told == []
    assert await content_of(objects) == b"one"
    await objects.close()


@pytest.mark.parametrize("status", ["failed", "aborted"])
async def test_a_copy_that_came_to_nothing_is_made_again(
    proxied: AzureBlobObjects,
    direct: AzureBlobObjects,
    proxy: StorageProxy,
    copies: CopyStatus,
    status: str,
) -> None:
    await _commit_and_copy(proxied, proxy)
    copies.told = [status]
    await proxied.freeze(KEY, 1)
    assert len([asked for asked in proxy.asked if is_copy(asked)]) == 2
    assert await content_of(direct) == b"one"


async def test_a_copy_that_is_under_way_can_be_deleted(
    proxied: AzureBlobObjects, proxy: StorageProxy, copies: CopyStatus
) -> None:
    await _commit_and_copy(proxied, proxy)
    copies.told = ["pending"]
    await proxied.delete(KEY)
    assert [asked for asked in proxy.asked if "comp=copy" in asked.path]
    assert await names_in(proxied) == []


@pytest.mark.parametrize("fault", [Fault.DROPPED, Refusal(500), Refusal(403), Refusal(503)])
async def test_a_service_that_fails_is_unavailable(
    proxied: AzureBlobObjects, proxy: StorageProxy, fault: Met
) -> None:
    proxy.all_meet(fault)
    for attempt in (
        proxied.check(),
        proxied.begin(KEY),
        proxied.parts(KEY),
        proxied.freeze(KEY, 1),
        proxied.delete(KEY),
        content_of(proxied),
        put(proxied, 1, b"one"),
    ):
        with pytest.raises(Unavailable, match="Azure Blob Storage"):
            await attempt


async def test_a_part_whose_request_fails_leaves_the_one_before(
    proxied: AzureBlobObjects, proxy: StorageProxy
) -> None:
    await proxied.begin(KEY)
    await put(proxied, 1, b"one")
    proxy.writes_meet(Fault.DROPPED)
    with pytest.raises(Unavailable):
        await proxied.put_part(KEY, 1, 300_000, chunks(b"x" * 300_000))
    assert await proxied.parts(KEY) == {1: 3}


async def test_a_container_that_is_missing_is_unavailable(azure_storage: Azurite) -> None:
    account = StorageAccount(Secret(azure_storage.connection))
    objects = AzureBlobObjects(open_blobs(account, retry_total=0), "missing")
    for attempt in (objects.check(), objects.parts(KEY), content_of(objects), objects.delete(KEY)):
        with pytest.raises(Unavailable, match="ContainerNotFound"):
            await attempt
    await objects.close()


async def test_a_container_that_is_there_is_used(azure_storage: Azurite) -> None:
    account = StorageAccount(Secret(azure_storage.connection))
    for _ in range(2):
        objects = await AzureBlobObjects.open(account, "opened-twice", patience=timedelta())
        await objects.check()
        await objects.close()


async def test_an_account_that_was_opened_with_a_signature_cannot_sign() -> None:
    endpoint = "BlobEndpoint=https://acme.blob.core.windows.net"
    account = StorageAccount(Secret(f"{endpoint};SharedAccessSignature=sv=1&sig=x"))
    with pytest.raises(ValueError, match="cannot be signed with a signature"):
        await AzureBlobObjects.open(account, "objects")


async def test_addresses_are_for_https_unless_the_account_is_not(direct: AzureBlobObjects) -> None:
    account = StorageAccount(Secret(f"{ACME}AccountKey=a2V5"))
    secure = AzureBlobObjects(open_blobs(account), "objects")
    address = await secure.sign_part(KEY, 1, 3, soon())
    assert address.url.startswith(f"https://acme.blob.core.windows.net/objects/staging/{KEY}?")
    assert "&spr=https&" in address.url
    assert "&spr=https%2Chttp&" in (await direct.sign_part(KEY, 1, 3, soon())).url
    assert "&sp=w&" in address.url
    assert "sp=r&" in (await secure.sign_read(KEY, soon(), "text/plain", "a")).url
    await secure.close()
