"""What `lucius doctor` says of a storage account."""

from typing import Any

import pytest

from tests.azurite import Azurite
from tests.cli.shell import Shell

pytestmark = pytest.mark.check

NOWHERE = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=c2VjcmV0;"
NOWHERE += "TableEndpoint=http://127.0.0.1:1/a;BlobEndpoint=http://127.0.0.1:1/a;"


def findings(shell: Shell) -> dict[str, dict[str, Any]]:
    """By what was looked at."""
    shell.export(LUCIUS_URL="http://127.0.0.1:1")
    return {check["name"]: check for check in shell("doctor", "--json").json["checks"]}


def found(shell: Shell, name: str) -> dict[str, Any]:
    return findings(shell)[name]


def test_a_ledger_in_tables_answers(shell: Shell, azure_storage: Azurite) -> None:
    shell.export(
        LUCIUS_STORAGE_BACKEND="azure_tables",
        LUCIUS_TABLE_CONNECTION=azure_storage.connection,
        LUCIUS_LEDGER_TABLE="doctors_ledger",
    )
    assert found(shell, "ledger") == {
        "name": "ledger",
        "ok": True,
        "detail": "azure_tables: answers, its schema is this release's",
    }


def test_a_ledger_whose_account_is_away_is_told_without_its_key(shell: Shell) -> None:
    shell.export(LUCIUS_STORAGE_BACKEND="azure_tables", LUCIUS_TABLE_CONNECTION=NOWHERE)
    check = found(shell, "ledger")
    assert not check["ok"]
    assert check["detail"].startswith("azure_tables: ")
    assert "c2VjcmV0" not in check["detail"]


def test_a_backend_without_an_account_is_told_what_to_set(shell: Shell) -> None:
    shell.export(LUCIUS_STORAGE_BACKEND="azure_tables")
    check = found(shell, "settings")
    assert not check["ok"]
    assert "LUCIUS_TABLE_CONNECTION: is required" in check["detail"]


@pytest.mark.parametrize("store", ["aztable:doctorsdedup", "azblob:doctors/dedup"])
def test_the_places_of_a_service_can_be_used(
    shell: Shell, azure_storage: Azurite, store: str
) -> None:
    shell.export(
        LUCIUS_WORKSPACE_ROOT="az://doctors/work",
        LUCIUS_BLOB_CONNECTION=azure_storage.connection,
        LUCIUS_TABLE_CONNECTION=azure_storage.connection,
        LUCIUS_DEDUP_STORE=store,
    )
    checks = findings(shell)
    assert checks["workspace"]["ok"]
    assert checks["dedup store"] == {
        "name": "dedup store",
        "ok": True,
        "detail": f"{store.partition(':')[0]} can be used",
    }


def test_places_of_a_service_that_are_away_are_told_without_their_key(shell: Shell) -> None:
    shell.export(
        LUCIUS_WORKSPACE_ROOT="az://doctors/work",
        LUCIUS_BLOB_CONNECTION=NOWHERE,
        LUCIUS_DEDUP_STORE="azblob:doctors/dedup",
    )
    checks = findings(shell)
    for name in ("workspace", "dedup store"):
        check = checks[name]
        assert not check["ok"]
        assert "c2VjcmV0" not in check["detail"]


def test_without_variables_of_a_service_nothing_is_said_of_one(shell: Shell) -> None:
    assert not {"workspace", "dedup store"} & findings(shell).keys()
