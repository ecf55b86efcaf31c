"""`lucius keys`: the API keys of a deployment, and the keys of its tenants' webhooks."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from lucius_cli.environment import settings_of
from lucius_cli.failures import CommandFailed, EnvironmentFailed, Unsuitable
from lucius_cli.output import (
    JsonFlag,
    Table,
    joined,
    moment,
    print_json,
    print_line,
    print_table,
    say,
)

if TYPE_CHECKING:
    from lucius_orchestrator.security.callers import Role
    from lucius_orchestrator.security.key_document import KeyInfo
    from lucius_orchestrator.security.keys import KeyFile

app = typer.Typer(help="API keys with tenants and roles; keys of webhooks.", no_args_is_help=True)


@app.command("create")
def create(
    name: Annotated[str, typer.Option(help="Who or what will use the key.")],
    role: Annotated[
        list[str], typer.Option(help="submit, read, operate or admin; may be repeated.")
    ],
    tenant: Annotated[
        list[str] | None, typer.Option(help="A tenant that the key is for; may be repeated.")
    ] = None,
    all_tenants: Annotated[
        bool, typer.Option("--all-tenants", help="A key for every tenant.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Make a key and print its secret, which cannot be shown again."""
    if bool(tenant) == all_tenants:
        raise typer.BadParameter("give --tenant (may be repeated), or --all-tenants")
    roles = frozenset(map(_role, role))
    tenants = None if all_tenants else frozenset(tenant or ())
    with _key_file() as keys:
        try:
            new = keys.create(name, tenants, roles)
        except ValueError as error:
            raise Unsuitable(str(error)) from error
    if as_json:
        print_json({"key_id": new.key_id, "name": name, "secret": new.secret})
        return
    print_line(new.secret)
    say(f"key {new.key_id} was made; keep the secret, it is not shown again:")
    say("use it as LUCIUS_API_KEY, or in the header Authorization: Bearer ...")


@app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """Show the keys, never their secrets."""
    with _key_file() as keys:
        infos = keys.keys()
    if as_json:
        print_json({"items": [_as_json(info) for info in infos]})
    elif infos:
        print_table(Table(("key", "name", "tenants", "roles", "created", "revoked"), _rows(infos)))
    else:
        say("no keys yet: make one with `lucius keys create`")


@app.command("revoke")
def revoke(
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="The key's id, as `lucius keys list` shows it.")
    ],
    as_json: JsonFlag = False,
) -> None:
    """Revoke a key; servers refuse it within a second or two."""
    with _key_file() as keys:
        revoked = keys.revoke(key)
    if not revoked:
        raise CommandFailed(f"no valid key has the id {key}: see `lucius keys list`")
    if as_json:
        print_json({"key_id": key, "revoked": True})
    else:
        say(f"key {key} is revoked")


@app.command("webhook")
def webhook(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Whose webhooks it signs.")],
    as_json: JsonFlag = False,
) -> None:
    """Print the key with which a tenant checks its webhooks. Give it to that tenant alone."""
    from lucius_orchestrator.adapters.registry.problems import RegistryError
    from lucius_orchestrator.bootstrap.protocol_source import read_once
    from lucius_orchestrator.bootstrap.webhooks import webhook_keys_of

    settings = settings_of(os.environ)
    if not settings.webhook_master_keys:
        raise EnvironmentFailed(
            "LUCIUS_WEBHOOK_MASTER_KEYS is not set: the keys of tenants are derived from it"
        )
    try:
        snapshot = asyncio.run(read_once(settings, partial(datetime.now, UTC))).snapshot
    except RegistryError as error:
        raise EnvironmentFailed(f"tenants cannot be read: {error}") from error
    of_tenants = replace(settings, webhook_keys=())  # those that all share are no tenant's
    keys = webhook_keys_of(of_tenants, lambda: snapshot)
    assert keys is not None, "there are master keys"
    first, *others = [key.decode() for key in keys(tenant)]
    if as_json:
        print_json({"tenant_id": tenant, "key": first, "also_signing": others})
        return
    print_line(first)
    if others:
        say(f"the keys before it sign too ({len(others)}), until the change of keys is over")


@contextmanager
def _key_file() -> Iterator["KeyFile"]:
    from lucius_orchestrator.security.keys import KeyFile, KeyFileUnreadable

    path = settings_of(os.environ).api_keys_file
    try:
        yield KeyFile(path, partial(datetime.now, UTC))
    except KeyFileUnreadable as error:
        raise EnvironmentFailed(f"{error.path} cannot be read: {error.reason}") from error
    except OSError as error:
        raise EnvironmentFailed(f"{path} cannot be written: {error.strerror}") from error


def _role(text: str) -> "Role":
    from lucius_orchestrator.security.callers import Role

    try:
        return Role(text)
    except ValueError as error:
        raise typer.BadParameter(f"one of {', '.join(Role)}", param_hint="--role") from error


def _as_json(info: "KeyInfo") -> dict[str, object]:
    return {
        "key_id": info.key_id,
        "name": info.name,
        "tenants": "*" if info.tenants is None else sorted(info.tenants),
        "roles": sorted(info.roles),
        "created_at": info.created_at.isoformat(),
        "revoked_at": info.revoked_at.isoformat() if info.revoked_at else None,
    }


def _rows(infos: list["KeyInfo"]) -> list[tuple[str, ...]]:
    return [
        (
            info.key_id,
            info.name,
            joined(None if info.tenants is None else sorted(info.tenants), otherwise="all"),
            joined(sorted(info.roles)),
            moment(info.created_at.isoformat()),
            moment(info.revoked_at.isoformat()) if info.revoked_at else "",
        )
        for info in infos
    ]
