"""`lucius keys`, on a key file of its own."""

from pathlib import Path

import pytest

from lucius_orchestrator.webhooks import tenant_key
from tests.cli.shell import Shell


def create(shell: Shell, *more: str) -> str:
    run = shell("keys", "create", "--name", "ci", "--role", "submit", *more)
    assert run.code == 0, run.err
    return run.out


def test_the_secret_is_all_that_stdout_gets(shell: Shell, tmp_path: Path) -> None:
    secret = create(shell, "--tenant", "acme").strip()
    assert secret.startswith("lk_")
    assert len(secret.split()) == 1
    file = tmp_path / ".lucius" / "keys.json"
    assert secret not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_keys_are_listed_without_their_secrets(shell: Shell) -> None:
    secrets = [
        create(shell, "--tenant", "acme", "--tenant", "globex", "--role", "read"),
        create(shell, "--all-tenants", "--role", "admin"),
    ]
    run = shell("keys", "list")
    assert [line.split()[:2] for line in run.out.splitlines()[1:]] == [
        [secret.split("_")[1], "ci"] for secret in secrets
    ]
    assert "acme, globex" in run.out
    assert not any(secret.strip() in run.out for secret in secrets)
    items = shell("keys", "list", "--json").json["items"]
    assert [item["tenants"] for item in items] == [["acme", "globex"], "*"]
    assert [item["roles"] for item in items] == [["read", "submit"], ["admin", "submit"]]


def test_a_revoked_key_stays_in_the_list_as_revoked(shell: Shell) -> None:
    key = create(shell, "--tenant", "acme").split("_")[1]
    assert shell("keys", "revoke", key) == (0, "", f"key {key} is revoked\n")
    (item,) = shell("keys", "list", "--json").json["items"]
    assert item["revoked_at"] is not None
    again = shell("keys", "revoke", key)
    assert (again.code, again.out) == (1, "")
    assert key in again.err


def test_json_holds_the_secret_and_the_id(shell: Shell) -> None:
    arguments = ("keys", "create", "--name", "ci", "--role", "read", "--all-tenants", "--json")
    made = shell(*arguments).json
    assert made["secret"].split("_")[1] == made["key_id"]
    assert shell("keys", "revoke", made["key_id"], "--json").json == {
        "key_id": made["key_id"],
        "revoked": True,
    }


def test_an_empty_list_says_how_to_begin(shell: Shell) -> None:
    assert shell("keys", "list") == (
        0,
        "",
        "no keys yet: make one with `lucius keys create`\n",
    )
    assert shell("keys", "list", "--json").json == {"items": []}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--name", "ci", "--role", "submit"],
        ["--name", "ci", "--role", "submit", "--tenant", "acme", "--all-tenants"],
        ["--name", "ci", "--role", "root", "--all-tenants"],
        ["--name", "ci", "--all-tenants"],
        ["--name", "", "--role", "submit", "--all-tenants"],
        ["--name", "ci", "--role", "submit", "--tenant", ""],
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(shell: Shell, arguments: list[str]) -> None:
    run = shell("keys", "create", *arguments)
    assert (run.code, run.out) == (2, "")
    assert shell("keys", "list").out == ""


def test_a_broken_key_file_is_named(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text("{")
    shell.export(LUCIUS_API_KEYS_FILE=str(file))
    run = shell("keys", "list")
    assert (run.code, run.out) == (3, "")
    assert str(file) in run.err


def test_a_place_that_cannot_be_written_is_named(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shell.export(LUCIUS_API_KEYS_FILE=str(tmp_path / "file" / "keys.json"))
    run = shell("keys", "create", "--name", "ci", "--role", "read", "--all-tenants")
    assert (run.code, run.out) == (3, "")
    assert "keys.json" in run.err


MASTER = "m" * 32
WEBHOOKS = {"LUCIUS_WEBHOOK_HOSTS": "hooks.example", "LUCIUS_WEBHOOK_MASTER_KEYS": MASTER}


def test_the_key_of_webhooks_is_that_of_the_tenant(shell: Shell) -> None:
    shell.export(**WEBHOOKS, LUCIUS_WEBHOOK_KEYS="s" * 32)
    own = tenant_key(MASTER.encode(), "acme").decode()
    assert shell("keys", "webhook", "acme") == (0, f"{own}\n", "")
    assert shell("keys", "webhook", "beta").out != f"{own}\n"
    assert shell("keys", "webhook", "acme", "--json").json == {
        "tenant_id": "acme",
        "key": own,
        "also_signing": [],
    }


def test_while_keys_of_webhooks_are_rotated_the_newest_is_shown(
    shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / "tenants.yaml").write_text("acme: {webhook_keys: [2, 1]}\n")
    shell.export(**WEBHOOKS, LUCIUS_PROTOCOLS_DIR=str(tmp_path))
    new, old = (tenant_key(MASTER.encode(), "acme", number).decode() for number in (2, 1))
    run = shell("keys", "webhook", "acme")
    assert (run.code, run.out) == (0, f"{new}\n")
    assert "sign too" in run.err
    assert shell("keys", "webhook", "acme", "--json").json["also_signing"] == [old]


def test_without_a_master_key_there_is_no_key_of_a_tenant(shell: Shell) -> None:
    shell.export(LUCIUS_WEBHOOK_HOSTS="hooks.example", LUCIUS_WEBHOOK_KEYS="s" * 32)
    run = shell("keys", "webhook", "acme")
    assert (run.code, run.out) == (3, "")
    assert "LUCIUS_WEBHOOK_MASTER_KEYS" in run.err


def test_tenants_that_cannot_be_read_have_no_key(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "tenants.yaml").write_text("acme: {webhook_keys: [1, 1]}\n")
    shell.export(**WEBHOOKS, LUCIUS_PROTOCOLS_DIR=str(tmp_path))
    run = shell("keys", "webhook", "acme")
    assert run.code == 3
    assert "names a generation twice" in run.err
