"""By which credential blobs are reached, what it must allow, and that nobody sees it."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import (
    AccountSasPermissions,
    ContainerSasPermissions,
    ResourceTypes,
    generate_account_sas,
    generate_container_sas,
)

from lucius_contract.documents import Ref
from lucius_contract.errors import ErrorCode
from lucius_logs.exceptions import exception_text
from lucius_sdk.error_model import StepError
from lucius_sdk.workspace_io import BlobStorage, publish
from tests.azurite import Azurite
from tests.sdk.workspace_io.far import AT_ONCE
from tests.sdk.workspace_io.objects import create, pattern, read
from tests.sdk.workspace_io.proxy import proxy_to
from tests.sdk.workspace_io.reopening import BLOCK, blob_storage
from tests.sdk.workspace_io.stage import BlobStage, fence, raises

Open = Callable[..., BlobStorage]


@pytest.fixture
def open_with(blob_stage: BlobStage) -> Iterator[Open]:
    """Storages by connection strings, on the root of the stage if no other is given."""
    opened: list[BlobStorage] = []

    def open_(connection: str, root: str = blob_stage.root) -> BlobStorage:
        opened.append(blob_storage(connection, root, patience=AT_ONCE))
        return opened[-1]

    yield open_
    for storage in opened:
        storage.close()


def key_of(azurite: Azurite) -> tuple[str, str]:
    parts = dict(part.split("=", 1) for part in azurite.connection.split(";") if part)
    return parts["AccountName"], parts["AccountKey"]


def with_signature(azurite: Azurite, signature: str) -> str:
    return f"BlobEndpoint={azurite.blob};SharedAccessSignature={signature};"


def account_signature(azurite: Azurite, *permissions: str) -> str:
    name, key = key_of(azurite)
    kinds = ResourceTypes(container=True, object=True)
    allowed = AccountSasPermissions(**dict.fromkeys(permissions, True))
    signature: str = generate_account_sas(name, key, kinds, allowed, soon())
    return signature


def container_signature(azurite: Azurite, container: str, permission: str) -> str:
    name, key = key_of(azurite)
    allowed = ContainerSasPermissions.from_string(permission)
    signature: str = generate_container_sas(name, container, key, None, allowed, soon())
    return signature


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


def use(storage: BlobStorage, stage: BlobStage) -> None:
    """All that a step does."""
    storage.prepare()
    storage.check()
    for size in (10, 2 * BLOCK):
        create(storage, stage.uri("a"), pattern(size))
        publish(storage, Ref(uri=stage.uri("out")), pattern(size), fence())
        assert read(storage, stage.uri("a")) == read(storage, stage.uri("out")) == pattern(size)


def test_a_signature_of_the_account_may_make_the_container(
    azure_storage: Azurite, blob_stage: BlobStage, open_with: Open
) -> None:
    blob_stage.lose_root()
    connection = with_signature(
        azure_storage, account_signature(azure_storage, "read", "write", "create")
    )
    use(open_with(connection), blob_stage)


def test_a_signature_of_the_container_alone_is_enough_where_there_is_one(
    azure_storage: Azurite, blob_stage: BlobStage, open_with: Open
) -> None:
    signature = container_signature(azure_storage, blob_stage.container.container_name, "rwc")
    storage = open_with(with_signature(azure_storage, signature))
    use(storage, blob_stage)
    blob_stage.lose_root()
    for attempt in (storage.check, storage.prepare):
        with raises(ErrorCode.STORAGE_UNAVAILABLE):
            attempt()


def test_who_may_not_read_the_container_is_told_at_the_start(
    azure_storage: Azurite, blob_stage: BlobStage, open_with: Open
) -> None:
    signature = container_signature(azure_storage, blob_stage.container.container_name, "w")
    storage = open_with(with_signature(azure_storage, signature))
    with raises(ErrorCode.STORAGE_UNAVAILABLE, "403"):
        storage.prepare()


def test_a_wrong_key_is_told_at_the_start(
    azure_storage: Azurite, blob_stage: BlobStage, open_with: Open
) -> None:
    _, key = key_of(azure_storage)
    storage = open_with(azure_storage.connection.replace(key, "d3Jvbmc="))
    for attempt in (storage.prepare, storage.check, lambda: create(storage, blob_stage.uri("a"))):
        with raises(ErrorCode.STORAGE_UNAVAILABLE, "403"):
            attempt()


def test_a_key_that_is_none_is_a_passing_fault_as_well(
    azure_storage: Azurite, blob_stage: BlobStage, open_with: Open
) -> None:
    _, key = key_of(azure_storage)
    storage = open_with(azure_storage.connection.replace(key, "?"))
    with raises(ErrorCode.STORAGE_UNAVAILABLE):
        storage.prepare()


def test_no_error_shows_the_signature(
    azure_storage: Azurite, blob_stage: BlobStage, open_with: Open
) -> None:
    signature = account_signature(azure_storage, "read")
    secret = signature.partition("sig=")[2].partition("&")[0]
    away = with_signature(azure_storage, signature).replace(azure_storage.blob, _closed())
    for connection in (with_signature(azure_storage, signature), away):
        storage = open_with(connection)
        for attempt in (
            lambda storage=storage: create(storage, blob_stage.uri("a")),
            lambda storage=storage: storage.open_read(blob_stage.uri("absent")),
            lambda storage=storage: storage.open_read(f"{blob_stage.uri('a')}?{signature}"),
        ):
            with pytest.raises(StepError) as caught:
                attempt()
            assert secret not in exception_text(caught.value)
            assert secret not in str(caught.value)
            assert "sig=" not in str(caught.value)


def _closed() -> str:
    """An address at which nobody listens."""
    with proxy_to("http://127.0.0.1:1/account") as proxy:
        return proxy.url
