"""`lucius artifacts`: documents in, results out."""

import os
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lucius_cli.output import JsonFlag, print_json, print_line, say

app = typer.Typer(help="Documents and results that a server keeps.", no_args_is_help=True)

Tenant = Annotated[str, typer.Option(help="Whose artifacts they are.")]
AnyTenant = Annotated[
    str | None, typer.Option(help="Whose artifacts; a key for one tenant need not say.")
]
Version = Annotated[
    str, typer.Argument(metavar="NAME/vN", help="A version, as invoices/v3; or its uri.")
]


@app.command()
def put(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", exists=True, dir_okay=False, readable=True),
    ],
    tenant: Tenant,
    name: Annotated[
        str | None, typer.Option(help="Publish the files as the next version of this artifact.")
    ] = None,
    path: Annotated[
        str | None, typer.Option(help="The path of the one file in it; else its name.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Upload files and print their uris.

    An upload that was interrupted is gone on with by the same command.
    """
    from lucius_cli.artifacts_server import artifacts_of
    from lucius_cli.artifacts_transfers import entries_of, upload
    from lucius_cli.artifacts_views import print_published
    from lucius_cli.artifacts_words import LocalEntry, artifact_name, entry_path

    if path is not None and (name is None or len(files) > 1):
        raise typer.BadParameter("goes with --name and one file", param_hint="--path")
    if name is not None:
        checked = artifact_name(name)
        wanted = [LocalEntry(entry_path(path or file.name), file) for file in files]
        with artifacts_of(os.environ) as client:
            version = client.publish(checked, entries_of(client, wanted, tenant), tenant)
        print_published(version, as_json=as_json)
        return
    with artifacts_of(os.environ) as client:
        uploaded = [upload(client, file, tenant) for file in files]
    if as_json:
        found = zip(files, uploaded, strict=True)
        print_json({"items": [{"file": str(file), **asdict(each)} for file, each in found]})
    else:
        for each in uploaded:
            print_line(each.uri)


@app.command()
def get(
    uri: Annotated[str, typer.Argument(metavar="URI", help="As artifact://invoices/v3/a.pdf")],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", help="A file or folder; - is standard output."),
    ] = None,
    tenant: AnyTenant = None,
    as_json: JsonFlag = False,
) -> None:
    """Download a file.

    It is there when all of it has come and is right. A download that was interrupted is gone on
    with by the same command.
    """
    from lucius_cli.artifacts_server import artifacts_of
    from lucius_cli.artifacts_transfers import copy_to_stdout, save, target_of
    from lucius_cli.artifacts_words import content_uri

    if output == "-" and as_json:
        raise typer.BadParameter("goes with a file, not with standard output", param_hint="--json")
    checked = str(content_uri(uri))
    with artifacts_of(os.environ) as client:
        if output == "-":
            copy_to_stdout(client, checked, tenant)
            return
        content = client.content(checked, tenant)
        target = target_of(output, content)
        save(client, content, target, tenant)
    if as_json:
        found = {"digest": content.digest, "length": content.length}
        print_json({"uri": checked, "file": str(target), **found})
    else:
        print_line(str(target))


@app.command("list")
def list_(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Show the versions of this artifact.")
    ] = None,
    tenant: AnyTenant = None,
    limit: Annotated[int, typer.Option(min=1, help="How many to show at most.")] = 50,
    all_: Annotated[bool, typer.Option("--all", help="Show all there are.")] = False,
    cursor: Annotated[
        str | None, typer.Option(help="Go on after an earlier list, as its JSON says.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """List artifacts by name, or the versions of one, the newest first."""
    from lucius_cli.artifacts_server import artifacts_of
    from lucius_cli.artifacts_views import listed, print_list
    from lucius_cli.artifacts_words import artifact_name

    wanted = None if name is None else artifact_name(name)
    with artifacts_of(os.environ) as client:
        page = listed(client, wanted, tenant, None if all_ else limit, cursor)
    if as_json:
        print_json(page)
    else:
        print_list(page, wanted)


@app.command()
def publish(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The artifact.")],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|PATH=URI...", help="Files of this machine, or content that was uploaded."
        ),
    ],
    tenant: Tenant,
    as_json: JsonFlag = False,
) -> None:
    """Publish files as the next version of an artifact, and print their uris.

    Content that the newest version has already makes no new one.
    """
    from lucius_cli.artifacts_server import artifacts_of
    from lucius_cli.artifacts_transfers import entries_of
    from lucius_cli.artifacts_views import print_published
    from lucius_cli.artifacts_words import artifact_name, entry_of

    checked, wanted = artifact_name(name), [entry_of(each) for each in files]
    with artifacts_of(os.environ) as client:
        version = client.publish(checked, entries_of(client, wanted, tenant), tenant)
    print_published(version, as_json=as_json)


@app.command()
def delete(
    version: Version,
    tenant: Tenant,
    retention: Annotated[
        str, typer.Option(help="How long it can be restored: 12h, 7d, 2w.")
    ] = "7d",
    reason: Annotated[str | None, typer.Option(help="Why, for whoever asks later.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Withdraw a version: nobody new can read it.

    Until the retention is over it can be restored; then its content goes, unless something else
    needs it.
    """
    from lucius_cli.artifacts_server import artifacts_of
    from lucius_cli.artifacts_words import span_of, version_of

    asked, seconds = version_of(version), int(span_of(retention).total_seconds())
    with artifacts_of(os.environ) as client:
        found = client.tombstone(asked.name, asked.number, seconds, tenant, reason)
    if as_json:
        print_json(found)
        return
    print_line(f"{asked} {found['state']}")
    command = f"lucius artifacts restore {asked} --tenant {shlex.quote(tenant)}"
    say(f"it can be restored until {found['retained_until']}: {command}")


@app.command()
def restore(version: Version, tenant: Tenant, as_json: JsonFlag = False) -> None:
    """Publish a version again that was deleted."""
    from lucius_cli.artifacts_server import artifacts_of
    from lucius_cli.artifacts_words import version_of

    asked = version_of(version)
    with artifacts_of(os.environ) as client:
        found = client.restore(asked.name, asked.number, tenant)
    if as_json:
        print_json(found)
    else:
        print_line(f"{asked} {found['state']}")


@app.command()
def gc(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Delete nothing; say what would go, and why.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Delete the content that nobody needs any more."""
    from lucius_cli.artifacts_server import artifacts_of
    from lucius_cli.artifacts_views import print_candidates, print_report

    with artifacts_of(os.environ) as client:
        found = client.collect(dry_run=dry_run)
    if as_json:
        print_json(found)
    elif dry_run:
        print_candidates(found["candidates"], more=bool(found.get("more")))
    else:
        print_report(found["report"])
