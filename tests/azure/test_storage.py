"""Clients of a storage account."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from lucius_azure.storage import (
    StorageAccount,
    open_blobs,
    open_blocking_blobs,
    open_tables,
)
from lucius_settings.secret import Secret
from lucius_settings.storage_accounts import STORAGE_CONNECTION
from tests.azure.signatures import signed_connection
from tests.azurite import Azurite

KEY = "aHVudGVyMmh1bnRlcjI="
ACCOUNT = f"AccountName=acme;AccountKey={KEY}"


@pytest.fixture(params=["key", "signature"])
def account(request: pytest.FixtureRequest, azure_storage: Azurite) -> StorageAccount:
    """As the settings would give it."""
    is_signed = request.param == "signature"
    text = signed_connection(azure_storage) if is_signed else azure_storage.connection
    return StorageAccount(STORAGE_CONNECTION.read(text))


async def test_tables_are_used_with_a_key_or_a_signature(account: StorageAccount) -> None:
    opened = open_tables(account)
    table = await opened.client.create_table(f"t{uuid4().hex}")
    row = {"PartitionKey": "p", "RowKey": "r"}
    await table.submit_transaction([("create", row)])
    assert dict(await table.get_entity("p", "r")) == row
    assert [dict(each) async for each in table.query_entities("PartitionKey eq 'p'")] == [row]
    await table.delete_entity("p", "r")
    await opened.close()


async def test_blobs_are_used_with_a_key_or_a_signature(account: StorageAccount) -> None:
    opened = open_blobs(account)
    container = await opened.client.create_container(f"c{uuid4().hex}")
    blob = container.get_blob_client("folder/a b")
    await blob.upload_blob(b"content")
    assert await (await blob.download_blob()).readall() == b"content"
    assert [each.name async for each in container.list_blobs("folder/")] == ["folder/a b"]
    await blob.delete_blob()
    await opened.close()


def test_the_client_that_blocks_uses_the_same_account(account: StorageAccount) -> None:
    opened = open_blocking_blobs(account)
    container = opened.client.create_container(f"c{uuid4().hex}")
    container.upload_blob("name", b"content")
    assert container.download_blob("name").readall() == b"content"
    opened.close()


def test_the_account_on_this_machine_needs_no_more_than_its_name() -> None:
    """At the ports that every emulator has."""
    account = StorageAccount(STORAGE_CONNECTION.read("usedevelopmentstorage=True;"))
    assert open_tables(account).client.url.startswith("http://127.0.0.1:10002/devstoreaccount1")
    assert open_blobs(account).client.url.startswith("http://127.0.0.1:10000/devstoreaccount1")


@pytest.mark.parametrize("ways", [{}, {"connection": Secret("x"), "endpoint": "https://a"}])
def test_an_account_has_one_way_to_it(ways: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="either a connection string or an endpoint"):
        StorageAccount(**ways)


OPENING: list[tuple[Callable[..., Any], str]] = [
    (open_tables, "https://acme.table.core.windows.net"),
    (open_blobs, "https://acme.blob.core.windows.net"),
]


@pytest.mark.parametrize(("opening", "endpoint"), OPENING)
async def test_an_endpoint_is_used_with_the_identity_of_the_process(
    opening: Callable[..., Any], endpoint: str
) -> None:
    """Which is closed with the client. Nothing is asked for before the first call."""
    opened = opening(StorageAccount(endpoint=endpoint))
    assert opened.client.url.rstrip("/") == endpoint
    assert opened.client.credential is not None
    await opened.close()
    blocking = open_blocking_blobs(StorageAccount(endpoint="https://acme.blob.core.windows.net"))
    blocking.close()


@pytest.mark.parametrize(("opening", "endpoint"), OPENING)
async def test_a_key_leads_to_the_usual_address_of_the_account(
    opening: Callable[..., Any], endpoint: str
) -> None:
    opened = opening(StorageAccount(Secret(f"DefaultEndpointsProtocol=https;{ACCOUNT}")))
    assert opened.client.url.rstrip("/") == endpoint
    await opened.close()


@pytest.mark.parametrize("opening", [open_tables, open_blobs, open_blocking_blobs])
@pytest.mark.parametrize("text", [KEY, f"AccountKey={KEY}", f"QueueEndpoint=https://a;x={KEY}"])
def test_a_connection_that_cannot_be_used_is_told_without_it(
    opening: Callable[..., Any], text: str
) -> None:
    with pytest.raises(ValueError, match="must name the account or the endpoint") as refused:
        opening(StorageAccount(Secret(text)))
    assert KEY not in f"{refused.value!r} {refused.value.__cause__!r}"


def test_an_account_shows_no_key() -> None:
    assert KEY not in repr(StorageAccount(Secret(ACCOUNT)))


def test_naming_an_account_loads_no_package_of_azure() -> None:
    script = "import sys, lucius_azure.storage; print('azure' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "False"
